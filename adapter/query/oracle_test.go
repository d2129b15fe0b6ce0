package query

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
)

// base is where made-up history starts: on an hour, and not at the epoch.
const base = 470_000 * hour

var stale = math.Float64frombits(value.StaleNaN)

// makeHistory makes series of length ms, with jitter, gaps, resets, staleness
// markers and, where onEdges, samples on the very edges of windows.
func makeHistory(r *rand.Rand, length int64, onEdges bool) history {
	h := history{}
	for i := range 6 {
		period := []int64{second, 7 * second, 15 * second, minute}[r.IntN(4)]
		counter := i%2 == 0
		name := "gauge"
		if counter {
			name = "counter_total"
		}
		lset := labels.FromStrings("__name__", name, "instance", fmt.Sprint(i))
		var list []sample
		v := float64(r.IntN(1000))
		start := base
		if r.IntN(2) == 0 {
			start += r.Int64N(length / 3) // begins late
		}
		for t := start; t < base+length; t += period {
			if r.IntN(400) == 0 {
				if r.IntN(2) == 0 {
					list = append(list, sample{t, stale})
				}
				t += r.Int64N(90 * minute)
				continue
			}
			at := t + r.Int64N(period/2)
			if onEdges && r.IntN(10) == 0 {
				at = max(floorTo(t, period), base)
			}
			if !onEdges && at%minute == 0 {
				at++
			}
			if n := len(list); n > 0 && list[n-1].t >= at {
				continue
			}
			switch {
			case counter && r.IntN(300) == 0:
				v = float64(r.IntN(5))
			case counter:
				v += float64(r.IntN(20))
			default:
				v += r.NormFloat64() * 10
			}
			list = append(list, sample{at, v})
		}
		h.add(lset, list...)
	}
	return h
}

// brute answers fn over the samples of a range by PromQL's rules. The range is
// [lo, hi); its ends matter to extrapolation only.
func brute(fn string, list []sample, lo, hi int64) (float64, bool) {
	var vals []sample
	for _, s := range list {
		if !value.IsStaleNaN(s.v) {
			vals = append(vals, s)
		}
	}
	n := len(vals)
	if n == 0 {
		return 0, false
	}
	first, last := vals[0], vals[n-1]
	sum, least, most, grown, resets := 0.0, first.v, first.v, last.v-first.v, 0.0
	for i, s := range vals {
		sum += s.v
		least, most = min(least, s.v), max(most, s.v)
		if i > 0 && s.v < vals[i-1].v {
			resets++
			if fn != "delta" {
				grown += vals[i-1].v
			}
		}
	}
	switch fn {
	case "count_over_time":
		return float64(n), true
	case "sum_over_time":
		return sum, true
	case "avg_over_time":
		return sum / float64(n), true
	case "min_over_time":
		return least, true
	case "max_over_time":
		return most, true
	case "resets":
		return resets, true
	case "last_over_time":
		return last.v, true
	case "first_over_time":
		return first.v, true
	case "present_over_time":
		return 1, true
	}
	if n < 2 {
		return 0, false
	}
	span := float64(last.t - first.t)
	mean := span / float64(n-1)
	head, tail := float64(first.t-lo), float64(hi-last.t)
	if head >= 1.1*mean {
		head = mean / 2
	}
	if fn != "delta" && grown > 0 && first.v >= 0 {
		head = min(head, span*first.v/grown)
	}
	if tail >= 1.1*mean {
		tail = mean / 2
	}
	out := grown * (span + head + tail) / span
	if fn == "rate" {
		out /= float64(hi-lo) / 1000
	}
	return out, true
}

// exactFuncs are those for which buckets hold all that is asked.
var exactFuncs = []string{
	"count_over_time", "sum_over_time", "avg_over_time", "min_over_time", "max_over_time", "increase", "rate",
	"delta", "resets", "last_over_time", "first_over_time", "present_over_time",
}

// selectorFor leaves gauges, which may be negative, out of what is about counters.
func selectorFor(fn string) (sel string, takes func(labels.Labels) bool) {
	if fn == "rate" || fn == "increase" {
		return "counter_total", func(l labels.Labels) bool { return l.Get(model.MetricNameLabel) == "counter_total" }
	}
	return `{__name__=~"gauge|counter_total"}`, func(labels.Labels) bool { return true }
}

func withTier(src int) context.Context {
	return context.WithValue(context.Background(), optionsKey{}, &options{forced: src, maxRes: -1})
}

// runRange evaluates a range query and gives its points by series, then time.
func runRange(t *testing.T, a *API, ctx context.Context, expr string, start, end, step int64) map[string]map[int64]float64 {
	t.Helper()
	q, err := a.Engine().NewRangeQuery(ctx, a.Queryable(), nil, expr, time.UnixMilli(start), time.UnixMilli(end), msToDuration(step))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		t.Fatalf("%s: %v", expr, res.Err)
	}
	out := map[string]map[int64]float64{}
	for _, s := range res.Value.(promql.Matrix) {
		points := map[int64]float64{}
		for _, p := range s.Floats {
			points[p.T] = p.F
		}
		out[s.Metric.String()] = points
	}
	return out
}

// near compares by relative error.
func near(eps float64) cmp.Option {
	return cmp.Comparer(func(a, b float64) bool {
		return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= eps*max(math.Abs(a), math.Abs(b), 1)
	})
}

