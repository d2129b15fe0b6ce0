package collectors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

var (
	perfEnabled = Metric{Name: "node_perf_enabled_seconds_total", Type: Counter, Unit: "seconds", Div: 1e9,
		Help: "Time for which a group of events was to be counted."}
	perfRunning = Metric{Name: "node_perf_running_seconds_total", Type: Counter, Unit: "seconds", Div: 1e9,
		Help: "Time for which a group of events was counted; for the rest of the time its counts are estimates."}
)

const (
	// perfFormat has one read of a leader give the whole group, and its times.
	perfFormat = unix.PERF_FORMAT_GROUP | unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING
	// perfHead is the numbers before the counts: how many there are, and two times.
	perfHead = 3
	// maxPerfCPUs bounds the descriptors: some thirty for each CPU.
	maxPerfCPUs = 256
)

// perfKernel is how events are opened and read; tests have another.
type perfKernel struct {
	open  func(e *perfEvent, cpu, leader int) (fd int, err error)
	read  func(fd int, buf []byte) (int, error)
	close func(fd int) error
}

func realPerf() perfKernel {
	return perfKernel{read: unix.Read, close: unix.Close, open: func(e *perfEvent, cpu, leader int) (int, error) {
		attr := unix.PerfEventAttr{Type: e.typ, Config: e.config, Size: unix.PERF_ATTR_SIZE_VER0, Read_format: perfFormat}
		return unix.PerfEventOpen(&attr, -1, cpu, leader, unix.PERF_FLAG_FD_CLOEXEC)
	}}
}

// maxPerfEvents is the most events of a group.
const maxPerfEvents = 5

// perfSet is what a group has on one CPU, in the order of perfGroups. Its slots and
// sums stay when the CPU goes.
type perfSet struct {
	counts [maxPerfEvents]perfCount
	times  [2]perfCount // enabled, running
}

type perfCount struct {
	slot int32 // slot + 1
	sum  uint64
}

// perfCPU is a CPU: its series, and what is open on it now.
type perfCPU struct {
	label string
	sets  [len(perfGroups)]perfSet
	open  []perfOpen
}

// perfOpen is events that are counted and read together.
type perfOpen struct {
	group  int   // of perfGroups
	events []int // of the group
	fds    []int // the leader's first
	// What the kernel said at the last read.
	enabled, running uint64
	values           [maxPerfEvents]uint64
}

// perf counts events of the CPUs. A count is what the counter moved since the last
// read, times what part of the time it did not count in, so that it never steps back,
// as a total that is scaled anew at each read does.
type perf struct {
	kernel perfKernel
	online *file
	list   []byte // of CPUs, as it was last
	cpus   map[int]*perfCPU
	order  []int
	buf    [8 * (perfHead + maxPerfEvents)]byte
}

func newPerf(env Env) (Source, error) {
	return openPerf(env, realPerf())
}

func openPerf(env Env, kernel perfKernel) (Source, error) {
	s := &perf{kernel: kernel, cpus: map[int]*perfCPU{},
		online: laterFile(filepath.Join(env.Sysfs, "devices/system/cpu/online"), 256, true)}
	err := s.plug()
	for _, c := range s.cpus {
		if len(c.open) > 0 {
			return s, nil
		}
	}
	s.Close()
	if err == nil {
		err = errors.New("this machine counts no events")
	}
	return nil, fmt.Errorf("open performance events: %w", err)
}

// plug opens the events of CPUs that are there now and closes those of CPUs that are
// not. The error is why events could not be opened, if any.
func (s *perf) plug() error {
	text, err := s.online.read()
	if err != nil {
		return err
	}
	if len(s.list) > 0 && string(text) == string(s.list) {
		return nil
	}
	s.list = append(s.list[:0], text...)
	ids := cpuList(text)
	s.order = ids[:min(len(ids), maxPerfCPUs)]
	for id, c := range s.cpus {
		if !slices.Contains(s.order, id) {
			s.closeCPU(c)
		}
	}
	for _, id := range s.order {
		c := s.cpus[id]
		if c == nil {
			c = &perfCPU{label: strconv.Itoa(id)}
			s.cpus[id] = c
		}
		if len(c.open) > 0 {
			continue
		}
		if e := s.openCPU(c, id); e != nil {
			err = e
		}
	}
	return err
}

