package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// cpufreqFields are the attributes of cpuN/cpufreq that are numbers, in kHz. The
// first two ask the hardware, and only root may.
var cpufreqFields = [...]struct {
	file   string
	metric Metric
}{
	{"cpuinfo_cur_freq", cpufreqMetric("frequency_hertz", "Current CPU thread frequency in hertz.")},
	{"cpuinfo_avg_freq", cpufreqMetric("frequency_avg_hertz", "Average CPU thread frequency in hertz.")},
	{"cpuinfo_min_freq", cpufreqMetric("frequency_min_hertz", "Minimum CPU thread frequency in hertz.")},
	{"cpuinfo_max_freq", cpufreqMetric("frequency_max_hertz", "Maximum CPU thread frequency in hertz.")},
	{"scaling_cur_freq", cpufreqMetric("scaling_frequency_hertz", "Current scaled CPU thread frequency in hertz.")},
	{"scaling_min_freq", cpufreqMetric("scaling_frequency_min_hertz", "Minimum scaled CPU thread frequency in hertz.")},
	{"scaling_max_freq", cpufreqMetric("scaling_frequency_max_hertz", "Maximum scaled CPU thread frequency in hertz.")},
}

var cpufreqGovernor = Metric{Name: "node_cpu_scaling_governor", Type: Gauge, Kind: Signed,
	Help: "Current enabled CPU frequency governor."}

// maxGovernors bounds the governors of a CPU; kernels have seven.
const maxGovernors = 32

func cpufreqMetric(name, help string) Metric {
	return Metric{Name: "node_cpu_" + name, Type: Gauge, Kind: Signed, Unit: "hertz", Mul: 1000, Help: help}
}

type cpufreqRow struct {
	cpu                 string
	nums                [len(cpufreqFields)]numAttr
	governor, available attr
	governors           *table[fieldRow]
}

type cpufreq struct {
	dir  dir
	rows *table[cpufreqRow]
	buf  [attrBytes]byte
	now  [128]byte // the governor of the CPU being read
}

func newCpufreq(env Env) (Source, error) {
	s := &cpufreq{dir: newDir(filepath.Join(env.Sysfs, "devices/system/cpu")), rows: newTable[cpufreqRow](maxCPUs)}
	found := false
	err := s.dir.each(func(name []byte, _ bool) {
		var st unix.Stat_t
		found = found || isCPU(name) && unix.Stat(filepath.Join(s.dir.path, string(name), "cpufreq"), &st) == nil
	})
	if err == nil && !found {
		err = unix.ENOENT
		s.dir.close()
	}
	if err != nil {
		return nil, fmt.Errorf("look for cpufreq in %s: %w", s.dir.path, err)
	}
	return s, nil
}

func isCPU(name []byte) bool {
	id, ok := bytes.CutPrefix(name, []byte("cpu"))
	return ok && allDigits(id)
}

func (s *cpufreq) Read(out *Out) error {
	s.rows.begin()
	n := 0
	err := s.dir.each(func(name []byte, _ bool) {
		if !isCPU(name) {
			return
		}
		r, state := s.rows.find(name)
		if r == nil {
			return
		}
		if state == rowNew {
			r.init(filepath.Join(s.dir.path, string(name), "cpufreq"), string(name[len("cpu"):]))
		}
		if s.cpu(out, r) {
			n++
		}
	})
	s.rows.end(func(r *cpufreqRow) { r.clear(out) })
	if err != nil {
		return fmt.Errorf("list %s: %w", s.dir.path, err)
	}
	if n == 0 {
		return fmt.Errorf("read %s: no CPU has a frequency", s.dir.path)
	}
	return nil
}

func (r *cpufreqRow) init(dir, cpu string) {
	r.cpu = cpu
	for i := range r.nums {
		r.nums[i] = numAttr{attr: newAttr(filepath.Join(dir, cpufreqFields[i].file)),
			metric: &cpufreqFields[i].metric, label: Label{"cpu", cpu}}
	}
	r.governor = newAttr(filepath.Join(dir, "scaling_governor"))
	r.available = newAttr(filepath.Join(dir, "scaling_available_governors"))
	r.governors = newTable[fieldRow](maxGovernors)
}

// cpu reads one CPU and tells whether it has anything: one that is offline has not.
func (s *cpufreq) cpu(out *Out, r *cpufreqRow) bool {
	any := false
	for i := range r.nums {
		any = r.nums[i].update(out, s.buf[:]) || any
	}
	r.governors.begin()
	current, errno := r.governor.read(s.now[:])
	if errno == 0 && len(current) > 0 {
		text, _ := r.available.read(s.buf[:])
		for start, end := field(text, 0); start < end; start, end = field(text, end) {
			g, state := r.governors.find(text[start:end])
			if g == nil {
				continue
			}
			if state == rowNew {
				g.slot = int32(out.Add(&cpufreqGovernor, Label{"cpu", r.cpu},
					Label{"governor", label(text[start:end])})) + 1
			}
			on := int64(0)
			if bytes.Equal(text[start:end], current) {
				on = 1
			}
			out.Set(int(g.slot-1), on)
		}
		any = true
	}
	r.governors.end(func(g *fieldRow) { g.clear(out) })
	return any
}

func (r *cpufreqRow) clear(out *Out) {
	for i := range r.nums {
		r.nums[i].clear(out)
	}
	r.governors.begin()
	r.governors.end(func(g *fieldRow) { g.clear(out) })
}

func (s *cpufreq) Close() error {
	s.dir.close()
	return nil
}
