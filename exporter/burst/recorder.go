package burst

import (
	"sync"

	"github.com/ticktier/ticktier/collectors"
)

// maxSeries bounds the series that are followed: each takes about a kilobyte, and a
// dozen lines of text. On a machine with more, the first ones are, and what comes later
// takes the place of what is gone.
const maxSeries = 512

// Recorder follows ticks. Append and Timing are called by one goroutine at a time;
// everything is safe for concurrent use.
type Recorder struct {
	schema *collectors.Schema
	fixed  [familyCount]Family

	mu       sync.Mutex // guards all below
	known    int        // slots that were looked at
	now      int64      // of the newest tick
	cpus     []cpu
	gauges   []gauge
	byKey    map[ident]int // place in gauges or cpus
	times    [3]histogram
	lastRead [64]int64 // by source, when it was read last; −1 for never
	present  []uint64  // of the newest tick
	followed int
	left     map[ident]bool // those that are not followed, for there are too many
	visits   [maxScrapers]visit
	visited  uint64
}

type ident struct {
	family int
	label  string
}

// cpu is the modes of a CPU in /proc/stat.
type cpu struct {
	label  collectors.Label
	source uint8
	modes  []mode
	busy   histogram
	soft   histogram
}

type mode struct {
	slot       int32
	last       int64
	seen       bool
	idle, soft bool
}

// how is what a gauge makes of two values of a series.
type how uint8

const (
	rate  how = iota // per second
	delta            // per tick
	level            // the value itself
)

// gauge is one series that is turned into one value a tick.
type gauge struct {
	family int
	how    how
	label  collectors.Label
	metric *collectors.Metric
	source uint8
	slot   int32
	last   int64
	seen   bool
	h      histogram
}

// New makes a recorder of ticks on a schema.
func New(schema *collectors.Schema) *Recorder {
	r := &Recorder{schema: schema, fixed: families(), byKey: map[ident]int{}, left: map[ident]bool{}}
	for i := range r.lastRead {
		r.lastRead[i] = -1
	}
	for i := range r.times {
		r.times[i] = r.histogram(delay + i)
	}
	return r
}

func (r *Recorder) histogram(family int) histogram {
	return histogram{start: r.now, classic: make([]uint64, len(r.fixed[family].Bounds)+1)}
}

// Append takes a tick, as tick.Sink describes.
func (r *Recorder) Append(_ uint64, mono int64, read uint64, values []int64, present []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = mono
	if len(values) > r.known {
		r.learn(len(values))
	}
	r.present = append(r.present[:0], present...)
	for i := range r.cpus {
		if c := &r.cpus[i]; read>>(c.source&63)&1 == 1 {
			r.cpu(c, values)
		}
	}
	for i := range r.gauges {
		if g := &r.gauges[i]; read>>(g.source&63)&1 == 1 {
			r.gauge(g, values, mono-r.lastRead[g.source&63], r.lastRead[g.source&63] >= 0)
		}
	}
	for s := range r.lastRead {
		if read>>s&1 == 1 {
			r.lastRead[s] = mono
		}
	}
}

// Overflow is how many series are not followed, for there are too many.
func (r *Recorder) Overflow() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.overflow()
}

// overflow is Overflow with the lock held. A CPU has two series.
func (r *Recorder) overflow() (n uint64) {
	for id := range r.left {
		if n++; id.family == busy {
			n++
		}
	}
	return n
}

func (r *Recorder) has(slot int32) bool { return r.present[slot>>6]>>(slot&63)&1 == 1 }

// cpu observes the shares of a tick. Time is what the kernel says went by.
func (r *Recorder) cpu(c *cpu, values []int64) {
	var all, idle, soft int64
	whole := true // every mode is there now and was before
	for i := range c.modes {
		m := &c.modes[i]
		v, here := values[m.slot], r.has(m.slot)
		d := v - m.last
		whole = whole && here && m.seen && d >= 0
		m.last, m.seen = v, here
		all += d
		if m.idle {
			idle += d
		}
		if m.soft {
			soft += d
		}
	}
	if !whole || all <= 0 {
		return
	}
	c.busy.observe(float64(all-idle)/float64(all), r.fixed[busy].Bounds)
	c.soft.observe(float64(soft)/float64(all), r.fixed[softirq].Bounds)
}

func (r *Recorder) gauge(g *gauge, values []int64, took int64, timed bool) {
	v, here := values[g.slot], r.has(g.slot)
	d := v - g.last
	before := g.seen
	g.last, g.seen = v, here
	b := r.fixed[g.family].Bounds
	switch {
	case !here:
	case g.how == level:
		g.h.observe(g.metric.Value(v), b)
	case !before || d < 0 || !timed || took <= 0: // the first, or a reset
	case g.how == delta:
		g.h.observe(g.metric.Value(d), b)
	default:
		g.h.observe(g.metric.Value(d)/(float64(took)/1e9), b)
	}
}

// Timing takes the times of a tick: how long after its slot it began, how long it
// took, and, where the loop slept before it, how long after it was to wake it did;
// −1 where it did not sleep. All are nanoseconds.
func (r *Recorder) Timing(late, took, wake int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, ns := range [...]int64{late, took, wake} {
		r.times[i].observe(float64(ns)/1e9, r.fixed[delay+i].Bounds)
	}
}
