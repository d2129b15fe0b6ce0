package e2e

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
)

// outage is how long the receiver is away.
const outage = 30 * time.Second

// TestReceiverStopped: the adapter is stopped for 30 s and comes back; no sample is
// missing, none is doubled.
func TestReceiverStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	adapter := startAdapter(t, dir)
	exporter := startExporter(t, "--rate=10", "--remote-write.interval=1s",
		"--remote-write.url="+adapter.URL("/api/v1/write"))
	start := ticking(t, adapter)

	pause(t, 5*time.Second)
	adapter.stop(t)
	pause(t, outage)
	adapter = startAdapterAt(t, adapter.addr, dir)
	pause(t, 5*time.Second)
	checkGrid(t, adapter, exporter, start, nowMs())
}

// TestReceiverUnreachable: the connection is cut, with a request under way or not,
// for 30 s.
func TestReceiverUnreachable(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	line := startProxy(t, adapter.addr)
	exporter := startExporter(t, "--rate=10", "--remote-write.interval=1s",
		"--remote-write.url=http://"+line.addr+"/api/v1/write")
	start := ticking(t, adapter)

	// Short cuts first: they hit requests that are under way.
	for range 8 {
		pause(t, 400*time.Millisecond)
		line.cut()
		if err := line.mend(line.addr); err != nil {
			t.Fatal(err)
		}
	}
	line.cut()
	pause(t, outage)
	if err := line.mend(line.addr); err != nil {
		t.Fatal(err)
	}
	pause(t, 5*time.Second)
	checkGrid(t, adapter, exporter, start, nowMs())
}

// ticking waits for the first samples and returns a time after the first one.
func ticking(t *testing.T, adapter *app) int64 {
	t.Helper()
	var first int64
	eventually(t, 30*time.Second, "first samples", func(ctx context.Context) error {
		r, err := adapter.Query(ctx, `node_context_switches_total[1m]`, nowMs()+1000)
		if err != nil {
			return err
		}
		if len(r.Series) != 1 || len(r.Series[0].Samples) == 0 {
			return fmt.Errorf("%d series", len(r.Series))
		}
		first = r.Series[0].Samples[0].T
		return nil
	})
	return first + 200
}

// checkGrid demands that every tick in (start, end] is stored exactly once: one
// sample in each slot of 100 ms, but for the slots that the exporter itself counts
// as missed, and the same times for every series that is read on every tick.
func checkGrid(t *testing.T, adapter, exporter *app, start, end int64) {
	t.Helper()
	start = start / 100 * 100
	end = end / 100 * 100
	const expr = `{__name__=~"node_context_switches_total|node_intr_total|node_forks_total|node_cpu_seconds_total|node_softnet_processed_total|node_vmstat_pgfault|node_network_receive_bytes_total"}`
	var r *client.Result
	eventually(t, 40*time.Second, "the newest ticks have arrived", func(ctx context.Context) error {
		var err error
		r, err = adapter.Query(ctx, fmt.Sprintf("%s[%dms]", expr, end-start), end)
		if err != nil {
			return err
		}
		if len(r.Series) < 10 {
			return fmt.Errorf("only %d series", len(r.Series))
		}
		for _, s := range r.Series {
			if age := end - last(s).T; age > 300 {
				return fmt.Errorf("%s ends %d ms too early", s.Name(), age)
			}
		}
		return nil
	})
	missed, err := exporter.Metric(t.Context(), "ticktier_exporter_ticks_missed_total")
	if err != nil {
		t.Error(err)
	}
	checkSlots(t, r.Series[0], start, end, int(missed))
	for _, s := range r.Series[1:] {
		if err := sameTimes(r.Series[0], s); err != nil {
			t.Errorf("%s: %v", s.Name(), err)
		}
	}
	for _, s := range r.Series {
		for i := 1; i < len(s.Samples); i++ {
			if s.Samples[i].V < s.Samples[i-1].V {
				t.Errorf("%s falls from %v to %v at %d", s.Name(), s.Samples[i-1].V, s.Samples[i].V, s.Samples[i].T)
				break
			}
		}
	}
}

// checkSlots counts the slots in (start, end) without a sample, which may be as
// many as the exporter has missed, and those with more than one.
func checkSlots(t *testing.T, s client.Series, start, end int64, missed int) {
	t.Helper()
	perSlot := make(map[int64]int)
	for _, p := range s.Samples {
		perSlot[p.T/100]++
	}
	var empty []int64
	// The newest slots may still be on their way.
	for slot := start/100 + 1; slot < (end-300)/100; slot++ {
		switch n := perSlot[slot]; {
		case n == 0:
			empty = append(empty, slot*100)
		case n > 1:
			t.Errorf("%s: %d samples in the slot at %d", s.Name(), n, slot*100)
		}
	}
	if len(empty) > missed {
		t.Errorf("%s: no sample in %d of %d slots, the exporter says that it missed %d; the first: %v",
			s.Name(), len(empty), (end-start)/100, missed, empty[:min(10, len(empty))])
	}
	if share := float64(len(empty)) * 100 / float64(end-start); share > 0.1 {
		t.Errorf("%.1f %% of the slots were missed", share*100)
	}
	t.Logf("%d slots, %d without a sample, %d missed", (end-start)/100, len(empty), missed)
}

func sameTimes(a, b client.Series) error {
	if len(a.Samples) != len(b.Samples) {
		return fmt.Errorf("%d samples, %s has %d", len(b.Samples), a.Name(), len(a.Samples))
	}
	for i := range a.Samples {
		if a.Samples[i].T != b.Samples[i].T {
			return fmt.Errorf("sample %d is at %d, that of %s at %d", i, b.Samples[i].T, a.Name(), a.Samples[i].T)
		}
		if math.IsNaN(b.Samples[i].V) {
			return fmt.Errorf("NaN at %d", b.Samples[i].T)
		}
	}
	return nil
}
