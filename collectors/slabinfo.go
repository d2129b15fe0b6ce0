package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// slabMetrics are the first columns behind the name (slabinfo version 2.1,
// cache_show in mm/slab_common.c).
var slabMetrics = [...]Metric{
	{Name: "node_slabinfo_active_objects", Type: Gauge,
		Help: "The number of objects that are currently active (i.e., in use)."},
	{Name: "node_slabinfo_objects", Type: Gauge,
		Help: "The total number of allocated objects (i.e., objects that are both in use and not in use)."},
	{Name: "node_slabinfo_object_size_bytes", Type: Gauge, Unit: "bytes",
		Help: "The size of objects in this slab, in bytes."},
	{Name: "node_slabinfo_objects_per_slab", Type: Gauge,
		Help: "The number of objects stored in each slab."},
	{Name: "node_slabinfo_pages_per_slab", Type: Gauge,
		Help: "The number of pages allocated for each slab."},
}

// maxSlabs bounds the caches over the exporter's life: some are made for each
// control group or mount.
const maxSlabs = 2048

type slabRow struct {
	slots   [len(slabMetrics)]int32
	ignored bool
}

type slabinfo struct {
	*file
	faults faults
	filter filter
	rows   *table[slabRow]
}

func newSlabinfo(env Env) (Source, error) {
	f, err := openRows(filepath.Join(env.Procfs, "slabinfo"), 32<<10, rowRecord)
	if err != nil {
		return nil, err
	}
	return &slabinfo{file: f, faults: newFaults(env, "slabinfo"), filter: env.filter("slabinfo.slabs", ""),
		rows: newTable[slabRow](maxSlabs)}, nil
}

func (s *slabinfo) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *slabinfo) parse(out *Out, text []byte) error {
	if !bytes.HasPrefix(text, []byte("slabinfo - version: 2")) {
		return fmt.Errorf("read %s: %w", s.path, errNoTable)
	}
	s.rows.begin()
	_, text, _ = cutLine(text)
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if len(line) > 0 && line[0] != '#' {
			s.row(out, line)
		}
	}
	s.rows.end(func(r *slabRow) {
		for _, slot := range r.slots {
			if !r.ignored {
				out.Clear(int(slot))
			}
		}
	})
	return nil
}

func (s *slabinfo) row(out *Out, line []byte) {
	// Names may hold blanks, as drivers give them; the figures end at the colon.
	figures, _, ok := bytes.Cut(line, []byte(" : "))
	var v [len(slabMetrics)]uint64
	name := figures
	for i := len(v) - 1; i >= 0 && ok; i-- {
		name = trim(name)
		at := bytes.LastIndexByte(name, ' ') + 1
		var f found
		var next int
		v[i], next, f = number(name, at)
		ok = f == good && next == len(name) && at > 0
		name = name[:at]
	}
	name = trim(name)
	if !ok || len(name) == 0 {
		s.faults.badRow(out, line)
		return
	}
	r, state := s.rows.find(name)
	if r == nil {
		if state == rowOver {
			s.faults.overflow(out, line)
		}
		return // caches of one name are there more than once
	}
	if state == rowNew {
		r.ignored = s.filter.ignores(label(name))
	}
	if r.ignored {
		return
	}
	if state == rowNew {
		for i := range slabMetrics {
			r.slots[i] = int32(out.Add(&slabMetrics[i], Label{"slab", label(name)}))
		}
	}
	for i := range v {
		out.Set(int(r.slots[i]), int64(v[i]))
	}
}

// seriesless tells that the row has no series to keep a place for.
func (r *slabRow) seriesless() bool { return r.ignored }
