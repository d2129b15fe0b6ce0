package tick

import (
	"math"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

const (
	// minReads and minWindow are what is looked at before a source's cadence is
	// changed: a machine that stands still for a moment is no source's fault.
	minReads  = 16
	minWindow = int64(10 * time.Second)
	// outliers is how many of a window's longest reads do not count.
	outliers = 2
	// hold is how long a cadence stays once it was changed.
	hold = int64(time.Minute)
	// margin is how much longer than now reads may take before a source that was
	// slowed is slowed once more.
	margin = 1.2
)

// guard follows what the reads of a source take. Only the tick goroutine touches it.
type guard struct {
	begin   int64 // when the window began
	reads   int64
	sum     int64           // what they took, ns
	longest [outliers]int64 // of them
	changed int64           // when the cadence was; 0 is never
}

func (g *guard) add(ns int64) {
	g.reads++
	g.sum += ns
	for i, n := range g.longest {
		if ns > n {
			g.longest[i], ns = ns, n
		}
	}
}

// mean is what a read of the window takes, but for the longest.
func (g *guard) mean() float64 {
	sum := g.sum
	for _, n := range g.longest {
		sum -= n
	}
	return float64(sum) / float64(g.reads-outliers)
}

// protect looks at a read of a source that ended now and took ns, and changes the
// source's cadence where it takes more than its share, or where it would take less even
// if its reads took half as much again: a cadence is not to go to and fro. Sources that
// block are not meant: no tick waits for them.
func (l *Loop) protect(s *source, ns, now int64) {
	g := &s.cost
	if g.reads == 0 {
		g.begin = now
	}
	g.add(ns)
	if g.reads < minReads || now-g.begin < minWindow {
		return
	}
	mean := g.mean()
	*g = guard{changed: g.changed}
	if g.changed != 0 && now-g.changed < hold {
		return
	}
	slots := func(factor float64) int64 {
		return max(s.own, slotsFor(factor*mean, l.cfg.Rate, l.cfg.Protect))
	}
	if slots(1) <= s.every && slots(1.5) >= s.every {
		return
	}
	need := slots(margin)
	slower := need > s.every
	s.every, g.changed = need, now
	s.slowed.Store(need > s.own)
	cadence := time.Duration(need * second / int64(l.cfg.Rate))
	if need == s.own {
		cadence = floored(s.spec.Cadence, l.cfg.FloorHz)
	}
	s.cadence.Store(int64(cadence))
	args := []any{"collector", s.spec.Name, "cost", time.Duration(mean), "share", l.cfg.Protect, "cadence", cadence}
	switch {
	case slower:
		l.log.Warn("source takes more than its share and is read less often", args...)
	case need > s.own:
		l.log.Info("source takes less and is read more often", args...)
	default:
		l.log.Info("source is read as often as it should be again", args...)
	}
}

// slotsFor is how many slots have to lie between two reads that take ns each, if they
// are to take no more than a share of the time. It is bounded by a day.
func slotsFor(ns float64, rate int, share float64) int64 {
	const day = 24 * 60 * 60
	n := math.Ceil(ns * float64(rate) / (share * float64(second)))
	return int64(min(max(n, 1), float64(day*rate)))
}

// floored is a source's cadence where every source is read floorHz times a second at
// least.
func floored(cadence time.Duration, floorHz int) time.Duration {
	if floorHz <= 0 {
		return cadence
	}
	return min(cadence, time.Second/time.Duration(floorHz))
}

// Planned is the cadence that a loop at rate, floorHz and protect, as in Config, would
// give to a source whose reads take cost, and whether that is slower than it should be.
func Planned(spec *collectors.Spec, cost time.Duration, rate, floorHz int, protect float64) (cadence time.Duration, slowed bool) {
	cadence = floored(spec.Cadence, floorHz)
	if protect <= 0 || spec.Blocking {
		return cadence, false
	}
	own := schedule{rate: int64(rate)}.slots(cadence)
	if need := slotsFor(float64(cost), rate, protect); need > own {
		return time.Duration(need * second / int64(rate)), true
	}
	return cadence, false
}

// slowed counts the sources that are slowed.
func (l *Loop) slowed() (n int64, ok bool) {
	for _, s := range l.sources {
		if s.slowed.Load() {
			n++
		}
	}
	return n, true
}

// selfCadence tells how often a source is read.
func (s *source) selfCadence(rate int) collectors.SelfMetric {
	m := gauge("collector_cadence_seconds", "Time between two reads of a source, longer than its own where it is slowed.",
		func() (int64, bool) { return max(s.cadence.Load(), second/int64(rate)), true })
	m.Metric.Unit, m.Metric.Kind, m.Metric.Div = "seconds", collectors.Signed, 1e9
	return m
}