// openCPU opens what this CPU can count. An event that does not go with its group is
// counted on its own.
func (s *perf) openCPU(c *perfCPU, cpu int) (err error) {
	for i := range perfGroups {
		lead := -1 // of c.open
		for j := range perfGroups[i].events {
			e := &perfGroups[i].events[j]
			leader := -1
			if lead >= 0 {
				leader = c.open[lead].fds[0]
			}
			fd, e1 := s.kernel.open(e, cpu, leader)
			switch {
			case e1 == nil && lead >= 0:
				o := &c.open[lead]
				o.fds, o.events = append(o.fds, fd), append(o.events, j)
				continue
			case e1 != nil && lead >= 0:
				fd, e1 = s.kernel.open(e, cpu, -1)
			}
			if e1 != nil {
				err = e1
				continue
			}
			c.open = append(c.open, perfOpen{group: i, events: []int{j}, fds: []int{fd}})
			if lead < 0 {
				lead = len(c.open) - 1
			}
		}
	}
	return err
}

func (s *perf) closeCPU(c *perfCPU) {
	for i := range c.open {
		fds := c.open[i].fds
		for j := len(fds) - 1; j >= 0; j-- { // the leader last
			_ = s.kernel.close(fds[j])
		}
	}
	c.open = c.open[:0]
}

func (s *perf) Read(out *Out) error {
	if err := s.plug(); err != nil && len(s.order) == 0 {
		return err
	}
	for _, c := range s.cpus {
		if len(c.open) == 0 {
			c.clear(out)
		}
	}
	for _, id := range s.order {
		c := s.cpus[id]
		for i := range c.open {
			o := &c.open[i]
			n, err := s.kernel.read(o.fds[0], s.buf[:])
			if n = max(n, 0); err != nil || !o.parse(c, s.buf[:n]) {
				o.clear(out, c)
				continue
			}
			out.Stats.Bytes.Add(uint64(n))
			o.set(out, c)
		}
	}
	return nil
}

// parse adds up what a read gave: the number of events, the times for which they were
// to be counted and were, and a count for each.
func (o *perfOpen) parse(c *perfCPU, b []byte) bool {
	if len(b) < 8*(perfHead+len(o.events)) || binary.NativeEndian.Uint64(b) != uint64(len(o.events)) {
		return false
	}
	enabled, running := binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])
	toCount, counted := moved(enabled, o.enabled), moved(running, o.running)
	o.enabled, o.running = enabled, running
	set := &c.sets[o.group]
	for k, j := range o.events {
		v := binary.NativeEndian.Uint64(b[8*(perfHead+k):])
		set.counts[j].sum += scaled(moved(v, o.values[k]), toCount, counted)
		o.values[k] = v
	}
	if o.events[0] == 0 || len(o.events) > 1 {
		set.times[0].sum += toCount
		set.times[1].sum += counted
	}
	return true
}

// moved is by how much a count grew.
func moved(now, before uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}

// scaled is n × enabled ÷ running, an estimate of what would have been counted all
// the time.
func scaled(n, enabled, running uint64) uint64 {
	if running == 0 || running >= enabled {
		return n
	}
	hi, lo := bits.Mul64(n, enabled)
	if hi >= running {
		return n // absurd
	}
	q, _ := bits.Div64(hi, lo, running)
	return q
}

// set reports the group, if it was ever counted: a group that does not fit into the
// machine's counters never is, and its zeros are no counts.
func (o *perfOpen) set(out *Out, c *perfCPU) {
	if o.running == 0 {
		o.clear(out, c)
		return
	}
	set := &c.sets[o.group]
	for _, j := range o.events {
		set.counts[j].set(out, &perfGroups[o.group].events[j].metric, c.label, "")
	}
	name := perfGroups[o.group].name
	set.times[0].set(out, &perfEnabled, c.label, name)
	set.times[1].set(out, &perfRunning, c.label, name)
}

func (p *perfCount) set(out *Out, m *Metric, cpu, group string) {
	if p.slot == 0 {
		p.slot = int32(out.Add(m, Label{"cpu", cpu}, Label{"group", group})) + 1
	}
	out.Set(int(p.slot-1), int64(p.sum))
}

func (p *perfCount) clear(out *Out) {
	if p.slot > 0 {
		out.Clear(int(p.slot - 1))
	}
}

func (o *perfOpen) clear(out *Out, c *perfCPU) {
	for _, j := range o.events {
		c.sets[o.group].counts[j].clear(out)
	}
}

// clear ends the series of a CPU that is gone.
func (c *perfCPU) clear(out *Out) {
	for i := range c.sets {
		for j := range c.sets[i].counts {
			c.sets[i].counts[j].clear(out)
		}
		c.sets[i].times[0].clear(out)
		c.sets[i].times[1].clear(out)
	}
}

func (s *perf) Close() error {
	for _, c := range s.cpus {
		s.closeCPU(c)
	}
	s.online.close()
	return nil
}
