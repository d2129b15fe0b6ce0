package query

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// Expressions whose ranges are whole windows give the same over expired tiers as
// over raw samples kept for ever: offsets, @, subqueries, joins and all.
func TestExpressionsEqualRaw(t *testing.T) {
	t.Parallel()
	exprs := []string{
		`sum(rate(counter_total[30m]))`,
		`max_over_time(gauge[1h] offset 1h)`,
		`avg_over_time(gauge[1h] offset -30m)`,
		`increase(counter_total[2h] @ end())`,
		`increase(counter_total[2h] @ start() offset 10m)`,
		`min_over_time(gauge[90m] @ 1692018000)`,
		`max_over_time(rate(counter_total[10m])[1h:5m])`,
		`max_over_time(rate(counter_total[10m])[1h:5m] offset 30m)`,
		`avg_over_time(sum_over_time(gauge[5m])[30m:5m] @ end())`,
		`sum_over_time(count_over_time(gauge[5m])[1h:5m])`,
		`max_over_time(min_over_time(max_over_time(gauge[10m])[20m:5m])[1h:10m])`,
		`sum by (instance) (count_over_time(gauge[15m]))`,
		`avg_over_time(gauge[10m]) > 10 or min_over_time(gauge[10m])`,
		`rate(counter_total[10m] offset 5m) / rate(counter_total[10m])`,
		`increase(counter_total[1h]) - on (instance) resets(counter_total[1h])`,
		`topk(2, max_over_time(gauge[1h]))`,
		`absent_over_time(gauge{instance="nine"}[10m])`,
		`absent(gauge{instance="nine"})`,
		`absent_over_time(gauge[10m])`,
		`clamp_min(delta(gauge[30m]), 0)`,
		`last_over_time(gauge[10m]) - first_over_time(gauge[10m])`,
		`label_replace(rate(counter_total[10m]), "device", "$1", "instance", "(.*)")`,
		`count(present_over_time({__name__=~"gauge|counter_total"}[20m]))`,
		`quantile(0.5, avg_over_time(gauge[30m]))`,
		`scalar(sum(increase(counter_total[1h]))) + time()`,
		`-avg_over_time(gauge[30m])`,
	}
	r := rand.New(rand.NewPCG(seed(t), 5))
	for range 3 {
		h := makeHistory(r, 12*hour, false)
		kept, expired := newRawStore(t, h), newRawStore(t, h)
		expired.expired = base + 6*hour + r.Int64N(4*hour)
		plain := newTestAPI(t, kept)
		a := newTestAPI(t, expired,
			&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 11*hour + r.Int64N(8)*5*minute},
			&fakeTier{h: h, res: hour, from: base, watermark: base + 11*hour})
		for _, expr := range exprs {
			start, end := base+4*hour, base+11*hour
			step := []int64{5 * minute, 10 * minute, hour}[r.IntN(3)]
			want := runRange(t, plain, context.Background(), expr, start, end, step)
			got := runRange(t, a, context.Background(), expr, start, end, step)
			if diff := cmp.Diff(want, got, near(1e-8)); diff != "" {
				t.Errorf("%s step %d min, raw from minute %d, 5m to %d (-raw kept +tiers):\n%s", expr, step/minute,
					(expired.expired-base)/minute, (a.c.Tiers[0].Watermark()-base)/minute, diff)
			}
		}
	}
}

// steady is a counter that grows by rate a second and a gauge that is its rate.
func steady(h history, from, to, period int64, rate float64, instance string) {
	c := labels.FromStrings("__name__", "c_total", "instance", instance)
	g := labels.FromStrings("__name__", "x", "instance", instance)
	for t := from; t < to; t += period {
		h.add(c, sample{t, math.Round(float64(t-from) / 1000 * rate)})
		h.add(g, sample{t, rate})
	}
}

