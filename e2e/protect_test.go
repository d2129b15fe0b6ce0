package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestProtect: sources that cost more than --rate.protect allows are slowed, and that is
// said in the log, in metrics and in the list of sources;
// without the flag none is.
func TestProtect(t *testing.T) {
	t.Parallel()
	// 5 µs of each 10 ms: interrupts, vmstat and netstat cost more anywhere.
	a := startExporter(t, "--rate=100", "--rate.protect=0.0005")
	free := startExporter(t, "--rate=100")
	eventually(t, 30*time.Second, "slowed sources", func(ctx context.Context) error {
		body, err := a.Get(ctx, "/api/v1/sources")
		if err != nil {
			return err
		}
		slowed := 0
		for _, s := range parseSources(t, body) {
			if !s.Slowed {
				continue
			}
			slowed++
			if s.Cadence <= 0.01 {
				return fmt.Errorf("%s is slowed to %v s", s.Name, s.Cadence)
			}
			if !strings.Contains(a.Log(), "collector="+s.Name+" cost=") {
				return fmt.Errorf("the log does not tell of %s", s.Name)
			}
		}
		if slowed == 0 {
			return errors.New("none is slowed")
		}
		n, err := a.Metric(ctx, "ticktier_exporter_collectors_slowed")
		if err != nil || n == 0 {
			return fmt.Errorf("%d are slowed, the metric says %v: %v", slowed, n, err)
		}
		c, err := a.Metric(ctx, `ticktier_exporter_collector_cadence_seconds{collector="vmstat"}`)
		if err != nil || c <= 0.01 {
			return fmt.Errorf("vmstat's cadence is %v: %v", c, err)
		}
		return nil
	})
	if n, err := free.Metric(t.Context(), "ticktier_exporter_collectors_slowed"); err != nil || n != 0 {
		t.Errorf("without the flag %v are slowed: %v", n, err)
	}
}
