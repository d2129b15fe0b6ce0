package query

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

// A series that ended ends in every tier; one that came back is back; and a hole
// stays a hole.
func TestEndedSeries(t *testing.T) {
	h := history{}
	add := func(name string, from, to int64, ended bool) {
		l := labels.FromStrings("__name__", "x", "name", name)
		for at := from; at < to; at += 10 * second {
			h.add(l, sample{base + at, 1})
		}
		if ended {
			h.add(l, sample{base + to, stale})
		}
	}
	add("marked", 0, 62*minute, true)
	add("unmarked", 0, 62*minute, false)
	add("back", 0, 62*minute, true)
	add("back", 81*minute, 120*minute, false)
	a := newTestAPI(t, newRawStore(t, h), &fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 120*minute})
	got := runRange(t, a, withTier(1), "x", base+minute, base+119*minute, minute)
	in := func(name string) (out []int64) {
		for at := range got[labels.FromStrings("__name__", "x", "name", name).String()] {
			out = append(out, (at-base)/minute)
		}
		slices.Sort(out)
		return out
	}
	// minutes a to b, without those between the pairs
	span := func(pairs ...int64) (out []int64) {
		for i := 0; i < len(pairs); i += 2 {
			for m := pairs[i]; m <= pairs[i+1]; m++ {
				out = append(out, m)
			}
		}
		return out
	}
	for name, want := range map[string][]int64{
		"marked":   span(1, 64),          // the bucket of minutes 60 to 65 is the last one
		"unmarked": span(1, 69),          // and a look-back of 5 minutes
		"back":     span(1, 64, 81, 119), // begins with the bucket of minute 80
	} {
		if g := in(name); !slices.Equal(g, want) {
			t.Errorf("%s: minutes %v, want %v", name, g, want)
		}
	}
	// Nothing is made up in a hole, for a range function neither.
	for at, v := range runRange(t, a, withTier(1), `count_over_time(x{name="back"}[5m])`, base+5*minute, base+120*minute, 5*minute)[`{name="back"}`] {
		if m := (at - base) / minute; (m > 65 && m < 85) || v > 30 {
			t.Errorf("count %v at minute %d", v, m)
		}
	}
}

// A counter that a range cuts in the middle of a bucket does not fall by a rounding at
// the next one, which would be a reset.
func TestCutIsNoReset(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(seed(t), 8))
	h := history{}
	c := labels.FromStrings("__name__", "c_total")
	v := 100_000.0
	for at := base; at < base+8*hour; at += 15*second + r.Int64N(3000) {
		v += float64(r.IntN(30))
		h.add(c, sample{at, v})
	}
	a := newTestAPI(t, newRawStore(t, history{}), &fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 8*hour, counters: true})
	for expr, most := range map[string]float64{"resets(c_total[61m])": 0, "rate(c_total[61m])": 3, "increase(c_total[61m])": 9000} {
		for _, points := range runRange(t, a, context.Background(), expr, base+2*hour, base+7*hour, 7*second) {
			if len(points) != 2572 {
				t.Errorf("%s: %d points", expr, len(points))
			}
			for at, v := range points {
				if v > most {
					t.Fatalf("%s at +%d ms is %v", expr, at-base, v)
				}
			}
		}
	}
}

// A range that lies between the last sample of a bucket and the first of the next is no
// hole: the counter is on a straight line there.
func TestRateBetweenBuckets(t *testing.T) {
	t.Parallel()
	h := history{}
	steady(h, base+7*second, base+4*hour, 2*minute, 10, "a")
	a := newTestAPI(t, newRawStore(t, history{}), &fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 4*hour, counters: true})
	for expr, want := range map[string]float64{"rate(c_total[20s])": 10, "increase(c_total[20s])": 200, "delta(c_total[20s])": 200} {
		got := runRange(t, a, context.Background(), expr, base+hour, base+3*hour, 20*second)
		if len(got) != 1 {
			t.Fatalf("%s: %d series", expr, len(got))
		}
		for _, points := range got {
			if len(points) != 361 {
				t.Errorf("%s: %d points, want 361", expr, len(points))
			}
			for at, v := range points {
				if math.Abs(v-want) > 1e-6*want {
					t.Fatalf("%s at +%d s is %v, want %v", expr, (at-base)/second, v, want)
				}
			}
		}
	}
}

// A bare selector has a value at every step, on the edges of windows and within, and it
// is that of the bucket which ends there or goes on.
func TestBareSelectorAtEveryStep(t *testing.T) {
	t.Parallel()
	h := history{}
	x := labels.FromStrings("__name__", "x")
	for at := base; at < base+12*hour; at += 10 * second {
		h.add(x, sample{at, float64((at - base) / hour)})
	}
	r := rand.New(rand.NewPCG(seed(t), 9))
	for i, res := range []int64{5 * minute, hour} {
		a := newTestAPI(t, newRawStore(t, history{}),
			&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 12*hour},
			&fakeTier{h: h, res: hour, from: base, watermark: base + 12*hour})
		for _, step := range []int64{minute, res, 2 * res, 3 * res, 7 * minute, res + second, second + r.Int64N(3*hour)} {
			for _, offset := range []int64{0, 1, res - 1, r.Int64N(hour)} {
				start, end := base+hour+offset, base+11*hour
				points := runRange(t, a, withTier(i+1), "x", start, end, step)[x.String()]
				for at := start; at <= end; at += step {
					want := float64((at - 1 - base) / hour)
					if got, ok := points[at]; !ok || got != want {
						t.Fatalf("%d min buckets, step %d ms, at +%d ms: got %v, %v, want %v", res/minute, step, at-base, got, ok, want)
					}
				}
			}
		}
	}
}