// Steps and ranges that are no whole windows are answered in proportion: what a
// steady series gives stays steady, across every seam.
func TestUnalignedIsSteady(t *testing.T) {
	t.Parallel()
	h := history{}
	steady(h, base, base+12*hour, second, 10, "a")
	raw := newRawStore(t, h)
	raw.expired = base + 9*hour + 7*second
	a := newTestAPI(t, raw,
		&fakeTier{h: h, res: 5 * minute, from: base + 5*hour, watermark: base + 11*hour + 25*minute, counters: true},
		&fakeTier{h: h, res: hour, from: base, watermark: base + 11*hour})
	r := rand.New(rand.NewPCG(seed(t), 6))
	for range 50 {
		rng := 2*second + r.Int64N(3*hour)
		if r.IntN(2) == 0 {
			rng = 2*second + r.Int64N(10*minute)
		}
		step := second + r.Int64N(90*minute)
		start := base + 3*hour + r.Int64N(hour)
		for expr, want := range map[string]float64{
			"rate(c_total[%dms])":                           10,
			"increase(c_total[%dms])":                       10 * float64(rng) / 1000,
			"count_over_time(x[%dms])":                      float64(rng) / 1000,
			"sum_over_time(x[%dms])":                        float64(rng) / 100,
			"avg_over_time(x[%dms])":                        10,
			"max_over_time(x[%dms])":                        10,
			"sum(last_over_time(x[%dms]))":                  10,
			"resets(c_total[%dms])":                         0,
			"irate(c_total[%dms])":                          10,
			"delta(x[%dms])":                                0,
			"deriv(c_total[%dms])":                          10,
			"stddev_over_time(x[%dms])":                     0,
			"max_over_time(sum_over_time(x[%dms])[10m:1m])": float64(rng) / 100,
		} {
			expr = fmt.Sprintf(expr, rng)
			got := runRange(t, a, context.Background(), expr, start, min(base+12*hour-second, start+step*300), step)
			if len(got) != 1 {
				t.Fatalf("%s: %d series", expr, len(got))
			}
			// A count of whole samples is off by one; a rate of rounded values by one
			// in the samples that it sees, and by the millisecond-wide hole before a seam.
			eps := 1.1 / (float64(rng) / 1000)
			if strings.HasPrefix(expr, "deriv") || strings.HasPrefix(expr, "irate") {
				eps = 0.05
			}
			for _, points := range got {
				n := int64(len(points))
				if w := (min(base+12*hour-second, start+step*300)-start)/step + 1; n != w {
					t.Errorf("%s start +%d step %d: %d points, want %d", expr, start-base, step, n, w)
				}
				for at, v := range points {
					if math.Abs(v-want) > eps*max(want, 1) {
						t.Fatalf("%s at +%dms, step %dms: got %v, want %v", expr, at-base, step, v, want)
					}
				}
			}
		}
	}
}

// A tier that keeps of a gauge no first sample and of a counter no sum still
// answers everything about both, and says where that is an estimate.
func TestTypedTier(t *testing.T) {
	t.Parallel()
	h := history{}
	steady(h, base, base+6*hour, second, 10, "a")
	slope := labels.FromStrings("__name__", "slope")
	for at := base; at < base+6*hour; at += second {
		h.add(slope, sample{at, float64(at-base) / 1000})
	}
	a := newTestAPI(t, newRawStore(t, history{}), &fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 6*hour, counters: true, typed: true})
	r := rand.New(rand.NewPCG(seed(t), 7))
	for expr, tc := range map[string]struct {
		want, eps float64
		estimate  bool
	}{
		"rate(c_total[1h])":                                {10, 0.01, false},
		"increase(c_total[1h])":                            {36000, 20, false},
		"delta(slope[1h])":                                 {3600, 3, true},
		"delta(slope[10m])":                                {600, 3, true},
		"delta(slope[1m])":                                 {60, 1, true}, // short
		"rate(slope[1h])":                                  {1, 0.01, true},
		"irate(slope[1h])":                                 {1, 0.01, true},
		"deriv(slope[1h])":                                 {1, 0.01, true},
		"deriv(slope[1m])":                                 {1, 0.01, true},
		"resets(slope[1h])":                                {0, 0, true},
		"resets(c_total[1h])":                              {0, 0, false},
		"count_over_time(c_total[1h])":                     {3600, 1, false},
		"avg_over_time(x[1h])":                             {10, 1e-9, false},
		"avg_over_time(c_total[1h])-c_total":               {-18000, 3010, true},
		"sum_over_time(c_total[1h])/3600 - c_total":        {-18000, 3010, true},
		"first_over_time(slope[1h]) - (time()-1692000000)": {-3600, 301, true},
		"last_over_time(slope[1h]) - (time()-1692000000)":  {0, 301, false},
	} {
		start := base + 2*hour + r.Int64N(hour)
		q, err := a.Engine().NewRangeQuery(context.Background(), a.Queryable(), nil, expr, time.UnixMilli(start), time.UnixMilli(start+2*hour), 7*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		res := q.Exec(context.Background())
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		m := res.Value.(promql.Matrix)
		if len(m) != 1 || len(m[0].Floats) != 18 {
			t.Fatalf("%s: got %v", expr, m)
		}
		for _, p := range m[0].Floats {
			if math.Abs(p.F-tc.want) > tc.eps {
				t.Errorf("%s at +%d ms: got %v, want %v", expr, p.T-base, p.F, tc.want)
			}
		}
		if warns, _ := res.Warnings.AsStrings("", 0, 0); (len(warns) > 0) != tc.estimate {
			t.Errorf("%s: warnings %q", expr, warns)
		}
		q.Close()
	}
}

