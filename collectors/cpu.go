package collectors

import (
	"fmt"
	"path/filepath"
	"strconv"
)

var (
	cpuOnline = Metric{Name: "node_cpu_online", Type: Gauge, Kind: Signed,
		Help: "CPUs that are online and being scheduled."}
	cpuIsolated = Metric{Name: "node_cpu_isolated", Type: Gauge, Kind: Signed,
		Help: "Whether each core is isolated, information from /sys/devices/system/cpu/isolated."}
	cpuCoreThrottles = Metric{Name: "node_cpu_core_throttles_total", Type: Counter, Kind: Signed,
		Help: "Number of times this CPU core has been throttled."}
	cpuPackageThrottles = Metric{Name: "node_cpu_package_throttles_total", Type: Counter, Kind: Signed,
		Help: "Number of times this CPU package has been throttled."}
)

// cpuDevice is a directory cpuN.
type cpuDevice struct {
	online    numAttr
	core, pkg *throttle // nil where another CPU reports them
}

// throttle is a counter that CPUs of one core, or one package, share: the first of
// them reports it.
type throttle struct {
	attr
	metric *Metric
	labels []Label
	slot   int32 // slot + 1
}

// cpu reads devices/system/cpu: which CPUs are online, and how often the hardware
// slowed them down (x86).
type cpu struct {
	dir    dir
	rows   *table[cpuDevice]
	owners map[string]bool // cores and packages that some CPU reports
	buf    [attrBytes]byte

	hotplug  bool // CPU 0 tells whether it is online
	isolated []int
	iso      []int32
}

func newCPU(env Env) (Source, error) {
	s := &cpu{dir: newDir(filepath.Join(env.Sysfs, "devices/system/cpu")), rows: newTable[cpuDevice](maxCPUs),
		owners: map[string]bool{}}
	if err := s.dir.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir.path, err)
	}
	// Where CPU 0 cannot be unplugged it has no such file, and the others alone would
	// make a count of one too few.
	s.hotplug = exists(filepath.Join(s.dir.path, "cpu0/online"))
	// Isolation is a boot parameter.
	if text, errno := newAttr(filepath.Join(s.dir.path, "isolated")).read(s.buf[:]); errno == 0 {
		s.isolated = cpuList(text)
	}
	return s, nil
}

func (s *cpu) Read(out *Out) error {
	s.rows.begin()
	err := s.dir.each(func(name []byte, _ bool) {
		if !isCPU(name) {
			return
		}
		r, state := s.rows.find(name)
		if r == nil {
			return
		}
		if state == rowNew {
			s.init(r, filepath.Join(s.dir.path, string(name)), string(name[len("cpu"):]))
		}
		if s.hotplug {
			r.online.update(out, s.buf[:])
		}
		for _, t := range [2]*throttle{r.core, r.pkg} {
			if t != nil {
				t.update(out, s.buf[:])
			}
		}
	})
	s.rows.end(func(r *cpuDevice) {
		r.online.clear(out)
		r.core.clear(out)
		r.pkg.clear(out)
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", s.dir.path, err)
	}
	for i, id := range s.isolated {
		if i == len(s.iso) {
			s.iso = append(s.iso, int32(out.Add(&cpuIsolated, Label{"cpu", strconv.Itoa(id)})))
		}
		out.Set(int(s.iso[i]), 1)
	}
	return nil
}

func (s *cpu) init(r *cpuDevice, dir, id string) {
	r.online = numAttr{attr: newAttr(filepath.Join(dir, "online")), metric: &cpuOnline, label: Label{"cpu", id}}
	pack, ok := s.number(filepath.Join(dir, "topology/physical_package_id"))
	core, ok2 := s.number(filepath.Join(dir, "topology/core_id"))
	if !ok || !ok2 {
		return
	}
	r.core = s.throttle(filepath.Join(dir, "thermal_throttle/core_throttle_count"), &cpuCoreThrottles,
		Label{"package", pack}, Label{"core", core})
	r.pkg = s.throttle(filepath.Join(dir, "thermal_throttle/package_throttle_count"), &cpuPackageThrottles,
		Label{"package", pack})
}

// number is the text of an attribute that is a number.
func (s *cpu) number(path string) (string, bool) {
	text, errno := newAttr(path).read(s.buf[:])
	return string(text), errno == 0 && allDigits(text)
}

// throttle is the counter, or nil where a CPU reports it already or there is none.
func (s *cpu) throttle(path string, m *Metric, labels ...Label) *throttle {
	key := m.Name
	for _, l := range labels {
		key += " " + l.Value
	}
	if s.owners[key] {
		return nil
	}
	t := &throttle{attr: newAttr(path), metric: m, labels: labels}
	if _, errno := t.read(s.buf[:]); errno != 0 {
		return nil
	}
	s.owners[key] = true
	return t
}

func (t *throttle) update(out *Out, buf []byte) {
	text, errno := t.read(buf)
	out.Stats.Bytes.Add(uint64(len(text)))
	v, ok := parseValue(text)
	if errno != 0 || !ok {
		t.clear(out)
		return
	}
	if t.slot == 0 {
		t.slot = int32(out.Add(t.metric, t.labels...)) + 1
	}
	out.Set(int(t.slot-1), v)
}

func (t *throttle) clear(out *Out) {
	if t != nil && t.slot > 0 {
		out.Clear(int(t.slot - 1))
	}
}

func (s *cpu) Close() error {
	s.dir.close()
	return nil
}
