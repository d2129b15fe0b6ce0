package collectors

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// selfDir is where the kernel tells of the reading process. It does not follow
// Env.Procfs: that is the machine that is watched, this is the watcher.
const selfDir = "/proc/self"

// ownCgroupRoot is where its control group is.
const ownCgroupRoot = "/sys/fs/cgroup"

var processMetrics = [...]Metric{
	{Name: "process_cpu_seconds_total", Type: Counter, Unit: "seconds", Div: 1e6,
		Help: "Total user and system CPU time spent in seconds."},
	{Name: "process_open_fds", Type: Gauge, Help: "Number of open file descriptors."},
	{Name: "process_max_fds", Type: Gauge, Help: "Maximum number of open file descriptors."},
	{Name: "process_virtual_memory_bytes", Type: Gauge, Unit: "bytes",
		Help: "Virtual memory size in bytes."},
	{Name: "process_virtual_memory_max_bytes", Type: Gauge, Unit: "bytes",
		Help: "Maximum amount of virtual memory available in bytes."},
	{Name: "process_resident_memory_bytes", Type: Gauge, Unit: "bytes",
		Help: "Resident memory size in bytes."},
	{Name: "process_start_time_seconds", Type: Gauge, Unit: "seconds", Div: userHZ,
		Help: "Start time of the process since unix epoch in seconds."},
	{Name: "process_threads", Type: Gauge, Help: "Number of threads of the process."},
}

// Places in processMetrics.
const (
	procCPU = iota
	procOpenFDs
	procMaxFDs
	procVirtual
	procVirtualMax
	procResident
	procStart
	procThreads
)

// exporter reports this process: what the kernel tells of it and what its own
// parts count.
type exporter struct {
	stat  *file // nil where /proc is not mounted
	fds   fdCount
	btime uint64 // looked up once, so that the start time cannot move
	page  uint64
	self  []SelfMetric
	netns netns
	group *ownCgroup

	slots     [len(processMetrics)]int
	selfSlots []int
	netnsSlot int
	known     bool

	used  unix.Rusage // here, for on some platforms the kernel's calls take them to the heap
	limit unix.Rlimit
}

func newExporter(env Env) (Source, error) {
	s := openExporter(env, selfDir)
	s.netns = whoseNet(env)
	why := map[netns]error{netnsContainer: errContainerNet, netnsHidden: errHiddenNet}[s.netns]
	switch {
	case why == nil || env.Logger == nil:
	case env.ContainerNetwork:
		env.Logger.Warn("a network is reported that is not the device's, as --container-network says", "err", why)
	default:
		env.Logger.Warn("the network that is seen is not the device's, and nothing of it is reported", "err", why)
	}
	return s, nil
}

func openExporter(env Env, dir string) *exporter {
	s := &exporter{group: openOwnCgroup(dir, ownCgroupRoot), self: env.Self, page: uint64(os.Getpagesize()), fds: fdCount{newDir(filepath.Join(dir, "fd"))}}
	if f, err := openFile(filepath.Join(dir, "stat"), 1<<10, true); err == nil {
		s.stat = f
	}
	if text, err := ReadFileSoon(filepath.Join(filepath.Dir(dir), "stat")); err == nil {
		s.btime, _ = findBtime(text)
	}
	return s
}

func (s *exporter) Read(out *Out) error {
	if !s.known {
		s.add(out)
	}
	for i := range s.self {
		if v, ok := s.self[i].Read(); ok {
			out.Set(s.selfSlots[i], v)
		} else {
			out.Clear(s.selfSlots[i])
		}
	}
	if s.netns == netnsHost || s.netns == netnsContainer {
		out.Set(s.netnsSlot, oneIf(s.netns == netnsHost))
	}
	s.usage(out)
	s.group.read(out)
	if n, ok := s.fds.count(); ok {
		out.Set(s.slots[procOpenFDs], n)
	}
	if s.stat == nil {
		return nil
	}
	text, err := s.stat.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *exporter) add(out *Out) {
	for i := range processMetrics {
		s.slots[i] = out.Add(&processMetrics[i])
	}
	for i := range s.self {
		m := &s.self[i]
		s.selfSlots = append(s.selfSlots, out.Add(&m.Metric, append([]Label(nil), m.Labels...)...))
	}
	if s.netns == netnsHost || s.netns == netnsContainer {
		s.netnsSlot = out.Add(&netnsIsHost)
	}
	s.known = true
}

// usage reports what system calls tell.
func (s *exporter) usage(out *Out) {
	ru, lim := &s.used, &s.limit
	if unix.Getrusage(unix.RUSAGE_SELF, ru) == nil {
		us := (ru.Utime.Nano() + ru.Stime.Nano()) / 1000
		out.Set(s.slots[procCPU], us)
	}
	if unix.Getrlimit(unix.RLIMIT_NOFILE, lim) == nil {
		out.Set(s.slots[procMaxFDs], int64(lim.Cur))
	}
	if unix.Getrlimit(unix.RLIMIT_AS, lim) == nil {
		out.Set(s.slots[procVirtualMax], int64(lim.Cur))
	}
}

// parse reads fields of /proc/self/stat by their number in proc(5). The second, the
// name, may hold anything, so the fields are counted from its closing bracket.
func (s *exporter) parse(out *Out, text []byte) error {
	const (
		first   = 3
		threads = 20
		start   = 22
		virtual = 23
		rss     = 24
	)
	at := bytes.LastIndexByte(text, ')') + 1
	if at == 0 {
		return fmt.Errorf("read %s: no process name", s.stat.path)
	}
	var v [rss + 1]uint64
	line, _, _ := cutLine(text[at:])
	pos := 0
	for i := first; i <= rss; i++ {
		from, end := field(line, pos)
		if from == end {
			return fmt.Errorf("read %s: %d fields", s.stat.path, i-1)
		}
		if n, _, f := number(line[:end], from); f == good {
			v[i] = n
		}
		pos = end
	}
	out.Set(s.slots[procThreads], int64(v[threads]))
	out.Set(s.slots[procVirtual], int64(v[virtual]))
	out.Set(s.slots[procResident], int64(v[rss]*s.page))
	if s.btime > 0 {
		out.Set(s.slots[procStart], int64(s.btime*userHZ+v[start]))
	}
	return nil
}

func (s *exporter) Close() error {
	s.stat.close()
	s.group.close()
	s.fds.close()
	return nil
}