// T10: three devices, gauges of 10, 20 and 30 at 1 Hz for three hours.
func TestThreeDevices(t *testing.T) {
	t.Parallel()
	h := history{}
	for i, v := range []float64{10, 20, 30} {
		steady(h, base, base+3*hour, second, v, fmt.Sprint(i))
	}
	raw := newRawStore(t, h)
	a := newTestAPI(t, raw,
		&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 3*hour},
		&fakeTier{h: h, res: hour, from: base, watermark: base + 3*hour})
	for src := range 3 {
		for expr, want := range map[string]float64{"sum(x)": 60, "count(x)": 3, "avg(x)": 20, "min(count_over_time(x[1h]))": 3600, "max(count_over_time(x[1h]))": 3600} {
			for _, points := range runRange(t, a, withTier(src), expr, base+hour, base+3*hour-minute, 17*minute) {
				for at, v := range points {
					if math.Abs(v-want) > want/3600 {
						t.Errorf("tier %d, %s at +%d s: got %v, want %v", src, expr, (at-base)/second, v, want)
					}
				}
				if len(points) != 8 {
					t.Errorf("tier %d, %s: %d points", src, expr, len(points))
				}
			}
		}
	}
}

// T11: a gauge of 0 with one sample of 950, and one single low, in an hour.
func TestSpikeInEveryTier(t *testing.T) {
	t.Parallel()
	h := history{}
	x, y := labels.FromStrings("__name__", "x"), labels.FromStrings("__name__", "y")
	for at := base; at < base+3*hour; at += 100 {
		v := 0.0
		if at == base+100*minute+12300 {
			v = 950
		}
		h.add(x, sample{at, v})
		h.add(y, sample{at, -v})
	}
	a := newTestAPI(t, newRawStore(t, h),
		&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 3*hour},
		&fakeTier{h: h, res: hour, from: base, watermark: base + 3*hour})
	for src := range 3 {
		for expr, want := range map[string]float64{"max_over_time(x[1h])": 950, "min_over_time(y[1h])": -950} {
			got := runRange(t, a, withTier(src), expr, base+2*hour, base+2*hour, hour)
			if v := got["{}"][base+2*hour]; v != want {
				t.Errorf("tier %d: %s = %v, want %v", src, expr, v, want)
			}
		}
	}
}

