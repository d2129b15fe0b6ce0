package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
)

// tierFlags make the adapter take three-day-old samples, which its own metrics would
// make late, and fold at once.
var tierFlags = []string{"--no-self.store", "--retention.raw=96h", "--out-of-order-window=2h", "--fold.interval=1s", "--fold.lag=1s"}

// lastHour is the end of the last full hour. One that has only just ended does not
// count: its last window may still be open for samples on their way.
func lastHour() int64 { return (nowMs() - minuteMs) / hourMs * hourMs }

// threeDays are the bounds of made-up samples: they end at the last full hour.
func threeDays() (start, end int64) {
	end = lastHour()
	return end - 3*dayMs, end
}

// testSeed is a new one for every run; TEST_SEED repeats a run.
func testSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TEST_SEED: %v", err)
		}
	}
	t.Logf("TEST_SEED=%d", seed)
	return seed
}

// pushAll pushes series in pieces of the given length in ms, all series together,
// in the order of time.
func pushAll(t *testing.T, c *client.Client, series []client.Series, start, end, piece int64) {
	t.Helper()
	for from := start; from < end; from += piece {
		push(t, c, client.V2, between(series, from, from+piece))
	}
}

func push(t *testing.T, c *client.Client, v client.Version, series []client.Series) {
	t.Helper()
	resp, err := c.Push(t.Context(), v, series)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Status/100 != 2 {
		t.Fatalf("push: status %d: %.300s", resp.Status, resp.Body)
	}
}

// between returns the series with their samples in [from, to), without those that
// have none.
func between(series []client.Series, from, to int64) []client.Series {
	var out []client.Series
	for _, s := range series {
		if in := cut(s.Samples, from, to); len(in) > 0 {
			out = append(out, client.Series{Labels: s.Labels, Samples: in})
		}
	}
	return out
}

// waitFolded waits until every closed window is folded.
func waitFolded(t *testing.T, adapter *app) {
	t.Helper()
	var cycles float64
	metric := func(ctx context.Context, name string, want func(v float64) bool) error {
		v, err := adapter.Metric(ctx, "ticktier_adapter_fold_"+name)
		if err == nil && !want(v) {
			err = fmt.Errorf("%s is %v", name, v)
		}
		return err
	}
	eventually(t, time.Minute, "every closed window is folded", func(ctx context.Context) error {
		return metric(ctx, "pending_windows", func(v float64) bool { return v == 0 })
	})
	// The cycle that folded the last of them goes on to cut blocks.
	eventually(t, time.Minute, "cycles are counted", func(ctx context.Context) error {
		return metric(ctx, "duration_seconds_count", func(v float64) bool { cycles = v; return true })
	})
	eventually(t, time.Minute, "that cycle ends", func(ctx context.Context) error {
		return metric(ctx, "duration_seconds_count", func(v float64) bool { return v > cycles })
	})
}

var rangeFunctions = []string{"count_over_time", "sum_over_time", "avg_over_time", "min_over_time", "max_over_time", "increase", "resets"}

// askable says whether fn means something for s: counters are asked for what they
// counted, gauges for what they were.
func askable(fn string, s client.Series) bool {
	switch fn {
	case "increase", "resets":
		return isCounter(s)
	case "count_over_time":
		return true
	}
	return !isCounter(s)
}

// checkTier demands that a tier answers every range function like the oracle: for
// every hour, for every day, and for some single moments.
func checkTier(t *testing.T, adapter *app, tier string, series []client.Series, start, end int64) {
	t.Helper()
	bad := 0
	for _, fn := range rangeFunctions {
		for _, s := range series {
			if !askable(fn, s) {
				continue
			}
			bad += checkRange(t, adapter, tier, fn, s, start+hourMs, end, hourMs, hourMs)
			bad += checkRange(t, adapter, tier, fn, s, start+dayMs, end, 6*hourMs, dayMs)
			bad += checkInstant(t, adapter, tier, fn, s, start+7*hourMs, hourMs)
			if bad > 20 {
				t.Fatalf("tier %s: more than 20 answers are wrong; stopping", tier)
			}
		}
	}
}

