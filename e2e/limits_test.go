package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// TestSeriesLimit bounds the series of an exporter: it keeps some, they go on, and the
// report tells what they are made of.
func TestSeriesLimit(t *testing.T) {
	t.Parallel()
	const limit = 50
	adapter := startAdapter(t, t.TempDir(), fmt.Sprintf("--devices.max-series=%d", limit))
	startExporter(t, "--rate=10", "--remote-write.url=http://"+adapter.addr+"/api/v1/write", "--remote-write.interval=500ms", "--external-label=instance=wide")
	var report struct {
		Data struct {
			Series, MaxSeries int
			Metrics           []struct {
				Name  string
				Value int
			} `json:"seriesCountByMetricName"`
		}
	}
	eventually(t, time.Minute, "the series are counted", func(ctx context.Context) error {
		status, answer, _, err := askAs(ctx, adapter, "GET", "/api/v1/devices/wide/cardinality?limit=3", "")
		if err != nil || status != 200 {
			return fmt.Errorf("status %d, %v: %s", status, err, answer)
		}
		return json.Unmarshal([]byte(answer), &report)
	})
	// The adapter's own series about the device are not pushed, and few.
	if d := report.Data; d.Series < limit || d.Series > limit+20 || d.MaxSeries != limit || len(d.Metrics) != 3 || d.Metrics[0].Value < d.Metrics[2].Value {
		t.Errorf("report: %+v", d)
	}
	eventually(t, time.Minute, "what it has goes on", func(ctx context.Context) error {
		const pushed = `{instance="wide",__name__!~"ticktier_device_.*"}`
		r, err := adapter.Query(ctx, "count("+pushed+") + count("+pushed+" offset 10s)", nowMs())
		if err != nil {
			return err
		}
		if v, err := r.Value(); err != nil || v != 2*limit {
			return fmt.Errorf("%v series now and ten seconds ago: %v", v, err)
		}
		return nil
	})
	refused, err := adapter.Metric(t.Context(), `ticktier_adapter_receive_rejected_total{reason="series_limit"}`)
	if err != nil || refused == 0 {
		t.Errorf("%v elements are counted as refused: %v", refused, err)
	}
}
