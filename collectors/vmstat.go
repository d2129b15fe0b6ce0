package collectors

import (
	"fmt"
	"path/filepath"
	"regexp"
)

// vmstatRecord is more than a line has: names have less than 40 bytes.
const vmstatRecord = 64

// vmstatFields matches the fields that are exported: node_exporter's own default.
const vmstatFields = "^(oom_kill|pgpg|pswp|pg.*fault).*"

type vmstat struct {
	*file
	faults faults
	fields *regexp.Regexp
	rows   *table[fieldRow]
	lines  lineSlots
}

func newVmstat(env Env) (Source, error) {
	f, err := openRows(filepath.Join(env.Procfs, "vmstat"), 8<<10, vmstatRecord)
	if err != nil {
		return nil, err
	}
	return &vmstat{file: f, faults: newFaults(env, "vmstat"),
		fields: env.option("vmstat.fields", vmstatFields), rows: newTable[fieldRow](maxFields)}, nil
}

func (s *vmstat) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *vmstat) parse(out *Out, text []byte) error {
	if len(text) > 0 && s.lines.again(out, text) {
		return nil
	}
	s.rows.begin()
	s.lines.begin(out)
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if len(line) > 0 {
			s.row(out, line)
		}
	}
	s.lines.end(out)
	known := s.rows.pos
	s.rows.end(func(r *fieldRow) { r.clear(out) })
	if known == 0 {
		return fmt.Errorf("read %s: no row is known", s.path)
	}
	return nil
}

func (s *vmstat) row(out *Out, line []byte) {
	start, end := field(line, 0)
	if start == end {
		return
	}
	r, state := s.rows.find(line[start:end])
	if r == nil {
		s.faults.refused(out, state, line)
		return
	}
	if state == rowNew && s.fields != nil && s.fields.Match(line[start:end]) {
		r.slot = int32(out.Add(vmstatMetric(label(line[start:end])))) + 1
	}
	s.lines.add(line[start:end], r.slot)
	if r.slot == 0 {
		return
	}
	v, _, f := number(line, end)
	if f != good {
		s.faults.badRow(out, line)
		r.clear(out)
		return
	}
	out.Set(int(r.slot-1), int64(v))
}

func vmstatMetric(field string) *Metric {
	return &Metric{Name: "node_vmstat_" + metricName(field), Type: Untyped,
		Help: "/proc/vmstat information field " + field + "."}
}