func selector(fn string, s client.Series, rng int64) string {
	return fmt.Sprintf("%s(%s[%ds])", fn, s.Name(), rng/1000)
}

func checkRange(t *testing.T, adapter *app, tier, fn string, s client.Series, first, last, step, rng int64) int {
	t.Helper()
	expr := selector(fn, s, rng)
	r, err := adapter.QueryRange(t.Context(), expr, first, last, step, "tier", tier)
	if err != nil {
		t.Errorf("tier %s: %v", tier, err)
		return 1
	}
	var want []client.Sample
	for at := first; at <= last; at += step {
		if v, ok := oracle(fn, s, at, rng); ok {
			want = append(want, client.Sample{T: at, V: v})
		}
	}
	var got []client.Sample
	if len(r.Series) > 0 {
		got = r.Series[0].Samples
	}
	if err := diffSamples(got, want, 1e-9); err != nil {
		t.Errorf("tier %s, step %ds: %s: got and want: %v", tier, step/1000, expr, err)
		return 1
	}
	return 0
}

func checkInstant(t *testing.T, adapter *app, tier, fn string, s client.Series, at, rng int64) int {
	t.Helper()
	expr := selector(fn, s, rng)
	r, err := adapter.Query(t.Context(), expr, at, "tier", tier)
	if err != nil {
		t.Errorf("tier %s: %v", tier, err)
		return 1
	}
	want, ok := oracle(fn, s, at, rng)
	if !ok {
		if len(r.Series) > 0 {
			t.Errorf("tier %s: %s at %d = %v, want nothing", tier, expr, at, r.Series)
			return 1
		}
		return 0
	}
	if got, err := r.Value(); err != nil || !alike(got, want, 1e-9) {
		t.Errorf("tier %s: %s at %d = %v, want %v (%v)", tier, expr, at, got, want, err)
		return 1
	}
	return 0
}

// TestThreeDays: raw, 5m and 1h answers agree with the oracle; so do those of 5m
// and 1h after the raw samples have expired, and after restarts.
func TestThreeDays(t *testing.T) {
	t.Parallel()
	start, end := threeDays()
	series := madeUp(testSeed(t), start, end)
	edges := onEdges(start, end)
	dir := t.TempDir()
	adapter := startAdapter(t, dir, tierFlags...)
	pushAll(t, adapter.Client, append(series, edges), start, end, hourMs)
	waitFolded(t, adapter)
	for _, tier := range []string{"raw", "5m", "1h"} {
		checkTier(t, adapter, tier, series, start, end)
	}
	checkEdges(t, adapter, edges, start, end)
	checkEnds(t, adapter, series, end)
	if t.Failed() {
		t.FailNow()
	}
	adapter.stop(t)

	adapter = startAdapter(t, dir, "--retention.raw=6h", "--out-of-order-window=2h", "--fold.interval=1s", "--fold.lag=1s")
	waitRawGone(t, adapter, series[0], end-dayMs)
	for _, tier := range []string{"5m", "1h"} {
		checkTier(t, adapter, tier, series, start, end)
	}
	if t.Failed() {
		t.FailNow()
	}
	// Without the parameter the adapter finds for itself where there is something.
	for _, s := range series {
		fn := "max_over_time"
		if isCounter(s) {
			fn = "increase"
		}
		checkRange(t, adapter, "", fn, s, start+hourMs, end, hourMs, hourMs)
	}
}

// checkEdges demands that a sample on the edge of a window belongs to the window
// that begins there, and that every sample belongs to exactly one.
func checkEdges(t *testing.T, adapter *app, edges client.Series, start, end int64) {
	t.Helper()
	want := shifted(edges)
	for _, tier := range []string{"5m", "1h"} {
		for _, fn := range []string{"count_over_time", "sum_over_time", "min_over_time", "max_over_time"} {
			checkRange(t, adapter, tier, fn, want, start+hourMs, end, hourMs, hourMs)
		}
	}
	checkRange(t, adapter, "raw", "count_over_time", edges, start+hourMs, end, hourMs, hourMs)
}