// Aligned ranges over one tier are what the raw samples of [t-r, t) give.
func TestOneTierIsExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(seed(t), 1))
	for round := range 4 {
		h := makeHistory(r, 12*hour, true)
		a := newTestAPI(t, newRawStore(t, history{}),
			&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 12*hour},
			&fakeTier{h: h, res: hour, from: base, watermark: base + 12*hour})
		for src, res := range []int64{0, 5 * minute, hour} {
			if src == rawSource {
				continue
			}
			for _, fn := range exactFuncs {
				rng := res * (1 + r.Int64N(4))
				step := res * (1 + r.Int64N(3))
				name, takes := selectorFor(fn)
				got := runRange(t, a, withTier(src), fmt.Sprintf("%s(%s[%dms])", fn, name, rng), base+res, base+12*hour, step)
				want := map[string]map[int64]float64{}
				for _, s := range h {
					points := map[int64]float64{}
					if !takes(s.lset) {
						continue
					}
					for at := base + res; at <= base+12*hour; at += step {
						if v, ok := brute(fn, s.between(at-rng, at), at-rng, at); ok {
							points[at] = v
						}
					}
					if len(points) > 0 {
						want[resultLabels(fn, s.lset)] = points
					}
				}
				if diff := cmp.Diff(want, got, near(1e-9)); diff != "" {
					t.Fatalf("round %d, %s[%dms] step %dms on tier %d (-want +got):\n%s", round, fn, rng, step, src, diff)
				}
			}
		}
	}
}

func resultLabels(fn string, lset labels.Labels) string {
	if fn != "last_over_time" && fn != "first_over_time" {
		lset = labels.NewBuilder(lset).Del(model.MetricNameLabel).Labels()
	}
	return lset.String()
}

// Ranges that span tiers are what the raw samples give, wherever the seams are:
// the hourly tier lags, the 5-minute tier lags less, and raw and 5m have expired.
func TestSeamsAreExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(seed(t), 2))
	for round := range 6 {
		h := makeHistory(r, 12*hour, false)
		raw := newRawStore(t, h)
		raw.expired = base + 3*hour + r.Int64N(4*hour)
		a := newTestAPI(t, raw,
			&fakeTier{h: h, res: 5 * minute, from: base + r.Int64N(24)*5*minute, watermark: base + 10*hour + r.Int64N(24)*5*minute},
			&fakeTier{h: h, res: hour, from: base, watermark: base + 8*hour + r.Int64N(3)*hour})
		for _, fn := range exactFuncs {
			res := []int64{5 * minute, hour}[r.IntN(2)]
			rng := res * (2 + r.Int64N(4))
			step := res * (1 + r.Int64N(3))
			start := base + 2*hour + rng // what only the hourly tier has is read in whole hours
			start = ceilTo(start, hour)
			name, takes := selectorFor(fn)
			expr := fmt.Sprintf("%s(%s[%dms])", fn, name, rng)
			got := runRange(t, a, context.Background(), expr, start, base+12*hour, step)
			want := map[string]map[int64]float64{}
			for _, s := range h {
				points := map[int64]float64{}
				if !takes(s.lset) {
					continue
				}
				for at := start; at <= base+12*hour; at += step {
					if v, ok := brute(fn, s.between(at-rng, at), at-rng, at); ok {
						points[at] = v
					}
				}
				if len(points) > 0 {
					want[resultLabels(fn, s.lset)] = points
				}
			}
			if diff := cmp.Diff(want, got, near(1e-9)); diff != "" {
				t.Fatalf("round %d, %s step %dms, raw from %d min, 5m from %d to %d min, 1h to %d min (-want +got):\n%s", round, expr, step,
					(raw.expired-base)/minute, (a.c.Tiers[0].MinTime()-base)/minute, (a.c.Tiers[0].Watermark()-base)/minute, (a.c.Tiers[1].Watermark()-base)/minute, diff)
			}
		}
	}
}

// An instant query takes the ends of its range from finer tiers, and so equals the
// answer of raw samples for any time and range.
func TestInstantEqualsRaw(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(seed(t), 3))
	h := makeHistory(r, 12*hour, true)
	raw := newRawStore(t, h)
	plain := newTestAPI(t, raw)
	a := newTestAPI(t, raw,
		&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 11*hour + 25*minute},
		&fakeTier{h: h, res: hour, from: base, watermark: base + 11*hour})
	for range 60 {
		at := base + hour + r.Int64N(11*hour)
		rng := minute + r.Int64N(8*hour)
		for _, fn := range slices.Concat(exactFuncs, []string{"quantile_over_time", "stddev_over_time", "changes"}) {
			arg := ""
			if fn == "quantile_over_time" {
				arg = "0.9, "
			}
			name, _ := selectorFor(fn)
			expr := fmt.Sprintf("%s(%s%s[%dms])", fn, arg, name, rng)
			want := runInstant(t, plain, expr, at)
			got := runInstant(t, a, expr, at)
			if diff := cmp.Diff(want, got, near(1e-9)); diff != "" {
				t.Fatalf("%s at %d (-want +got):\n%s", expr, at, diff)
			}
		}
	}
}

func runInstant(t *testing.T, a *API, expr string, at int64) map[string]float64 {
	t.Helper()
	q, err := a.Engine().NewInstantQuery(context.Background(), a.Queryable(), nil, expr, time.UnixMilli(at))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	res := q.Exec(context.Background())
	if res.Err != nil {
		t.Fatalf("%s: %v", expr, res.Err)
	}
	out := map[string]float64{}
	for _, s := range res.Value.(promql.Vector) {
		out[s.Metric.String()] = s.F
	}
	return out
}
