package tick

import (
	"errors"
	"slices"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

// Status is what a source is and how it does.
type Status struct {
	Name    string
	Reason  string // why its cadence is what it is
	Files   []string
	Cadence time.Duration // between two reads; 0 is every tick
	Slowed  bool          // it would be read more often if it took less
	// Success tells whether its last read was good; Error is why not.
	Success  bool
	Error    string
	Series   int    // that it has, absent ones included
	Reads    uint64 // so far
	Failures uint64
	Bytes    uint64        // of one read, on average
	Cost     time.Duration // of one read, the median of the last ones
}

// Sources tells how every source does. Safe for concurrent use.
func (l *Loop) Sources() []Status {
	all := make([]Status, len(l.sources))
	for i, s := range l.sources {
		all[i] = s.status()
	}
	return all
}

func (s *source) status() Status {
	st := Status{Name: s.spec.Name, Reason: s.spec.Reason, Files: s.spec.Files, Cadence: time.Duration(s.cadence.Load()),
		Slowed:  s.slowed.Load(),
		Success: s.success.Load(), Series: int(s.series.Load()), Reads: s.reads.Load(), Failures: s.failures.Load(),
		Cost: s.costs.median()}
	if text := s.problem.Load(); text != nil {
		st.Error = *text
	}
	if st.Reads > st.Failures {
		st.Bytes = s.out.Stats.Bytes.Load() / (st.Reads - st.Failures)
	}
	return st
}

// probePatience is how many deadlines a source has for all reads of a probe: a machine
// may be busy.
const probePatience = 5

// Probe opens every source, reads it some times and closes it, for people who ask
// what there is on this machine. A source that takes several times its deadline is
// reported as failed; its goroutine ends when the kernel lets go of it.
func Probe(specs []collectors.Spec, env collectors.Env, reads int) []Status {
	all := make([]Status, len(specs))
	for i := range specs {
		spec := specs[i]
		answer := make(chan Status, 1)
		go func() { answer <- probe(&spec, env, reads) }()
		patience := time.NewTimer(probePatience * time.Duration(deadline(&spec)))
		select {
		case all[i] = <-answer:
		case <-patience.C:
			all[i] = Status{Name: spec.Name, Reason: spec.Reason, Files: spec.Files, Cadence: spec.Cadence}
			all[i].Error = "it does not answer"
		}
		patience.Stop()
	}
	return all
}

func probe(spec *collectors.Spec, env collectors.Env, reads int) Status {
	s := &source{spec: *spec, out: collectors.NewOut(new(collectors.Schema), new(collectors.Row), 0)}
	s.cadence.Store(int64(spec.Cadence))
	src, err := open(spec, env)
	if err != nil {
		s.noteProblem(err)
		return s.status()
	}
	defer src.Close()
	for range max(reads, 1) {
		begin := time.Now()
		err = read(src, s.out)
		s.took(int64(time.Since(begin)), err)
		if s.noteProblem(err); errors.Is(err, errPanic) {
			break
		}
	}
	s.series.Store(int64(s.out.Len()))
	return s.status()
}

// noteProblem keeps why the source fails, or that it does not.
func (s *source) noteProblem(err error) {
	if err == nil {
		s.problem.Store(nil)
		return
	}
	text := err.Error()
	s.problem.Store(&text)
}

// median is of the last reads.
func (c *costs) median() time.Duration {
	n := min(c.n.Load(), uint64(len(c.ns)))
	if n == 0 {
		return 0
	}
	var ns [len(c.ns)]int64
	for i := range ns[:n] {
		ns[i] = c.ns[i].Load()
	}
	slices.Sort(ns[:n])
	return time.Duration(ns[n/2])
}
