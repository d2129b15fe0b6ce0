package collectors

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// fakePerf is a kernel whose counters say what a test wants.
type fakePerf struct {
	refuse func(e *perfEvent, leader int) error
	fds    []perfFD // by descriptor
	closed int
	gone   bool // reads give nothing
}

type perfFD struct {
	event   *perfEvent
	cpu     int
	members []int
	count   uint64
	times   [2]uint64
}

func (k *fakePerf) kernel() perfKernel {
	return perfKernel{
		open: func(e *perfEvent, cpu, leader int) (int, error) {
			if err := k.refuse(e, leader); err != nil {
				return -1, err
			}
			fd := len(k.fds)
			k.fds = append(k.fds, perfFD{event: e, cpu: cpu})
			if leader < 0 {
				leader = fd
			}
			k.fds[leader].members = append(k.fds[leader].members, fd)
			return fd, nil
		},
		read: func(fd int, buf []byte) (int, error) {
			if k.gone {
				return 0, nil
			}
			f := &k.fds[fd]
			b := binary.NativeEndian.AppendUint64(buf[:0], uint64(len(f.members)))
			b = binary.NativeEndian.AppendUint64(b, f.times[0])
			b = binary.NativeEndian.AppendUint64(b, f.times[1])
			for _, m := range f.members {
				b = binary.NativeEndian.AppendUint64(b, k.fds[m].count)
			}
			return len(b), nil
		},
		close: func(int) error { k.closed++; return nil },
	}
}

// move counts on a CPU: events of a kind by so much, all groups for so long.
func (k *fakePerf) move(cpu int, typ uint32, by, enabled, running uint64) {
	for i := range k.fds {
		if f := &k.fds[i]; f.cpu == cpu && f.event.typ == typ {
			f.count += by
			f.times[0] += enabled
			f.times[1] += running
		}
	}
}

func openFakePerf(t *testing.T, k *fakePerf, online string) (*tree, *probe) {
	t.Helper()
	tr := newTree(t)
	tr.write("sys/devices/system/cpu/online", online)
	src, err := openPerf(tr.env(), k.kernel())
	if err != nil {
		t.Fatal(err)
	}
	return tr, newProbe(t, src)
}

// A PMU that is shared is scaled by the time it counted, never backwards; events that
// there are not, or that never ran, are absent.
func TestPerf(t *testing.T) {
	k := &fakePerf{refuse: func(e *perfEvent, leader int) error {
		switch {
		case e.typ == unix.PERF_TYPE_HW_CACHE && e.config&0xff != unix.PERF_COUNT_HW_CACHE_LL:
			return unix.ENOENT
		case e.typ == unix.PERF_TYPE_HARDWARE && e.config == unix.PERF_COUNT_HW_BRANCH_MISSES && leader >= 0:
			return unix.EINVAL // does not go with the group
		}
		return nil
	}}
	tr, p := openFakePerf(t, k, "0,2\n")
	for _, cpu := range []int{0, 2} {
		k.move(cpu, unix.PERF_TYPE_SOFTWARE, 7, 100, 100)
		k.move(cpu, unix.PERF_TYPE_HARDWARE, 10, 100, 50)
		k.move(cpu, unix.PERF_TYPE_HW_CACHE, 0, 100, 0)
	}
	got := p.read()
	want(t, got, "page_faults", map[string]float64{`node_perf_page_faults_total{cpu="0"}`: 7, `node_perf_page_faults_total{cpu="2"}`: 7})
	want(t, got, "instructions_total{cpu=\"0\"", map[string]float64{`node_perf_instructions_total{cpu="0"}`: 20, `node_perf_branch_instructions_total{cpu="0"}`: 20})
	want(t, got, "branch_misses", map[string]float64{`node_perf_branch_misses_total{cpu="0"}`: 20, `node_perf_branch_misses_total{cpu="2"}`: 20})
	want(t, got, "cache_ll", map[string]float64{})
	want(t, got, "cache_l1d", map[string]float64{})
	want(t, got, `seconds_total{cpu="2",group="core"`, map[string]float64{
		`node_perf_enabled_seconds_total{cpu="2",group="core"}`: 1e-7, `node_perf_running_seconds_total{cpu="2",group="core"}`: 5e-8})

	// All the time now: a total scaled anew would step back from 20 to 18.
	k.move(0, unix.PERF_TYPE_HARDWARE, 5, 100, 100)
	want(t, p.read(), `cpucycles_total{cpu="0"`, map[string]float64{`node_perf_ref_cpucycles_total{cpu="0"}`: 25, `node_perf_cpucycles_total{cpu="0"}`: 25})

	// A CPU goes, and comes back with counters at zero.
	opened := len(k.fds)
	tr.write("sys/devices/system/cpu/online", "0\n")
	want(t, p.read(), `cpu="2"`, map[string]float64{})
	if k.closed != opened/2 {
		t.Errorf("%d of %d descriptors were closed, want half", k.closed, opened)
	}
	tr.write("sys/devices/system/cpu/online", "0,2\n")
	slots := p.schema.Len()
	k.move(2, unix.PERF_TYPE_SOFTWARE, 1, 100, 100)
	k.move(2, unix.PERF_TYPE_HARDWARE, 1, 100, 100)
	p.read() // opens them
	k.move(2, unix.PERF_TYPE_SOFTWARE, 3, 100, 100)
	want(t, p.read(), `page_faults_total{cpu="2"`, map[string]float64{`node_perf_page_faults_total{cpu="2"}`: 10})
	if p.schema.Len() != slots {
		t.Errorf("%d series, there were %d", p.schema.Len(), slots)
	}

	k.gone = true
	want(t, p.read(), "page_faults", map[string]float64{})
	if n := testing.AllocsPerRun(20, func() { _ = p.src.Read(p.out) }); n != 0 {
		t.Errorf("%v allocations a read", n)
	}
}

// Without privilege there is no source, and the reason is told.
func TestPerfRefused(t *testing.T) {
	tr := newTree(t)
	tr.write("sys/devices/system/cpu/online", "0\n")
	k := &fakePerf{refuse: func(*perfEvent, int) error { return unix.EACCES }}
	if _, err := openPerf(tr.env(), k.kernel()); !errors.Is(err, unix.EACCES) {
		t.Errorf("got %v", err)
	}
}

// The kernel of this machine counts context switches, if it lets us.
func TestPerfOfThisMachine(t *testing.T) {
	src, err := newPerf(thisMachine())
	if err != nil {
		t.Skip(err)
	}
	p := newProbe(t, src)
	p.read()
	for range 100 {
		var ts = unix.Timespec{Nsec: 1000}
		_ = unix.Nanosleep(&ts, nil)
	}
	var switches float64
	for name, v := range p.read() {
		if len(name) > 33 && name[:33] == "node_perf_context_switches_total{" {
			switches += v
		}
	}
	if switches < 100 {
		t.Errorf("%v context switches", switches)
	}
}

func FuzzPerf(f *testing.F) {
	f.Add(make([]byte, 8*(perfHead+maxPerfEvents)), uint8(5))
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, 9}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, events uint8) {
		o := perfOpen{}
		for i := range min(int(events), maxPerfEvents-1) + 1 {
			o.events = append(o.events, i)
		}
		c := &perfCPU{}
		before := c.sets
		if !o.parse(c, b) {
			if c.sets != before {
				t.Error("a bad read was counted")
			}
			return
		}
		before = c.sets
		if o.parse(c, b); c.sets != before {
			t.Error("the same counts counted twice")
		}
	})
}