// checkEnds demands that a series that ended with a staleness marker has ended in
// every tier, and that one that goes on is there.
func checkEnds(t *testing.T, adapter *app, series []client.Series, end int64) {
	t.Helper()
	checked := 0
	for _, s := range series {
		for i, p := range s.Samples[:len(s.Samples)-1] {
			if !isStale(p.V) || s.Samples[i+1].T-p.T < 2*hourMs+20*minuteMs {
				continue
			}
			checked++
			for tier, window := range map[string]int64{"raw": 1, "5m": 5 * minuteMs, "1h": hourMs} {
				// After the window in which it ended the series is gone, until it is back.
				first := (p.T/window+1)*window + minuteMs
				r, err := adapter.QueryRange(t.Context(), s.Name(), first, s.Samples[i+1].T/hourMs*hourMs-1, minuteMs, "tier", tier)
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Series) > 0 {
					t.Errorf("tier %s: %s ended at %d and has values at %v", tier, s.Name(), p.T, r.Series[0].Samples[0])
				}
			}
		}
	}
	if checked == 0 {
		t.Log("no series ended for long enough; another seed may have one")
	}
	for _, tier := range []string{"raw", "5m", "1h"} {
		r, err := adapter.QueryRange(t.Context(), `count(made_level)`, end-dayMs, end-1, hourMs, "tier", tier)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Series) != 1 || len(r.Series[0].Samples) != 24 {
			t.Errorf("tier %s: count(made_level) has %d series", tier, len(r.Series))
			continue
		}
		for _, p := range r.Series[0].Samples {
			if p.V != 2 {
				t.Errorf("tier %s: count(made_level) is %v at %d, want 2", tier, p.V, p.T)
			}
		}
	}
}

// TestSumOverDevices: a bare selector means the average of a bucket, so that sums
// over devices are not multiplied by samples a bucket.
func TestSumOverDevices(t *testing.T) {
	t.Parallel()
	end := lastHour()
	start := end - 3*hourMs
	var series []client.Series
	for i, v := range []float64{10, 20, 30} {
		s := client.Series{Labels: map[string]string{"__name__": "made_even", "instance": fmt.Sprint("router-", i)}}
		for at := start; at < end; at += 1000 {
			s.Samples = append(s.Samples, client.Sample{T: at + 500, V: v})
		}
		series = append(series, s)
	}
	adapter := startAdapter(t, t.TempDir(), tierFlags...)
	pushAll(t, adapter.Client, series, start, end, 10*minuteMs)
	waitFolded(t, adapter)
	for _, tier := range []string{"raw", "5m", "1h"} {
		for expr, want := range map[string]float64{
			"sum(made_even)":   60,
			"count(made_even)": 3,
			"avg(made_even)":   20,
			`count_over_time(made_even{instance="router-0"}[1h])`: 3600,
			"sum(sum_over_time(made_even[1h]))":                   60 * 3600,
			"sum(rate(made_even[1h]))":                            0,
		} {
			r, err := adapter.Query(t.Context(), expr, end, "tier", tier)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := r.Value(); err != nil || !alike(got, want, 1e-9) {
				t.Errorf("tier %s: %s = %v, %v; want %v", tier, expr, got, err, want)
			}
		}
	}
}

// waitRawGone waits until there is no raw sample at or before a time.
func waitRawGone(t *testing.T, adapter *app, s client.Series, before int64) {
	t.Helper()
	eventually(t, 4*time.Minute, "raw samples expire", func(ctx context.Context) error {
		r, err := adapter.Query(ctx, selector("count_over_time", s, dayMs), before, "tier", "raw")
		if err != nil {
			return err
		}
		if len(r.Series) > 0 {
			return fmt.Errorf("still there: %v", r.Series[0].Samples)
		}
		return nil
	})
}