// T12: a range of four seconds over times of which only coarse buckets are left.
func TestShortRangeOnOldData(t *testing.T) {
	t.Parallel()
	h := history{}
	steady(h, base, base+4*hour, second, 37, "a")
	for _, res := range []int64{5 * minute, hour} {
		raw := newRawStore(t, history{})
		a := newTestAPI(t, raw, &fakeTier{h: h, res: res, from: base, watermark: base + 4*hour})
		q, err := a.Engine().NewRangeQuery(context.Background(), a.Queryable(), nil, "rate(c_total[4s])",
			time.UnixMilli(base+2*hour), time.UnixMilli(base+2*hour+20*minute), 15*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		res1 := q.Exec(context.Background())
		if res1.Err != nil {
			t.Fatal(res1.Err)
		}
		m := res1.Value.(promql.Matrix)
		if len(m) != 1 || len(m[0].Floats) != 81 {
			t.Fatalf("%d ms buckets: got %v", res, m)
		}
		for _, p := range m[0].Floats {
			if math.Abs(p.F-37) > 0.37 {
				t.Errorf("%d ms buckets: rate %v at %d", res, p.F, p.T)
			}
		}
		warns, _ := res1.Warnings.AsStrings("", 0, 0)
		if !strings.Contains(strings.Join(warns, " "), "range of rate() is shorter") {
			t.Errorf("%d ms buckets: warnings %q", res, warns)
		}
		q.Close()
	}
}

// What is said of a range that buckets do not resolve is exact.
func TestWarningsOfCutRanges(t *testing.T) {
	t.Parallel()
	h := history{}
	steady(h, base, base+8*hour, second, 5, "a")
	a := newTestAPI(t, newRawStore(t, history{}), &fakeTier{h: h, res: hour, from: base, watermark: base + 8*hour})
	for rng, want := range map[string]string{
		"4s":    "the range of rate() is shorter than a 1h bucket",
		"3599s": "the range of rate() is shorter than a 1h bucket",
		"3615s": "the range of rate() spans less than two whole 1h buckets",
		"7199s": "the range of rate() spans less than two whole 1h buckets",
		"3h5s":  "ranges of rate() begin or end within 1h buckets",
		"1h":    "",
		"3h":    "",
	} {
		q, err := a.Engine().NewRangeQuery(context.Background(), a.Queryable(), nil, "rate(c_total["+rng+"])", time.UnixMilli(base+5*hour), time.UnixMilli(base+7*hour), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		warns, infos := q.Exec(context.Background()).Warnings.AsStrings("", 0, 0)
		said := strings.Join(warns, " ") + strings.Join(infos, " ")
		for _, words := range []string{"is shorter than", "spans less than", "begin or end within"} {
			if strings.Contains(said, words) != (want != "" && strings.Contains(want, words)) {
				t.Errorf("[%s]: %q, want %q", rng, said, want)
			}
		}
		if !strings.Contains(said, want) {
			t.Errorf("[%s]: %q, want %q", rng, said, want)
		}
		q.Close()
	}
}

// Functions that buckets cannot answer say so, by name; exact ones say nothing.
func TestWarnings(t *testing.T) {
	t.Parallel()
	h := history{}
	steady(h, base, base+4*hour, second, 5, "a")
	a := newTestAPI(t, newRawStore(t, history{}), &fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 4*hour})
	for expr, want := range map[string]string{
		"quantile_over_time(0.9, x[1h])": "quantile_over_time() cannot be answered exactly from 5m buckets",
		"stddev_over_time(x[1h])":        "stddev_over_time() cannot",
		"changes(x[1h])":                 "changes() cannot",
		"irate(c_total[1h])":             "irate() cannot",
		"max_over_time(x[1h])":           "",
		"rate(c_total[1h])":              "",
		"x":                              "",
		"stddev_over_time(x[1h:5m])":     "",
		// These are left to the engine, which takes a bucket's average for a sample.
		"increase(c_total[1h] anchored)": "anchored or smoothed reads averages of buckets where raw samples are gone: the answer is an estimate",
		"rate(c_total[1h] smoothed)":     "anchored or smoothed reads averages",
		"x smoothed":                     "anchored or smoothed reads averages",
	} {
		q, err := a.Engine().NewRangeQuery(context.Background(), a.Queryable(), nil, expr, time.UnixMilli(base+2*hour), time.UnixMilli(base+3*hour), 5*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		res := q.Exec(context.Background())
		warns, infos := res.Warnings.AsStrings("", 0, 0)
		if got := strings.Join(warns, " "); res.Err != nil || !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %v, warnings %q, want %q", expr, res.Err, warns, want)
		}
		if !strings.Contains(strings.Join(infos, " "), "answered from tiers 5m") {
			t.Errorf("%s: infos %q", expr, infos)
		}
		q.Close()
	}
}

// Over raw samples there is nothing to say of a selector that is anchored or smoothed.
func TestAnchoredOnRaw(t *testing.T) {
	t.Parallel()
	h := history{}
	steady(h, base, base+4*hour, 15*second, 5, "a")
	a := newTestAPI(t, newRawStore(t, h), &fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 4*hour})
	for _, expr := range []string{"increase(c_total[1h] anchored)", "rate(c_total[1h] smoothed)", "x smoothed"} {
		got, said, err := evaluated(a, expr, base+2*hour, base+3*hour, 5*minute)
		if err != nil || said != "" || len(got) != 1 {
			t.Errorf("%s: %v, %d series, said %q", expr, err, len(got), said)
		}
	}
}
