package query

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
)

// ticks are raw samples at a steady rate: a counter that grows by one a tick and a
// gauge that is the number of the tick. missed leaves ticks out.
func ticks(hz int64, from, to int64, missed func(n int64) bool) history {
	h := history{}
	c := labels.FromStrings("__name__", "c_total", "hz", fmt.Sprint(hz))
	g := labels.FromStrings("__name__", "x", "hz", fmt.Sprint(hz))
	for n := int64(0); from+n*second/hz < to; n++ {
		if missed == nil || !missed(n) {
			h.add(c, sample{from + n*second/hz, float64(n)})
			h.add(g, sample{from + n*second/hz, float64(n)})
		}
	}
	return h
}

// Steps and ranges of milliseconds give what brute force over the ticks gives, next to
// folded tiers that hold the same time.
func TestSubSecond(t *testing.T) {
	t.Parallel()
	for _, hz := range []int64{10, 1000} {
		period := second / hz
		h := ticks(hz, base, base+10*second, func(n int64) bool { return n%17 == 3 })
		a := newTestAPI(t, newRawStore(t, h),
			&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 5*minute},
			&fakeTier{h: h, res: hour, from: base, watermark: base + hour})
		for _, step := range []int64{1, 7, 50, 100, 999} {
			for _, rng := range []int64{1, period, 2 * period, 3*period + 1, 250, 1000} {
				for _, fn := range exactFuncs {
					expr := fmt.Sprintf("%s(c_total[%dms])", fn, rng)
					start, end := base+4*second+3, base+4*second+3+60*step
					got, said, err := evaluated(a, expr, start, min(end, base+9*second), step)
					if err != nil || said != "" {
						t.Fatalf("%s at %d Hz, step %d ms: %v, said %q", expr, hz, step, err, said)
					}
					want := map[string]map[int64]float64{}
					for _, s := range h {
						if s.lset.Get("__name__") != "c_total" {
							continue
						}
						points := map[int64]float64{}
						for at := start; at <= min(end, base+9*second); at += step {
							// A range is (at-rng, at].
							if v, ok := brute(fn, s.between(at-rng+1, at+1), at-rng, at); ok {
								points[at] = v
							}
						}
						if len(points) > 0 {
							want[resultLabels(fn, s.lset)] = points
						}
					}
					if diff := cmp.Diff(want, got, near(1e-9)); diff != "" {
						t.Fatalf("%s at %d Hz, step %d ms (-want +got):\n%s", expr, hz, step, diff)
					}
				}
			}
		}
	}
}

// A selector without a range shows each tick from its own millisecond on, with the
// look-back of Prometheus and with one of a few ticks.
func TestSubSecondLookback(t *testing.T) {
	t.Parallel()
	for _, lookback := range []time.Duration{0, 300 * time.Millisecond, 2 * time.Second} {
		// Ticks 40 to 59 are missing, without a marker: a device that was too busy.
		h := ticks(10, base, base+10*second, func(n int64) bool { return n >= 40 && n < 60 })
		a := scriptAPI(Config{Raw: newRawStore(t, h), LookbackDelta: lookback})
		back := ms(a.c.LookbackDelta)
		got, _, err := evaluated(a, "x", base+3*second, base+7*second, 1)
		if err != nil {
			t.Fatal(err)
		}
		points := map[int64]float64{}
		for at := base + 3*second; at <= base+7*second; at++ {
			n := (at - base) / 100
			if n >= 40 && n < 60 {
				n = 39
			}
			if base+n*100 > at-back {
				points[at] = float64(n)
			}
		}
		if diff := cmp.Diff(map[string]map[int64]float64{`{__name__="x", hz="10"}`: points}, got); diff != "" {
			t.Errorf("look-back %s (-want +got):\n%.2000s", lookback, diff)
		}
	}
}

// A staleness marker ends a series at its own millisecond, and the next tick begins it
// again, whatever the look-back; also where the marker comes a tick after the last one.
func TestSubSecondStaleness(t *testing.T) {
	t.Parallel()
	lset := labels.FromStrings("__name__", "x")
	h := history{}
	for n := range int64(100) {
		switch at := base + n*100; {
		case n < 40 || n >= 60:
			h.add(lset, sample{at, float64(n)})
		case n == 40:
			h.add(lset, sample{at, stale})
		}
	}
	raw := newRawStore(t, h)
	for name, a := range map[string]*API{
		"raw":  newTestAPI(t, raw),
		"tier": newTestAPI(t, raw, &fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 5*minute}),
	} {
		for _, step := range []int64{1, 10, 100} {
			got, _, err := evaluated(a, "x", base+3900, base+6100, step)
			if err != nil {
				t.Fatal(err)
			}
			for at := base + 3900; at <= base+6100; at += step {
				v, ok := got[lset.String()][at]
				if ended := at >= base+4000 && at < base+6000; ok == ended || ok && v != float64((at-base)/100) {
					t.Fatalf("%s, step %d ms: at %d ms there is %v (%v)", name, step, at-base, v, ok)
				}
			}
		}
		for at, n := range map[int64]int{base + 3999: 1, base + 4000: 0, base + 5999: 0, base + 6000: 1} {
			if got := runInstant(t, a, "x", at); len(got) != n {
				t.Errorf("%s: at %d ms there are %d series, want %d", name, at-base, len(got), n)
			}
		}
	}
	// A subquery by milliseconds sees the same end.
	a := newTestAPI(t, raw)
	got := runRange(t, a, context.Background(), "count_over_time(x[2s:10ms])", base+5*second, base+5*second, second)
	for _, p := range got {
		if v := p[base+5*second]; v != 99 { // 3.01 to 3.99 s
			t.Errorf("a subquery counts %v, want 99", v)
		}
	}
	if len(got) != 1 {
		t.Errorf("%d series", len(got))
	}
}
