package tick

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

// errPanic is wrapped by the error of a source whose read panicked.
var errPanic = errors.New("the source panicked")

// source is one source on the schedule. Only the tick goroutine touches it, but for
// what is marked.
type source struct {
	spec  collectors.Spec
	bit   uint64
	every int64 // slots between two reads
	next  int64 // the slot at or after which it is read again
	phase int64
	own   int64 // slots between two reads where it is not slowed
	cost  guard // what its reads take, where sources may be slowed

	src     collectors.Source // nil while it is not there
	out     *collectors.Out
	retryAt int64 // monotonic time before which a broken source is left alone
	failing bool  // its last attempt failed, and the log says so
	fresh   bool  // just opened, so read at once
	slow    bool  // its last read kept the tick for longer than its deadline

	worker *worker // of a blocking source
	busy   bool    // the worker was asked and has not answered
	since  int64   // when it was asked
	late   bool    // its deadline passed and was reported
	slots  []int32 // its series when it last answered

	// Atomic: written by the tick goroutine, read by anyone.
	success  atomic.Bool
	tried    atomic.Bool
	duration atomic.Int64  // of the last read, ns
	spent    atomic.Uint64 // in all reads, ns
	failures atomic.Uint64
	series   atomic.Int64
	costs    costs
	problem  atomic.Pointer[string] // why it fails; nil while it does not
	reads    atomic.Uint64
	cadence  atomic.Int64 // between two reads, ns; 0 is every tick
	slowed   atomic.Bool
}

// costs are how long the last reads took, in ns. One goroutine adds.
type costs struct {
	n  atomic.Uint64
	ns [64]atomic.Int64
}

func (c *costs) add(ns int64) {
	n := c.n.Load()
	c.ns[n%uint64(len(c.ns))].Store(ns)
	c.n.Store(n + 1)
}

// due tells whether the source is to be read in the slot, and if so plans its next
// read. The plan keeps its place in the cadence even if slots were missed.
func (s *source) due(slot int64) bool {
	if slot < s.next {
		return false
	}
	s.next = slot + s.every - (slot+s.phase)%s.every
	return true
}

// open makes the source. A panic is an error.
func open(spec *collectors.Spec, env collectors.Env) (src collectors.Source, err error) {
	defer func() {
		if p := recover(); p != nil {
			src, err = nil, fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
		}
	}()
	src, err = spec.New(env)
	if err == nil && src == nil {
		err = errors.New("the source is nil")
	}
	return src, err
}

// read reads once. A panic is an error.
func read(src collectors.Source, out *collectors.Out) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
		}
	}()
	return src.Read(out)
}

// took accounts for one attempt.
func (s *source) took(d int64, err error) {
	s.tried.Store(true)
	s.success.Store(err == nil)
	s.duration.Store(d)
	s.spent.Add(uint64(max(d, 0)))
	s.reads.Add(1)
	if err != nil {
		s.failures.Add(1)
		return
	}
	s.costs.add(d)
}

// phases spreads the sources that are read less often than every slot over the slots
// of their cadence.
func phases(sources []*source) {
	n := map[int64]int64{}
	for _, s := range sources {
		n[s.every]++
	}
	i := map[int64]int64{}
	for _, s := range sources {
		s.phase = i[s.every] * s.every / n[s.every]
		i[s.every]++
	}
}

// deadline is the source's, or a second where it has none.
func deadline(spec *collectors.Spec) int64 {
	if spec.Deadline <= 0 {
		return int64(time.Second)
	}
	return int64(spec.Deadline)
}
