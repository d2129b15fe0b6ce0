package query

import (
	"math"

	"github.com/prometheus/prometheus/promql"
)

// total folds the buckets and the raw samples of one range, in time order, into
// the answer of a range function.
type total struct {
	fn     string
	rng    int64
	lo, hi int64

	n             float64 // samples
	sum, c        float64 // compensated
	min, max      float64
	resets        float64
	grown         float64 // reset-aware increase, or plain difference for delta
	firstT, lastT int64
	first, last   float64
	some          bool    // there is a first and a last
	cut           bool    // a bucket was cut at an edge of the range
	spare         *bucket // for min and max: a bucket to use when there is no other
	lacking       bool    // a bucket does not know what the function asks for
	// prev is the last known sample of a gauge before the range or within.
	prev    promql.FPoint
	hasPrev bool

	// The last two raw samples or, after a bucket, its mean slope: for irate.
	slope, step float64
	before      promql.FPoint
	rawRun      int
}

func (a *total) init(s *selector, lo, hi int64) {
	*a = total{fn: s.fn, rng: s.rng, lo: lo, hi: hi, min: math.NaN(), max: math.NaN()}
}

// counts reports whether the function is about a counter.
func (a *total) counts() bool { return a.fn != "delta" && a.fn != "idelta" }

func (a *total) addSum(v float64) {
	t := a.sum + v
	switch {
	case math.IsInf(t, 0):
		a.c = 0
	case math.Abs(a.sum) >= math.Abs(v):
		a.c += (a.sum - t) + v
	default:
		a.c += (v - t) + a.sum
	}
	a.sum = t
}

func (a *total) widen(lo, hi float64) {
	if lo < a.min || math.IsNaN(a.min) {
		a.min = lo
	}
	if hi > a.max || math.IsNaN(a.max) {
		a.max = hi
	}
}

// addRaw takes raw samples, which lie in the range.
func (a *total) addRaw(list []promql.FPoint) {
	for _, p := range list {
		a.n++
		switch a.fn {
		case "sum_over_time", "avg_over_time":
			a.addSum(p.F)
		case "min_over_time", "max_over_time":
			a.widen(p.F, p.F)
		case "rate", "increase", "delta", "irate", "idelta", "resets":
			a.follow(p.T, p.F)
			a.last, a.lastT = p.F, p.T
			if a.rawRun++; a.rawRun > 1 {
				a.slope, a.step = p.F-a.before.F, float64(p.T-a.before.T)
				if a.counts() && p.F < a.before.F {
					a.slope = p.F
				}
			}
			a.before = p
		}
	}
}

// follow steps to a first value v at t from the last one, if there is any.
func (a *total) follow(t int64, v float64) {
	if !a.some {
		a.first, a.firstT, a.some = v, t, true
		return
	}
	a.grown += v - a.last
	if v < a.last {
		a.resets++
		if a.counts() {
			a.grown += a.last
		}
	}
}

// addBucket takes a bucket that overlaps the range.
func (a *total) addBucket(b *bucket, res int64) {
	end := b.start + res
	switch a.fn {
	case "count_over_time", "sum_over_time", "avg_over_time":
		share := float64(min(end, a.hi)-max(b.start, a.lo)) / float64(res)
		a.addSum(b.sum * share)
		a.n += b.count * share
	case "min_over_time", "max_over_time":
		if b.hists != nil {
			a.lacking = true // of floats next to histograms no extremes are kept
			return
		}
		// Of the buckets that a range cuts, the one whose end lies in it counts as
		// a whole, so that ranges in a row show every extreme once.
		if end <= a.hi || a.rng < res {
			a.n++
			a.widen(b.min, b.max)
		} else {
			a.spare = b
		}
	default:
		a.addCounter(b)
	}
}

