package e2e

import (
	"fmt"
	"math"

	"github.com/ticktier/ticktier/e2e/client"
)

// bounds are how far an announced answer may be from that over raw samples: it
// takes whole buckets where the range cuts them, or a share of them.
type bounds struct {
	s        client.Series
	fn       string
	rng, res int64
}

// check compares the answers of one query at every evaluation time.
func (b bounds) check(q asked, want, got map[int64]float64) error {
	for t := q.start; t <= q.end; t += q.step {
		w, has := want[t]
		g, ok := got[t]
		if has && !ok && !b.needsTwo() && !b.endsAt(t) {
			return fmt.Errorf("a hole at %d, want %v", t, w)
		}
		if !ok {
			continue
		}
		if lo, hi, ok := b.at(t, w); !ok || !(g >= lo-slack(lo) && g <= hi+slack(hi)) {
			return fmt.Errorf("at %d got %v, not within %v and %v (want %v, there is one: %v)", t, g, lo, hi, w, has)
		}
	}
	return nil
}

func slack(v float64) float64 { return 1e-9*math.Abs(v) + 1e-6 }

// endsAt reports whether the series ends next, in the window that t lies in, without a
// sample in it: a tier knows of that window only that it ended there.
func (b bounds) endsAt(t int64) bool {
	for _, res := range []int64{5 * minuteMs, b.res} {
		from := t / res * res
		next := cut(b.s.Samples, from, from+res)
		if b.fn == "" && len(next) > 0 && isStale(next[0].V) && next[0].T >= t {
			return true
		}
	}
	return false
}

// needsTwo reports whether two samples are needed for an answer.
func (b bounds) needsTwo() bool { return b.fn == "rate" || b.fn == "increase" }

// at is what the answer at t must lie between; ok is false where there should be
// none. want is that over raw samples, 0 where there is none.
func (b bounds) at(t int64, want float64) (lo, hi float64, ok bool) {
	rng := b.rng
	if b.fn == "" {
		rng = 5 * minuteMs // the look-back
	}
	up := func(t int64) int64 { return (t + b.res - 1) / b.res * b.res }
	down := func(t int64) int64 { return t / b.res * b.res }
	from, to := down(t-rng), up(t+1)
	outer := live(cut(b.s.Samples, from, to))
	inner := live(cut(b.s.Samples, up(t-rng), max(up(t-rng), down(t))))
	if len(outer) == 0 {
		return 0, 0, false
	}
	least := best(outer, func(a, b float64) bool { return a < b })
	most := best(outer, func(a, b float64) bool { return a > b })
	switch b.fn {
	case "count_over_time":
		return float64(len(inner)), float64(len(outer)), true
	case "sum_over_time":
		off := 0.0
		for _, p := range outer {
			off += math.Abs(p.V)
		}
		for _, p := range inner {
			off -= math.Abs(p.V)
		}
		return want - off, want + off, true
	case "present_over_time":
		return 1, 1, true
	case "max_over_time":
		if len(inner) > 0 {
			least = best(inner, func(a, b float64) bool { return a > b })
		}
	case "min_over_time":
		if len(inner) > 0 {
			most = best(inner, func(a, b float64) bool { return a < b })
		}
	case "increase", "rate", "resets":
		return b.grown(inner, live(cut(b.s.Samples, from-b.res, to+b.res)))
	}
	return least, most, true
}

// grown bounds what a counter grew: at least what it did within the whole windows of
// the range, at most what it did in a window more at either end. Extrapolation adds up
// to 1.1 steps at both, and over a gap it may triple all, as it may in Prometheus.
func (b bounds) grown(inner, wide []client.Sample) (lo, hi float64, ok bool) {
	lo, fell := grown(inner)
	hi, resets := grown(wide)
	if b.fn == "resets" {
		return float64(fell), float64(resets), true
	}
	step, gap := 0.0, false
	for i := 1; i < len(wide); i++ {
		step = max(step, wide[i].V-wide[i-1].V)
		gap = gap || wide[i].T-wide[i-1].T > b.res/2
	}
	if hi += 2.2 * step; gap {
		hi *= 3.3
	}
	if b.fn == "rate" {
		lo, hi = lo/float64(b.rng)*1000, hi/float64(b.rng)*1000
	}
	return lo, hi, true
}

// live leaves staleness markers out.
func live(in []client.Sample) (out []client.Sample) {
	for _, p := range in {
		if !isStale(p.V) {
			out = append(out, p)
		}
	}
	return out
}
