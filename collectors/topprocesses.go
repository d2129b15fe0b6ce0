package collectors

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

var (
	topCPU = Metric{Name: "node_top_processes_cpu_ratio", Type: Gauge, Kind: Float,
		Help: "CPU time that the processes of a name used, as CPUs, since the last read; only the names that used most."}
	topMemory = Metric{Name: "node_top_processes_resident_bytes", Type: Gauge, Unit: "bytes", Kind: Signed,
		Help: "Memory that the processes of a name hold; only the names that hold most."}
)

const (
	// topNames is how many names are reported at a time, by each measure.
	topNames = 10
	// maxTopNames bounds the names over the exporter's life, for each keeps two series;
	// maxTopProcesses the processes that are remembered from read to read.
	maxTopNames     = 256
	maxTopProcesses = 64 << 10
)

// topProcesses reports which programs use most CPU and memory. They are told by name,
// not by number: numbers are new all the time, and each would be a series for ever.
type topProcesses struct {
	dir   dir
	page  int64
	clock func() int64
	path  []byte
	buf   [1024]byte

	seen  map[int64]topProcess // by number
	gen   uint32
	last  int64 // when the last read was; 0 is never
	names map[string]*topName
	list  []*topName
	out   *Out // during a read

	each func([]byte, bool)
	more [2]func(a, b *topName) int // by each measure, the larger first
}

// Places of what is measured.
const (
	topByCPU = iota
	topByMemory
)

// topProcess is what a process had used at the last read. A number may be given to
// another, which has another start.
type topProcess struct {
	start, ticks int64
	gen          uint32
}

type topName struct {
	name   string
	v      [2]int64 // ticks since the last read, bytes
	slots  [2]int32 // slot + 1
	refuse bool     // the names are at their cap
}

func newTopProcesses(env Env) (Source, error) {
	s := &topProcesses{dir: newDir(env.Procfs), page: int64(os.Getpagesize()), seen: map[int64]topProcess{},
		names: map[string]*topName{}, clock: func() int64 { mono, _ := readPingClock(); return mono }}
	s.each = s.process
	for i := range s.more {
		s.more[i] = func(a, b *topName) int {
			if c := cmp.Compare(b.v[i], a.v[i]); c != 0 {
				return c
			}
			return strings.Compare(a.name, b.name)
		}
	}
	if err := s.dir.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir.path, err)
	}
	return s, nil
}

func (s *topProcesses) Read(out *Out) error {
	s.out = out
	s.gen++
	for _, n := range s.list {
		n.v = [2]int64{}
	}
	now := s.clock()
	if err := s.dir.each(s.each); err != nil {
		s.dir.close()
		return fmt.Errorf("read %s: %w", s.dir.path, err)
	}
	for pid, p := range s.seen {
		if p.gen != s.gen {
			delete(s.seen, pid)
		}
	}
	if s.last > 0 && now > s.last {
		s.report(topByCPU, &topCPU, float64(now-s.last)/float64(time.Second)*userHZ)
	}
	s.report(topByMemory, &topMemory, 0)
	s.last = now
	return nil
}

// process adds up one process. Kernel threads have no memory, and count as well.
func (s *topProcesses) process(name []byte, _ bool) {
	pid, ok := parseValue(name)
	if !ok || !allDigits(name) {
		return
	}
	s.path = append(append(append(append(s.path[:0], s.dir.path...), '/'), name...), "/stat\x00"...)
	text, errno := attr{path: s.path}.read(s.buf[:])
	if errno != 0 {
		return // it has ended
	}
	s.out.Stats.Bytes.Add(uint64(len(text)))
	comm, p, pages, ok := parseTopStat(text)
	if !ok {
		return
	}
	n := s.name(comm)
	n.v[topByMemory] += pages * s.page
	before, known := s.seen[pid]
	switch {
	case known && before.start == p.start:
		n.v[topByCPU] += max(p.ticks-before.ticks, 0)
	case s.last > 0:
		n.v[topByCPU] += p.ticks // all that it used, it used since the last read
	}
	if known || len(s.seen) < maxTopProcesses {
		p.gen = s.gen
		s.seen[pid] = p
	}
}

// name finds or makes the entry of a name. Those beyond the cap share one that is not
// reported.
func (s *topProcesses) name(comm []byte) *topName {
	if n := s.names[string(comm)]; n != nil {
		return n
	}
	if len(s.names) >= maxTopNames {
		s.out.Stats.Overflow.Add(1)
		if n := s.names[""]; n != nil {
			return n
		}
		comm = nil
	}
	n := &topName{name: label(comm), refuse: len(comm) == 0}
	s.names[string(comm)] = n
	s.list = append(s.list, n)
	return n
}

// report sets the series of those that are ahead by a measure, and clears the others'.
// What is measured is divided by per, unless that is 0.
func (s *topProcesses) report(by int, m *Metric, per float64) {
	slices.SortFunc(s.list, s.more[by])
	shown := 0
	for _, n := range s.list {
		v := n.v[by]
		if n.refuse || v <= 0 || shown == topNames {
			clearSlots(s.out, n.slots[by])
			continue
		}
		shown++
		if n.slots[by] == 0 {
			n.slots[by] = int32(s.out.Add(m, Label{"name", n.name})) + 1
		}
		if per > 0 {
			v = int64(math.Float64bits(float64(v) / per))
		}
		s.out.Set(int(n.slots[by]-1), v)
	}
}

// parseTopStat reads the name of a process, its start and CPU time in ticks, and its
// pages: fields 2, 22, 14 and 15, and 24 of proc_pid_stat(5). The name may hold
// anything, so that the fields are counted from its last bracket.
func parseTopStat(text []byte) (comm []byte, p topProcess, pages int64, ok bool) {
	const (
		first  = 3
		user   = 14
		system = 15
		start  = 22
		rss    = 24
	)
	from, to := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if from < 0 || to <= from+1 {
		return nil, p, 0, false
	}
	var v [rss + 1]int64
	at := to + 1
	for i := first; i <= rss; i++ {
		begin, end := field(text, at)
		if begin == end {
			return nil, p, 0, false
		}
		if n, good := parseValue(text[begin:end]); good {
			v[i] = n
		}
		at = end
	}
	if v[user] < 0 || v[system] < 0 || v[rss] < 0 || v[user]+v[system] < 0 {
		return nil, p, 0, false
	}
	return text[from+1 : to], topProcess{start: v[start], ticks: v[user] + v[system]}, v[rss], true
}

func (s *topProcesses) Close() error {
	s.dir.close()
	return nil
}
