package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
)

const fillRules = `
groups:
  - name: fill
    interval: 15s
    rules:
      - record: instance:x:rate1m
        expr: rate(x[1m])
      - record: all:x:sum
        expr: sum(x)
      - record: all:x:max5m
        expr: max_over_time(all:x:sum[5m])
`

// TestBacklogIsRecorded pushes the last hour of one device, then that of another: every
// result of the recording rules is what its expression gives now, in order or not.
func TestBacklogIsRecorded(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir(), "--rules="+writeFile(t, t.TempDir(), "r.yml", fillRules), "--rules.query-offset=1s", "--rules.fill-delay=2s", "--fold.interval=1s")
	end := nowMs()
	const hour = int64(time.Hour / time.Millisecond)
	push := func(instance string, f func(i int64) float64) {
		t.Helper()
		s := client.Series{Labels: map[string]string{"__name__": "x", "instance": instance}}
		for at := end - hour; at < end; at += 5000 {
			s.Samples = append(s.Samples, client.Sample{T: at, V: f((at - end + hour) / 5000)})
		}
		if resp, err := adapter.Push(t.Context(), client.V2, []client.Series{s}); err != nil || resp.Status/100 != 2 {
			t.Fatalf("push: %+v, %v", resp, err)
		}
	}
	// value is the result of an expression over raw samples at a time.
	value := func(ctx context.Context, expr string, at int64) (float64, error) {
		r, err := adapter.Query(ctx, expr, at, "tier", "raw")
		if err != nil || len(r.Series) == 0 {
			return math.NaN(), err
		}
		return r.Value()
	}
	check := func(instances ...string) {
		t.Helper()
		pairs := map[string]string{"all:x:sum": "sum(x)", "all:x:max5m": "max_over_time(all:x:sum[5m])"}
		for _, i := range instances {
			pairs[`instance:x:rate1m{instance="`+i+`"}`] = `rate(x{instance="` + i + `"}[1m])`
		}
		eventually(t, time.Minute, fmt.Sprint("the results over ", instances), func(ctx context.Context) error {
			for recorded, expr := range pairs {
				r, err := adapter.Query(ctx, recorded+"[70m]", nowMs(), "tier", "raw")
				if err != nil {
					return err
				}
				n := 0
				for _, s := range r.Series {
					for i := 0; i < len(s.Samples); i += 10 {
						p := s.Samples[i]
						if p.T < end-hour*3/4 {
							continue // the window that raw samples have a part of is asked of its bucket
						}
						n++
						if v, err := value(ctx, expr, p.T); err != nil || math.Abs(v-p.V) > 1e-9*math.Abs(v) {
							return fmt.Errorf("%s is %v at %d, %s is %v: %v", recorded, p.V, p.T, expr, v, err)
						}
					}
				}
				if n < 10 {
					return fmt.Errorf("%s has %d samples compared", recorded, n)
				}
			}
			return nil
		})
	}
	push("r1", func(i int64) float64 { return float64(i) })
	check("r1")
	push("r2", func(i int64) float64 { return float64(1000 + i*i%77) })
	check("r1", "r2")
	if v, err := adapter.Metric(t.Context(), "ticktier_adapter_rules_fill_failures_total"); err != nil || v != 0 {
		t.Errorf("%v evaluations failed: %v", v, err)
	}
	// What was replaced is folded, as what was not.
	eventually(t, time.Minute, "folds after the results were replaced", func(ctx context.Context) error {
		failed, err := adapter.Metric(ctx, "ticktier_adapter_fold_failures_total")
		if err != nil || failed != 0 {
			t.Fatalf("%v folds failed: %v", failed, err)
		}
		// Half an hour, whose windows are closed and were replaced.
		const at = `all:x:sum[30m] @ %d`
		t0 := (end - hour/4) / 300_000 * 300
		raw, err := value(ctx, fmt.Sprintf("sum_over_time("+at+")", t0), nowMs())
		if err != nil {
			return err
		}
		r, err := adapter.Query(ctx, fmt.Sprintf("sum_over_time("+at+")", t0), nowMs(), "tier", "5m")
		if err != nil {
			return err
		}
		if v, err := r.Value(); err != nil || math.Abs(v-raw) > 1e-9*math.Abs(raw) || raw == 0 {
			return fmt.Errorf("in buckets %v, raw %v: %v", v, raw, err)
		}
		return nil
	})
	// The series that mark what was replaced are not seen.
	body, err := adapter.Get(t.Context(), "/api/v1/labels")
	if err != nil || len(body) == 0 || containsLabel(body, "__filled__") {
		t.Errorf("labels: %s, %v", body, err)
	}
}

func containsLabel(body []byte, name string) bool { return bytes.Contains(body, []byte(`"`+name+`"`)) }
