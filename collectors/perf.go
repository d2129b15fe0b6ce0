package collectors

import (
	"errors"
	"fmt"
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

// perfCPU is a CPU: its series, and what is open on it now.
type perfCPU struct {
	label string
	sets  [len(perfGroups)]perfSet
	open  []perfOpen
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

func (s *perf) Close() error {
	for _, c := range s.cpus {
		s.closeCPU(c)
	}
	s.online.close()
	return nil
}
