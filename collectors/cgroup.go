package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// maxCgroups bounds the groups over the exporter's life: names that are gone keep
	// their slots. cgroupDepth is how far below the root they are looked for: slices,
	// the services and containers in them, and what those divide themselves into.
	maxCgroups  = 1024
	cgroupDepth = 3
)

// cgroupFiles are what is read of each group (Documentation/admin-guide/cgroup-v2.rst)
// and what each has. A key is the word that a line begins with, or in io.stat what
// stands before the equals sign; the empty key is a file of one number.
var cgroupFiles = [...]struct {
	file   string
	values []cgroupValue
}{
	{"cpu.stat", []cgroupValue{
		{"usage_usec", cgroupMetric("cpu_usage_seconds_total", "CPU time used.", 1e6)},
		{"user_usec", cgroupMetric("cpu_user_seconds_total", "CPU time used in user mode.", 1e6)},
		{"system_usec", cgroupMetric("cpu_system_seconds_total", "CPU time used in system mode.", 1e6)},
		{"nr_periods", cgroupMetric("cpu_periods_total", "Periods in which a limit on CPU time was in force.", 0)},
		{"nr_throttled", cgroupMetric("cpu_throttled_periods_total", "Periods in which the limit was reached.", 0)},
		{"throttled_usec", cgroupMetric("cpu_throttled_seconds_total", "Time for which the limit held tasks back.", 1e6)},
	}},
	{"memory.current", []cgroupValue{{"", cgroupGauge("memory_current_bytes", "Memory in use, caches included.")}}},
	{"memory.swap.current", []cgroupValue{{"", cgroupGauge("memory_swap_current_bytes", "Swap in use.")}}},
	{"memory.events", []cgroupValue{
		{"high", cgroupMetric("memory_high_total", "Times that the group was slowed down for using much memory.", 0)},
		{"oom_kill", cgroupMetric("memory_oom_kills_total", "Processes killed for want of memory.", 0)},
	}},
	{"pids.current", []cgroupValue{{"", cgroupGauge("pids", "Number of processes and threads.")}}},
	{"io.stat", []cgroupValue{
		{"rbytes", cgroupMetric("io_read_bytes_total", "Bytes read from all devices.", 0)},
		{"wbytes", cgroupMetric("io_written_bytes_total", "Bytes written to all devices.", 0)},
		{"rios", cgroupMetric("io_reads_total", "Reads from all devices.", 0)},
		{"wios", cgroupMetric("io_writes_total", "Writes to all devices.", 0)},
	}},
}

type cgroupValue struct {
	key    string
	metric Metric
}

func cgroupMetric(name, help string, div float64) Metric {
	return Metric{Name: "node_cgroup_" + name, Type: Counter, Help: help, Div: div}
}

func cgroupGauge(name, help string) Metric {
	return Metric{Name: "node_cgroup_" + name, Type: Gauge, Help: help}
}

// maxCgroupValues is the most values that a file has.
const maxCgroupValues = 6

type cgroupRow struct {
	name  string // from the root on
	files [len(cgroupFiles)]attr
	slots [len(cgroupFiles)][maxCgroupValues]int32 // slot + 1
}

// cgroup reads the groups of version 2: services and containers.
type cgroup struct {
	root string
	rows *table[cgroupRow]
	path []byte
	dirs [cgroupDepth][4096]byte
	buf  [attrBytes]byte
}

func newCgroup(env Env) (Source, error) {
	root := filepath.Join(env.Sysfs, "fs/cgroup")
	// In a hybrid setup version 2 has a directory of its own.
	for _, dir := range []string{root, filepath.Join(root, "unified")} {
		if exists(filepath.Join(dir, "cgroup.controllers")) {
			return &cgroup{root: dir, rows: newTable[cgroupRow](maxCgroups)}, nil
		}
	}
	return nil, fmt.Errorf("look for cgroup version 2 in %s: %w", root, unix.ENOENT)
}

func (s *cgroup) Read(out *Out) error {
	s.rows.begin()
	s.path = append(s.path[:0], s.root...)
	err := s.walk(out, 0)
	s.rows.end(func(r *cgroupRow) { r.clear(out) })
	if err != nil {
		return fmt.Errorf("list %s: %w", s.root, err)
	}
	return nil
}

// walk reads the groups in the directory that s.path is, and those in them.
func (s *cgroup) walk(out *Out, depth int) error {
	end := len(s.path)
	fd, errno := openPath(append(s.path, 0))
	if errno != 0 {
		return errno
	}
	defer unix.Close(fd)
	return list(fd, s.dirs[depth][:], func(name []byte, regular bool) {
		if regular {
			return
		}
		s.path = append(append(s.path[:end], '/'), name...)
		if s.group(out) && depth+1 < cgroupDepth {
			// One that cannot be listed has just ended.
			_ = s.walk(out, depth+1)
		}
		s.path = s.path[:end]
	})
}

// group reads the group whose directory s.path is and tells whether it is one.
func (s *cgroup) group(out *Out) bool {
	r, state := s.rows.find(s.path[len(s.root):])
	if r == nil {
		if state == rowOver {
			out.Stats.Overflow.Add(1)
		}
		return false
	}
	if state == rowNew {
		r.name = label(s.path[len(s.root):])
		for i, f := range cgroupFiles {
			r.files[i] = newAttr(string(s.path) + "/" + f.file)
		}
	}
	for i := range r.files {
		text, errno := r.files[i].read(s.buf[:])
		out.Stats.Bytes.Add(uint64(len(text)))
		if errno != 0 {
			text = nil // the controller is not on
		}
		r.set(out, i, text)
	}
	return true
}

// set reports what file number i has.
func (r *cgroupRow) set(out *Out, i int, text []byte) {
	var v [maxCgroupValues]uint64
	var has [maxCgroupValues]bool
	values := cgroupFiles[i].values
	if len(text) > 0 && values[0].key == "" {
		n, ok := parseValue(text)
		v[0], has[0] = uint64(n), ok && n >= 0
	} else {
		parseCgroup(text, values, &v, &has)
	}
	for j := range values {
		slot := &r.slots[i][j]
		switch {
		case has[j]:
			if *slot == 0 {
				*slot = int32(out.Add(&values[j].metric, Label{"cgroup", r.name})) + 1
			}
			out.Set(int(*slot-1), int64(v[j]))
		case *slot > 0:
			out.Clear(int(*slot - 1))
		}
	}
}

// parseCgroup adds up lines like key 12, and those like 8:0 rbytes=1 wbytes=2.
func parseCgroup(text []byte, values []cgroupValue, v *[maxCgroupValues]uint64, has *[maxCgroupValues]bool) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		start, end := field(line, 0)
		key := line[start:end]
		for j := range values {
			if string(key) == values[j].key {
				if n, _, f := number(line, end); f == good {
					v[j] += n
					has[j] = true
				}
			}
		}
		for start, end = field(line, end); start < end; start, end = field(line, end) {
			key, number, ok := bytes.Cut(line[start:end], []byte{'='})
			n, good := parseValue(number)
			for j := range values {
				if ok && good && n >= 0 && string(key) == values[j].key {
					v[j] += uint64(n)
					has[j] = true
				}
			}
		}
	}
}

func (r *cgroupRow) clear(out *Out) {
	for i := range r.slots {
		r.set(out, i, nil)
	}
}

func (s *cgroup) Close() error { return nil }
