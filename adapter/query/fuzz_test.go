package query

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// Any expression, rewritten, gives what it gives as it was written; and over
// buckets it neither panics nor runs away.
func FuzzRewrite(f *testing.F) {
	exprs, err := promqltest.GetBuiltInExprs()
	if err != nil {
		f.Fatal(err)
	}
	for i, e := range exprs {
		if i%20 == 0 {
			f.Add(e, int64(i))
		}
	}
	f.Add("deriv(x[1m])[1y:1ms]", int64(7))
	f.Add("sum by (instance) (rate(c_total[5m] offset -1m)) / ignoring (a) group_left () avg_over_time(x[7m] @ 1692000900)", int64(300))
	h := history{}
	steady(h, base, base+hour, 10*second, 3, "a")
	h.add(labels.FromStrings("__name__", "x", "instance", "b"), sample{base + minute, 1}, sample{base + 2*minute, stale}, sample{base + 40*minute, 2})
	raw := newRawStore(f, h)
	plain := newTestAPI(f, raw).Queryable()
	tiers := newTestAPI(f, newRawStore(f, history{}),
		&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 55*minute}, &fakeTier{h: h, res: hour, from: base, watermark: base}).Queryable()
	tiers.maxSamples = 10_000
	as, rewritten := fuzzEngine(false), fuzzEngine(true)
	f.Fuzz(func(t *testing.T, expr string, step int64) {
		want, err1 := fuzzRun(as, plain, expr, step)
		got, err2 := fuzzRun(rewritten, plain, expr, step)
		_, err3 := fuzzRun(rewritten, tiers, expr, step)
		for _, err := range []error{err1, err2, err3} {
			if err != nil && strings.Contains(err.Error(), "unexpected error") {
				t.Fatalf("%s: %v", expr, err)
			}
		}
		if err1 != nil || err2 != nil {
			return // both may run out of time or samples, and not at the same point
		}
		if diff := cmp.Diff(want, got, near(1e-9)); diff != "" {
			t.Errorf("%s step %d (-as written +rewritten):\n%s", expr, step, diff)
		}
	})
}

func fuzzEngine(rewriteAll bool) *Engine {
	step := func(int64) int64 { return minute }
	return &Engine{
		inner: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 20_000, Timeout: time.Second, NoStepSubqueryIntervalFn: step,
			EnableAtModifier: true, EnableNegativeOffset: true, LookbackDelta: 5 * time.Minute, Parser: newParser(),
		}),
		subStep: step, rewriteAll: rewriteAll,
	}
}

// fuzzRun gives the float points by series and time.
func fuzzRun(e *Engine, q *Queryable, expr string, step int64) (map[string]map[int64]float64, error) {
	step = min(max(step, 1), 3600)
	q1, err := e.NewRangeQuery(context.Background(), q, nil, expr, time.UnixMilli(base+20*minute), time.UnixMilli(base+70*minute), time.Duration(step)*time.Second)
	if err != nil {
		return nil, err
	}
	defer q1.Close()
	res := q1.Exec(context.Background())
	if res.Err != nil {
		return nil, res.Err
	}
	out := map[string]map[int64]float64{}
	if res.Value.Type() != parser.ValueTypeMatrix {
		return out, nil
	}
	for _, s := range res.Value.(promql.Matrix) {
		points := map[int64]float64{}
		for _, p := range s.Floats {
			points[p.T] = p.F
		}
		out[s.Metric.String()] = points
	}
	return out, nil
}
