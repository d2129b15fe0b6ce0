package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// TestPushedBursts: who only gets pushes sees what ticks did, too: real Prometheus and
// the adapter as native histograms by 2.0, VictoriaMetrics and a Prometheus that is
// spoken to by 1.0 as classic ones; and everybody the highest tick.
func TestPushedBursts(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir(), "--no-self.store")
	prom2 := startPrometheus(t, "", "--web.enable-remote-write-receiver")
	prom1 := startPrometheus(t, "", "--web.enable-remote-write-receiver")
	vm := startVictoriaMetrics(t)
	startExporter(t, "--rate=20", "--remote-write.interval=1s", "--remote-write.bursts", "--external-label=instance=r1",
		"--remote-write.url="+adapter.URL("/api/v1/write"), "--remote-write.url="+prom2.URL("/api/v1/write"),
		"--remote-write.url="+prom1.URL("/api/v1/write")+"#protocol=1.0", "--remote-write.url="+vm.URL("/api/v1/write"))
	const duration = `ticktier_exporter_tick_duration_seconds`
	for _, c := range []struct {
		name  string
		from  *app
		query string
		least float64
	}{
		{"adapter", adapter, `histogram_count(` + duration + `{instance="r1"})`, 40},
		{"prometheus by 2.0", prom2, `histogram_count(` + duration + `{instance="r1"})`, 40},
		{"prometheus by 2.0, quantile", prom2, `histogram_quantile(0.9, rate(` + duration + `[20s]))`, 1e-5},
		{"prometheus by 1.0", prom1, `histogram_quantile(0.9, rate(` + duration + `_bucket[20s]))`, 1e-6},
		{"prometheus by 1.0, count", prom1, duration + `_count{instance="r1",job="node"}`, 40},
		{"victoria-metrics", vm, duration + `_bucket{le="+Inf",instance="r1"}`, 40},
		{"adapter, highest", adapter, `max_over_time(` + duration + `_max[1m])`, 1e-5},
		{"prometheus by 2.0, highest", prom2, `max_over_time(` + duration + `_max[1m])`, 1e-5},
		{"victoria-metrics, highest", vm, `max_over_time(` + duration + `_max[1m])`, 1e-5},
		{"prometheus by 2.0, lowest", prom2, duration + `_max >= ` + duration + `_min`, 1e-6},
	} {
		eventually(t, 40*time.Second, c.name+": "+c.query, func(ctx context.Context) error {
			r, err := c.from.Query(ctx, c.query, nowMs())
			if err != nil {
				return err
			}
			if v, err := r.Value(); err != nil || v < c.least {
				return fmt.Errorf("%v, want at least %v: %v", v, c.least, err)
			}
			return nil
		})
	}
}
