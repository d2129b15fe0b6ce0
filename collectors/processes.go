package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

var (
	processThreads = Metric{Name: "node_processes_threads", Type: Gauge, Kind: Signed,
		Help: "Allocated threads in system"}
	processMaxThreads = Metric{Name: "node_processes_max_threads", Type: Gauge, Kind: Signed,
		Help: "Limit of threads in the system"}
	processPIDs = Metric{Name: "node_processes_pids", Type: Gauge, Kind: Signed, Help: "Number of PIDs"}
	processMax  = Metric{Name: "node_processes_max_processes", Type: Gauge, Kind: Signed,
		Help: "Number of max PIDs limit"}
	processStates = Metric{Name: "node_processes_state", Type: Gauge, Kind: Signed,
		Help: "Number of processes in each state."}
	threadStates = Metric{Name: "node_processes_threads_state", Type: Gauge, Kind: Signed,
		Help: "Number of threads in each state."}
)

// stateCount counts by state, which is a letter.
type stateCount struct {
	metric *Metric
	label  string
	n      [256]int64
	slots  [256]int32 // slot + 1
}

// processes counts the processes and threads of the machine by state. It reads a file
// for each, so it is not read at every tick, nor on the tick thread.
type processes struct {
	dir       dir
	limits    [2]*valueFile
	states    stateCount
	threads   stateCount
	slots     [2]int
	known     bool
	pids, sum int64
	path      []byte // of the process being read
	tasks     [4096]byte
	buf       [1024]byte
}

func newProcesses(env Env) (Source, error) {
	s := &processes{dir: newDir(env.Procfs),
		limits: [2]*valueFile{
			newValueFile(filepath.Join(env.Procfs, "sys/kernel/threads-max"), &processMaxThreads),
			newValueFile(filepath.Join(env.Procfs, "sys/kernel/pid_max"), &processMax)},
		states:  stateCount{metric: &processStates, label: "state"},
		threads: stateCount{metric: &threadStates, label: "thread_state"}}
	if err := s.dir.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir.path, err)
	}
	return s, nil
}

func (s *processes) Read(out *Out) error {
	s.pids, s.sum = 0, 0
	s.states.n, s.threads.n = [256]int64{}, [256]int64{}
	err := s.dir.each(func(name []byte, _ bool) {
		if allDigits(name) {
			s.process(name)
		}
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", s.dir.path, err)
	}
	for _, l := range s.limits {
		if err := l.read(out); err != nil {
			return err
		}
	}
	if !s.known {
		s.slots = [2]int{out.Add(&processPIDs), out.Add(&processThreads)}
		s.known = true
	}
	out.Set(s.slots[0], s.pids)
	out.Set(s.slots[1], s.sum)
	s.states.set(out)
	s.threads.set(out)
	return nil
}

// process reads one process and its threads. One that has ended meanwhile is none.
func (s *processes) process(pid []byte) {
	s.path = append(append(append(s.path[:0], s.dir.path...), '/'), pid...)
	dir := len(s.path)
	state, threads, ok := s.stat(dir)
	if !ok {
		return
	}
	s.pids++
	s.sum += threads
	s.states.n[state]++
	s.threads.n[state]++ // its first thread
	if threads < 2 {
		return
	}
	s.path = append(append(s.path[:dir], "/task"...), 0)
	fd, errno := openPath(s.path)
	if errno != 0 {
		return
	}
	defer unix.Close(fd)
	// A list that breaks off means that the process has ended.
	_ = list(fd, s.tasks[:], func(tid []byte, _ bool) {
		if bytes.Equal(tid, s.path[len(s.dir.path)+1:dir]) {
			return
		}
		s.path = append(append(s.path[:dir], "/task/"...), tid...)
		if state, _, ok := s.stat(len(s.path)); ok {
			s.threads.n[state]++
		}
	})
}

// stat reads the file stat in the directory that path[:dir] is.
func (s *processes) stat(dir int) (state byte, threads int64, ok bool) {
	s.path = append(append(s.path[:dir], "/stat"...), 0)
	text, errno := attr{path: s.path}.read(s.buf[:])
	if errno != 0 {
		return 0, 0, false
	}
	return parseProcessStat(text)
}

// parseProcessStat finds the state and the number of threads, fields 3 and 20 of
// proc_pid_stat(5), behind the name, which may hold anything.
func parseProcessStat(text []byte) (state byte, threads int64, ok bool) {
	const threadsField = 20
	at := bytes.LastIndexByte(text, ')') + 1
	start, end := field(text, at)
	if at == 0 || end-start != 1 {
		return 0, 0, false
	}
	state = text[start]
	for range threadsField - 3 {
		start, end = field(text, end)
	}
	threads, ok = parseValue(text[start:end])
	return state, threads, ok && threads >= 0
}

// set reports every state that ever was.
func (c *stateCount) set(out *Out) {
	for state, n := range c.n {
		if n > 0 && c.slots[state] == 0 {
			c.slots[state] = int32(out.Add(c.metric, Label{c.label, label([]byte{byte(state)})})) + 1
		}
		if c.slots[state] > 0 {
			out.Set(int(c.slots[state]-1), n)
		}
	}
}

func (s *processes) Close() error {
	s.dir.close()
	for _, l := range s.limits {
		l.close()
	}
	return nil
}