// addCounter takes what a bucket says of a counter or, for delta, of a gauge: its
// first and last samples and what it grew in between; of a bucket that is cut by
// an edge of the range, the part within, on a straight line.
func (a *total) addCounter(b *bucket) {
	if b.lacksFirst() {
		a.addLast(b)
		return
	}
	from, to := max(b.firstT, a.lo), min(b.lastT, a.hi)
	if from > to {
		return
	}
	grown, first, last, resets, n := b.increase(), b.first, b.last, b.resets, b.count
	if math.IsNaN(resets) {
		resets = 0
		a.lacking = a.lacking || a.fn == "resets"
	}
	if !a.counts() {
		grown = b.last - b.first
	}
	if from > b.firstT || to < b.lastT {
		span := float64(b.lastT - b.firstT)
		head, tail := float64(from-b.firstT)/span, float64(b.lastT-to)/span
		a.cut = true
		// An end that is not cut stays what it is to the last bit: a next sample that
		// is less by a rounding would be a reset.
		if from > b.firstT {
			first += grown * head
		}
		if grown *= 1 - head - tail; to < b.lastT {
			last = first + grown
		}
		n *= 1 - head - tail
		if a.fn == "resets" && to < b.lastT && a.rng >= b.lastT-b.firstT {
			resets = 0 // counted by the range that the bucket's end lies in
		}
	}
	a.follow(from, first)
	a.grown += grown
	a.resets += resets
	a.n += n
	a.last, a.lastT = last, to
	if b.lastT > b.firstT {
		a.slope, a.step = b.increase(), float64(b.lastT-b.firstT)
		if !a.counts() {
			a.slope = (b.last - b.first) / max(b.count-1, 1)
		}
	}
	a.rawRun = 0
}

// addBefore takes the bucket before the range, for gauges, of which buckets keep
// the last sample only.
func (a *total) addBefore(b *bucket) {
	if b != nil && b.points > 0 {
		a.prev, a.hasPrev = promql.FPoint{T: b.lastT, F: b.last}, true
	}
}

// addLast takes a bucket of which only the last sample is known. In between, and
// at the ends of the range, the gauge is on straight lines.
func (a *total) addLast(b *bucket) {
	a.lacking = true
	at := promql.FPoint{T: b.lastT, F: b.last}
	prev, has := a.prev, a.hasPrev
	a.prev, a.hasPrev = at, true
	if at.T <= a.lo {
		return
	}
	line := func(t int64) promql.FPoint {
		return promql.FPoint{T: t, F: prev.F + (at.F-prev.F)*float64(t-prev.T)/float64(at.T-prev.T)}
	}
	if has && !a.some && prev.T <= a.lo {
		from := line(a.lo)
		a.follow(from.T, from.F)
		a.last, a.lastT, a.cut = from.F, from.T, true
	}
	to := at
	if at.T > a.hi {
		if !has {
			return
		}
		to, a.cut = line(a.hi), true
	}
	a.follow(to.T, to.F)
	a.last, a.lastT = to.F, to.T
	a.n += b.count
	if has {
		a.slope, a.step = at.F-prev.F, float64(at.T-prev.T)
		if !a.counts() {
			a.slope /= b.count
		}
	}
	a.rawRun = 0
}

// answer is the function's value, if it has one.
func (a *total) answer() (float64, bool) {
	if a.n == 0 && a.spare != nil {
		a.n = 1
		a.widen(a.spare.min, a.spare.max)
	}
	switch a.fn {
	case "count_over_time":
		return a.n, a.n > 0
	case "sum_over_time":
		return a.total(), true
	case "avg_over_time":
		return a.total() / a.n, a.n > 0
	case "min_over_time":
		return a.min, a.n > 0
	case "max_over_time":
		return a.max, a.n > 0
	case "resets":
		return a.resets, a.some
	case "irate":
		return a.slope / a.step * 1000, a.step > 0
	case "idelta":
		return a.slope, a.step > 0
	case "rate":
		v, ok := a.extrapolate()
		return v / float64(a.rng) * 1000, ok
	}
	return a.extrapolate()
}

func (a *total) total() float64 {
	if math.IsInf(a.sum, 0) {
		return a.sum
	}
	return a.sum + a.c
}

// extrapolate is what grew, stretched to the ends of the range where the samples
// reach close to them. This is PromQL's rule: close is within 1.1 times the mean
// distance of samples; beyond that, half a distance is added; and a counter is
// not stretched back to where it would have been negative.
func (a *total) extrapolate() (float64, bool) {
	if !a.some || a.lastT <= a.firstT || (a.n < 2 && !a.cut) {
		return 0, false
	}
	return a.grown * a.factor(), true
}

// factor is what to stretch by.
func (a *total) factor() float64 {
	sampled := float64(a.lastT - a.firstT)
	mean := sampled / max(a.n-1, 1)
	toStart, toEnd := float64(a.firstT-a.lo), float64(a.hi-a.lastT)
	if toStart >= 1.1*mean {
		toStart = mean / 2
	}
	if a.counts() && a.grown > 0 && a.first >= 0 {
		toStart = min(toStart, sampled*a.first/a.grown)
	}
	if toEnd >= 1.1*mean {
		toEnd = mean / 2
	}
	return (sampled + toStart + toEnd) / sampled
}
