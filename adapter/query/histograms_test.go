package query

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
)

// Native histograms are not folded: raw samples answer, as long as there are any,
// next to series that come from buckets.
func TestNativeHistograms(t *testing.T) {
	h := history{}
	steady(h, base, base+3*hour, 15*second, 10, "a")
	raw := newRawStore(t, h)
	app := raw.Appender(context.Background())
	lset := labels.FromStrings("__name__", "latency_seconds", "instance", "a")
	for i := range int64(3 * hour / (15 * second)) {
		if _, err := app.AppendHistogram(0, lset, base+i*15*second, tsdbutil.GenerateTestHistogram(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	plain := newTestAPI(t, raw)
	a := newTestAPI(t, raw,
		&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 170*minute},
		&fakeTier{h: h, res: hour, from: base, watermark: base + 2*hour})
	for _, expr := range []string{
		`histogram_count(rate(latency_seconds[10m]))`,
		`histogram_quantile(0.9, sum(increase(latency_seconds[2h])))`,
		`histogram_sum(sum_over_time(latency_seconds[30m]))`,
		`histogram_avg(latency_seconds)`,
		`histogram_quantile(0.5, rate(latency_seconds[20m])) + on (instance) 0 * rate(c_total[20m])`,
		`count({__name__=~"latency_seconds|x"})`,
	} {
		for _, step := range []int64{5 * minute, hour} {
			want := runRange(t, plain, context.Background(), expr, base+2*hour, base+3*hour-minute, step)
			got := runRange(t, a, context.Background(), expr, base+2*hour, base+3*hour-minute, step)
			if len(want) == 0 {
				t.Errorf("%s: no answer from raw samples", expr)
			}
			if diff := cmp.Diff(want, got, near(1e-9)); diff != "" {
				t.Errorf("%s step %d min (-raw +tiers):\n%s", expr, step/minute, diff)
			}
		}
	}
	q, err := a.Engine().NewRangeQuery(context.Background(), a.Queryable(), nil, "rate(latency_seconds[10m])", time.UnixMilli(base+hour), time.UnixMilli(base+2*hour), 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	res := q.Exec(context.Background())
	if m := res.Value.(promql.Matrix); res.Err != nil || len(m) != 1 || len(m[0].Histograms) != 13 {
		t.Errorf("%v %v", res.Err, res.Value)
	}
}
