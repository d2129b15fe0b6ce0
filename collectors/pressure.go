package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
)

// pressureFiles are the resources with stall information (psi_show in
// kernel/sched/psi.c): cpu, io and memory since Linux 4.20, irq since 6.1 and only
// with CONFIG_IRQ_TIME_ACCOUNTING, with a full line alone. The full line of cpu is
// always zero for the whole system and not exported.
var pressureFiles = [...]pressureResource{
	{"cpu", pressureMetric("cpu_waiting", "Total time in seconds that processes have waited for CPU time"), nil},
	{"io", pressureMetric("io_waiting", "Total time in seconds that processes have waited due to IO congestion"),
		pressureMetric("io_stalled", "Total time in seconds no process could make progress due to IO congestion")},
	{"memory", pressureMetric("memory_waiting", "Total time in seconds that processes have waited for memory"),
		pressureMetric("memory_stalled", "Total time in seconds no process could make progress due to memory congestion")},
	{"irq", nil,
		pressureMetric("irq_stalled", "Total time in seconds no process could make progress due to IRQ congestion")},
}

type pressureResource struct {
	name       string
	some, full *Metric
}

func (r pressureResource) open(f *file) *pressureFile {
	return &pressureFile{file: f, lines: [2]pressureLine{
		{kind: "some", metric: r.some}, {kind: "full", metric: r.full}}}
}

func pressureMetric(name, help string) *Metric {
	return &Metric{Name: "node_pressure_" + name + "_seconds_total", Type: Counter,
		Unit: "seconds", Help: help, Div: 1e6}
}

// pressureLine is the value of a line of one file.
type pressureLine struct {
	kind   string
	metric *Metric
	slot   int32 // slot + 1
}

type pressureFile struct {
	*file
	lines [2]pressureLine
}

type pressure struct {
	faults faults
	files  []*pressureFile
}

func newPressure(env Env) (Source, error) {
	s := &pressure{faults: newFaults(env, "pressure")}
	var first error
	for _, r := range pressureFiles {
		f, err := openFile(filepath.Join(env.Procfs, "pressure", r.name), 512, true)
		if err == nil {
			// With psi=0 the files are there, and reading them is refused.
			_, err = f.read()
		}
		if err != nil {
			f.close()
			if first == nil {
				first = err
			}
			continue
		}
		s.files = append(s.files, r.open(f))
	}
	if len(s.files) == 0 {
		return nil, fmt.Errorf("open pressure files: %w", first)
	}
	return s, nil
}

// Read reads every file; one that fails costs its own series.
func (s *pressure) Read(out *Out) error {
	var last error
	failed := 0
	for _, f := range s.files {
		text, err := f.readInto(out)
		if err == nil {
			s.parse(out, f, text)
			continue
		}
		if errors.Is(err, ErrTooLarge) {
			return err
		}
		f.clear(out)
		failed++
		last = err
	}
	if failed == len(s.files) {
		return last
	}
	return nil
}

func (s *pressure) parse(out *Out, f *pressureFile, text []byte) {
	var seen [len(f.lines)]bool
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		_, end := field(line, 0)
		for i := range f.lines {
			l := &f.lines[i]
			if l.metric == nil || seen[i] || string(line[:end]) != l.kind {
				continue
			}
			us, ok := pressureTotal(line)
			if !ok {
				s.faults.badRow(out, line)
				continue
			}
			seen[i] = true
			if l.slot == 0 {
				l.slot = int32(out.Add(l.metric)) + 1
			}
			out.Set(int(l.slot-1), int64(us))
		}
	}
	for i, l := range f.lines {
		if !seen[i] && l.slot > 0 {
			out.Clear(int(l.slot - 1))
		}
	}
}

// pressureTotal finds total=N, in microseconds.
func pressureTotal(line []byte) (us uint64, ok bool) {
	key := []byte("total=")
	i := bytes.LastIndex(line, key)
	if i < 0 {
		return 0, false
	}
	us, _, f := number(line, i+len(key))
	return us, f == good && !blank(line[i+len(key)])
}

func (f *pressureFile) clear(out *Out) {
	for _, l := range f.lines {
		if l.slot > 0 {
			out.Clear(int(l.slot - 1))
		}
	}
}

func (s *pressure) Close() error {
	for _, f := range s.files {
		f.close()
	}
	return nil
}
