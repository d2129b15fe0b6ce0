package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
)

const (
	// userHZ is the unit of the CPU times in /proc/stat: 100 a second on every
	// architecture that a router has (USER_HZ in include/asm-generic/param.h).
	userHZ = 100
	// maxStepBack is how far, in ticks, a CPU counter may step back and be held. A
	// larger step is a CPU that was unplugged and came back.
	maxStepBack = 3 * userHZ
	// maxCPUs is beyond any kernel's NR_CPUS.
	maxCPUs = 8192
)

var (
	cpuSeconds = Metric{Name: "node_cpu_seconds_total", Type: Counter, Unit: "seconds",
		Help: "Seconds the CPUs spent in each mode.", Div: userHZ}
	cpuGuestSeconds = Metric{Name: "node_cpu_guest_seconds_total", Type: Counter, Unit: "seconds",
		Help: "Seconds the CPUs spent in guests (VMs) for each mode.", Div: userHZ}
)

// cpuModes are the columns of a CPU row. Guest times are part of user and nice, so
// they are a metric of their own. iowait to softirq came with Linux 2.6.0, steal
// with 2.6.11, guest with 2.6.24, guest_nice with 2.6.33; what a kernel lacks is
// absent (show_stat in fs/proc/stat.c).
var cpuModes = [...]struct {
	metric *Metric
	mode   string
}{
	{&cpuSeconds, "user"}, {&cpuSeconds, "nice"}, {&cpuSeconds, "system"},
	{&cpuSeconds, "idle"}, {&cpuSeconds, "iowait"}, {&cpuSeconds, "irq"},
	{&cpuSeconds, "softirq"}, {&cpuSeconds, "steal"},
	{&cpuGuestSeconds, "user"}, {&cpuGuestSeconds, "nice"},
}

// statTotals are the rows of one value.
var statTotals = [...]struct {
	key    string
	metric Metric
}{
	{"intr", Metric{Name: "node_intr_total", Type: Counter,
		Help: "Total number of interrupts serviced."}},
	{"ctxt", Metric{Name: "node_context_switches_total", Type: Counter,
		Help: "Total number of context switches."}},
	{"processes", Metric{Name: "node_forks_total", Type: Counter,
		Help: "Total number of forks."}},
	{"procs_running", Metric{Name: "node_procs_running", Type: Gauge,
		Help: "Number of processes in runnable state."}},
	{"procs_blocked", Metric{Name: "node_procs_blocked", Type: Gauge,
		Help: "Number of processes blocked waiting for I/O to complete."}},
}

// cpuRow is one CPU: its slots, the raw values of the last read and those that are
// reported.
type cpuRow struct {
	cpu        string
	slots      [len(cpuModes)]int32
	known      int // columns that have a slot
	columns    int // columns of the last read
	raw, value [len(cpuModes)]uint64
}

type stat struct {
	*file
	faults faults
	cpus   *table[cpuRow]
	totals [len(statTotals)]int32 // slot + 1; 0 is not seen yet
	seen   [len(statTotals)]bool
}

func newStat(env Env) (Source, error) {
	// intr has one number for each IRQ: 4 KiB on a router, 64 KiB on a large server.
	f, err := openFile(filepath.Join(env.Procfs, "stat"), 8<<10, true)
	if err != nil {
		return nil, err
	}
	return &stat{file: f, faults: newFaults(env, "stat"), cpus: newTable[cpuRow](maxCPUs)}, nil
}

func (s *stat) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *stat) parse(out *Out, text []byte) error {
	s.cpus.begin()
	s.seen = [len(statTotals)]bool{}
	rows, whole := 0, true
	for len(text) > 0 {
		var line []byte
		line, text, whole = cutLine(text)
		if bytes.HasPrefix(line, []byte("cpu")) {
			rows += s.cpu(out, line, whole)
			continue
		}
		rows += s.total(out, line)
	}
	s.cpus.end(func(r *cpuRow) { r.clear(out, 0) })
	for i, seen := range s.seen {
		if !seen && s.totals[i] > 0 {
			out.Clear(int(s.totals[i] - 1))
		}
	}
	if rows == 0 {
		return fmt.Errorf("read %s: no row is known", s.path)
	}
	return nil
}

// total handles a row of one value and returns how many rows it was.
func (s *stat) total(out *Out, line []byte) int {
	start, end := field(line, 0)
	for i := range statTotals {
		t := &statTotals[i]
		if string(line[start:end]) != t.key {
			continue
		}
		v, _, f := number(line, end)
		if f != good || s.seen[i] {
			s.faults.badRow(out, line)
			return 0
		}
		if s.totals[i] == 0 {
			s.totals[i] = int32(out.Add(&t.metric)) + 1
		}
		s.seen[i] = true
		out.Set(int(s.totals[i]-1), int64(v))
		return 1
	}
	return 0
}

// cpu handles the row of one CPU. The row of all CPUs, "cpu", is their sum and not
// exported.
func (s *stat) cpu(out *Out, line []byte, whole bool) int {
	_, end := field(line, 0)
	name := line[:end]
	if len(name) == len("cpu") {
		return 0
	}
	var raw [len(cpuModes)]uint64
	n, _, f := numbers(line, end, raw[:])
	if !allDigits(name[len("cpu"):]) || f == bad || n < 4 {
		s.faults.badRow(out, line)
		return 0
	}
	r, state := s.cpus.find(name)
	if r == nil {
		s.faults.refused(out, state, line)
		return 0
	}
	if state == rowNew {
		r.cpu = string(name[len("cpu"):])
	}
	if !whole && n < r.columns {
		s.faults.badRow(out, line) // cut short: its last number may be, too
		r.clear(out, 0)
		return 0
	}
	if state == rowSame {
		s.hold(out, r, raw[:n])
	} else {
		r.value = raw
	}
	r.raw = raw
	r.set(out, n)
	return 1
}

// hold takes new raw values over, except those that stepped back a little: those
// keep their value. One that stepped back far means that the CPU was reset, and all
// its values start anew.
func (s *stat) hold(out *Out, r *cpuRow, raw []uint64) {
	for i, v := range raw {
		if i < r.columns && v < r.value[i] && r.value[i]-v >= maxStepBack {
			copy(r.value[:], raw)
			return
		}
	}
	for i, v := range raw {
		if i >= r.columns || v >= r.value[i] {
			r.value[i] = v
		} else if v < r.raw[i] {
			s.faults.corrected(out, r.cpu)
		}
	}
}

func (r *cpuRow) set(out *Out, n int) {
	for r.known < n {
		m := &cpuModes[r.known]
		r.slots[r.known] = int32(out.Add(m.metric, Label{"cpu", r.cpu}, Label{"mode", m.mode}))
		r.known++
	}
	for i := range n {
		out.Set(int(r.slots[i]), int64(r.value[i]))
	}
	if n < r.columns {
		r.clear(out, n)
	}
	r.columns = n
}

// clear makes the columns from n on absent.
func (r *cpuRow) clear(out *Out, n int) {
	for _, slot := range r.slots[min(n, r.known):r.known] {
		out.Clear(int(slot))
	}
	r.columns = n
}
