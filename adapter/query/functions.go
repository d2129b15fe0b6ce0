package query

import "github.com/ticktier/ticktier/adapter/store"

// shape says how a selector's answer is made where a folded tier is read.
type shape uint8

const (
	// asWindows: a range function that is computed here, one answer per evaluation
	// time, from aggregates and raw samples.
	asWindows shape = iota
	// asPoints: the engine computes the function, from one sample per bucket.
	asPoints
	// asInstants: a selector without a range; the value at each evaluation time.
	asInstants
)

// reading says what a function reads of the buckets.
type reading struct {
	shape shape
	// cols are the aggregates read; every bucket has the first one.
	cols []store.Agg
	// inexact: buckets do not hold what the function asks for.
	inexact bool
	// wantRaw: prefer raw samples, whatever the step, because buckets say little.
	wantRaw bool
	// linear: the points are the first and the last sample of each bucket at their
	// own times and, where buckets are too wide for the range, more in between on
	// straight lines.
	linear bool
	// last: the points are the last samples of buckets at their own times.
	last bool
	// minBuckets is how many buckets the range must span for the tier to do.
	minBuckets int64
}

// readingOf says how fn, the function around a range selector, is answered; an
// empty name is a range selector on its own.
func readingOf(fn string) reading {
	windows := func(cols ...store.Agg) reading {
		return reading{shape: asWindows, cols: cols, minBuckets: 2}
	}
	points := func(col store.Agg) reading {
		return reading{shape: asPoints, cols: []store.Agg{col}, minBuckets: 2}
	}
	estimate := func(col store.Agg) reading {
		r := points(col)
		r.inexact, r.wantRaw = true, true
		return r
	}
	switch fn {
	case "count_over_time":
		return windows(store.Count)
	case "sum_over_time", "avg_over_time":
		return windows(store.Count, store.Sum)
	case "min_over_time":
		return windows(store.Min)
	case "max_over_time":
		return windows(store.Max)
	case "rate", "increase", "delta":
		return windows(store.Counter, store.Count)
	case "resets":
		return windows(store.Counter, store.Resets)
	case "irate", "idelta":
		r := windows(store.Counter, store.Count)
		r.inexact = true
		return r
	case "last_over_time":
		r := points(store.Counter)
		r.cols = append(r.cols, store.Count)
		r.last = true
		return r
	case "first_over_time":
		r := points(store.Counter)
		r.cols = append(r.cols, store.Count)
		return r
	case "present_over_time", "absent_over_time":
		return points(store.Count)
	case "deriv", "predict_linear":
		r := points(store.Counter)
		r.cols = append(r.cols, store.Count)
		r.inexact, r.linear, r.minBuckets = true, true, 10
		return r
	case "ts_of_max_over_time":
		return estimate(store.Max)
	case "ts_of_min_over_time":
		return estimate(store.Min)
	}
	// quantile_over_time, stddev_over_time, changes and the like, and x[5m] itself.
	return estimate(store.Value)
}

// instantReading is that of a selector without a range.
func instantReading() reading {
	return reading{shape: asInstants, cols: []store.Agg{store.Value}}
}
