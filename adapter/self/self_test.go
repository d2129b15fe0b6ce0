package self

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"go.uber.org/goleak"

	"github.com/ticktier/ticktier/adapter/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stored returns each series with its values, "end" for a staleness marker.
func stored(t *testing.T, raw *store.Raw) map[string][]any {
	t.Helper()
	q, err := raw.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	out := map[string][]any{}
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	for set.Next() {
		it := set.At().Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			ts, v := it.At()
			if ts%15_000 != 0 {
				t.Errorf("%s has a sample at %d", set.At().Labels(), ts)
			}
			if value.IsStaleNaN(v) {
				out[set.At().Labels().String()] = append(out[set.At().Labels().String()], "end")
			} else {
				out[set.At().Labels().String()] = append(out[set.At().Labels().String()], v)
			}
		}
	}
	return out
}

// broken is a collector that fails when told to.
type broken struct {
	desc *prometheus.Desc
	on   atomic.Bool
}

func (b *broken) Describe(c chan<- *prometheus.Desc) { c <- b.desc }
func (b *broken) Collect(c chan<- prometheus.Metric) {
	if b.on.Load() {
		c <- prometheus.NewInvalidMetric(b.desc, errors.New("out of order"))
		return
	}
	c <- prometheus.MustNewConstMetric(b.desc, prometheus.GaugeValue, 5)
}

func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, err := store.OpenRaw(t.TempDir(), store.RawOptions{Retention: time.Hour, OutOfOrderWindow: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := raw.Close(); err != nil {
				t.Error(err)
			}
		}()
		reg := prometheus.NewRegistry()
		up := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "x_device_up"}, []string{"instance"})
		count := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x_count_total"}, []string{"job"})
		other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "other"})
		fails := &broken{desc: prometheus.NewDesc("x_fails", "Fails.", nil, nil)}
		reg.MustRegister(up, count, other, fails)
		up.WithLabelValues("r1").Set(1)
		up.WithLabelValues("r2").Set(1)
		count.WithLabelValues("mine").Add(3)

		var log strings.Builder
		r, err := New(Config{
			Gatherer: reg, Store: raw, Prefixes: []string{"x_"}, Devices: "x_device_",
			Labels: labels.FromStrings("job", "adapter", "instance", "a1"), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		round := func() { time.Sleep(15 * time.Second); synctest.Wait() }
		time.Sleep(time.Second) // between two rounds
		synctest.Wait()
		round()
		up.WithLabelValues("r1").Set(0)
		fails.on.Store(true)
		up.DeleteLabelValues("r2") // in a round that fails nothing ends
		round()
		round()
		fails.on.Store(false)
		round()
		round()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := map[string][]any{
			`{__name__="x_device_up", instance="r1"}`:               {1.0, 0.0, 0.0, 0.0, 0.0},
			`{__name__="x_device_up", instance="r2"}`:               {1.0, "end"},
			`{__name__="x_count_total", instance="a1", job="mine"}`: {3.0, 3.0, 3.0, 3.0, 3.0},
			`{__name__="x_fails", instance="a1", job="adapter"}`:    {5.0, 5.0, 5.0},
		}
		if diff := cmp.Diff(want, stored(t, raw)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		if v := testutil.ToFloat64(r.failures); v != 2 {
			t.Errorf("%v failures are counted, want 2", v)
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "stored again") {
			t.Errorf("failures are logged %d times:\n%s", n, &log)
		}
	})
}

// TestRetiredWhileDown: a device that is gone before the first round after a restart
// ends, one that ended before is left alone.
func TestRetiredWhileDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, err := store.OpenRaw(t.TempDir(), store.RawOptions{Retention: time.Hour, OutOfOrderWindow: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		run := func(d time.Duration, devices ...string) {
			reg := prometheus.NewRegistry()
			up := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "x_device_up"}, []string{"instance"})
			reg.MustRegister(up)
			for _, d := range devices {
				up.WithLabelValues(d).Set(1)
			}
			r, err := New(Config{Gatherer: reg, Store: raw, Prefixes: []string{"x_"}, Devices: "x_device_"})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), d)
			defer cancel()
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
		run(15*time.Second, "r1", "r2", "r3")
		run(15*time.Second, "r1", "r2")
		run(30*time.Second, "r1")
		time.Sleep(11 * time.Minute)
		run(15 * time.Second) // so long ago that it is no longer there
		want := map[string][]any{
			`{__name__="x_device_up", instance="r1"}`: {1.0, 1.0, 1.0, 1.0},
			`{__name__="x_device_up", instance="r2"}`: {1.0, 1.0, "end"},
			`{__name__="x_device_up", instance="r3"}`: {1.0, "end"},
		}
		if diff := cmp.Diff(want, stored(t, raw)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

// refusing is a store that takes nothing.
type refusing struct{ storage.Queryable }

func (refusing) AppenderV2(context.Context) storage.AppenderV2 { return refuser{} }

type refuser struct{ storage.AppenderV2 }

func (refuser) Append(storage.SeriesRef, labels.Labels, int64, int64, float64, *histogram.Histogram, *histogram.FloatHistogram, storage.AOptions) (storage.SeriesRef, error) {
	return 0, errors.New("full")
}
func (refuser) Commit() error { return nil }

func TestStoreRefuses(t *testing.T) {
	reg := prometheus.NewRegistry()
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "x"}, []string{"l"})
	reg.MustRegister(g)
	g.WithLabelValues("1")
	g.WithLabelValues("2")
	r, err := New(Config{Gatherer: reg, Store: refusing{}, Prefixes: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.round(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "full, and 1 more") {
		t.Errorf("got %v", err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a Recorder without a store is made")
	}
}

func TestSamples(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{0.5, 2}})
	s := prometheus.NewSummary(prometheus.SummaryOpts{Name: "s", Objectives: map[float64]float64{0.5: 0.1}})
	u := prometheus.NewUntypedFunc(prometheus.UntypedOpts{Name: "u"}, func() float64 { return 7 })
	reg.MustRegister(h, s, u)
	h.Observe(1)
	h.Observe(3)
	s.Observe(4)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, s := range samples(f, labels.FromStrings("own", "1")) {
			got = append(got, s.labels.String()+" "+number(s.v))
		}
	}
	want := []string{
		`{__name__="h_bucket", le="0.5", own="1"} 0.0`, `{__name__="h_bucket", le="2.0", own="1"} 1.0`, `{__name__="h_bucket", le="+Inf", own="1"} 2.0`,
		`{__name__="h_sum", own="1"} 4.0`, `{__name__="h_count", own="1"} 2.0`,
		`{__name__="s", own="1", quantile="0.5"} 4.0`, `{__name__="s_sum", own="1"} 4.0`, `{__name__="s_count", own="1"} 1.0`,
		`{__name__="u", own="1"} 7.0`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

func TestDisk(t *testing.T) {
	gather := func(dir string) ([]*dto.MetricFamily, error) {
		reg := prometheus.NewRegistry()
		reg.MustRegister(Disk(dir))
		return reg.Gather()
	}
	families, err := gather(t.TempDir())
	if err != nil || len(families) != 2 {
		t.Fatalf("%v: %v", families, err)
	}
	free, size := families[0].GetMetric()[0].GetGauge().GetValue(), families[1].GetMetric()[0].GetGauge().GetValue()
	if size < 1 || free > size {
		t.Errorf("free %v of %v", free, size)
	}
	if _, err := gather(t.TempDir() + "/absent"); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("a directory that is not there: %v", err)
	}
}
