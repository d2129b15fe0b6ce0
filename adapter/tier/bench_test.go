package tier

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/ticktier/ticktier/adapter/store"
)

// BenchmarkFold folds one window of series that were sampled once a second, beside
// what it took to append the samples to the TSDB.
func BenchmarkFold(b *testing.B) {
	for _, series := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("series=%d", series), func(b *testing.B) { benchmarkFold(b, series) })
	}
}

func benchmarkFold(b *testing.B, series int) {
	began := time.Now()
	raw, fine, d, _ := benchDriver(b, series)
	defer closeAll(b, raw, fine, d)
	appended := time.Since(began)
	fine.Start(epoch)
	b.ReportAllocs()
	for b.Loop() {
		if err := d.foldSpan(context.Background(), redo{span: span{epoch, epoch + five}}); err != nil {
			b.Fatal(err)
		}
	}
	n := float64(series) * 300
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/sample")
	b.ReportMetric(float64(appended.Nanoseconds())/(2*n), "append-ns/sample")
}

// benchDriver is a driver of series with two windows of samples, one a second.
func benchDriver(b *testing.B, series int) (*store.Raw, *store.Buckets, *Driver, []labels.Labels) {
	dir := b.TempDir()
	logger := slog.New(slog.DiscardHandler)
	fatal := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	raw, err := store.OpenRaw(filepath.Join(dir, "raw"), store.RawOptions{Retention: 48 * time.Hour, OutOfOrderWindow: 24 * time.Hour, Logger: logger})
	fatal(err)
	fine, err := store.OpenBuckets(filepath.Join(dir, "5m"), store.BucketsOptions{Resolution: five, BlockRange: 2 * hour, Logger: logger})
	fatal(err)
	coarse, err := store.OpenBuckets(filepath.Join(dir, "1h"), store.BucketsOptions{Resolution: hour, BlockRange: day, Logger: logger})
	fatal(err)
	d, err := New(Config{Raw: raw, Fine: fine, Coarse: coarse, Journal: filepath.Join(dir, "j"), Now: time.Now, Logger: logger})
	fatal(err)
	sets := make([]labels.Labels, series)
	refs := make([]storage.SeriesRef, series)
	for i := range sets {
		sets[i] = labels.FromStrings("__name__", fmt.Sprintf("m%d_total", i%500), "instance", fmt.Sprintf("router-%d", i/500), "job", "node")
	}
	for at := epoch; at < epoch+2*five; at += 10_000 {
		app := raw.AppenderV2(context.Background())
		for i := range sets {
			for k := range int64(10) {
				t := at + k*1000
				refs[i], err = app.Append(refs[i], sets[i], 0, t, float64((t-epoch)/1000*int64(i%97)), nil, nil, storage.AOptions{})
				fatal(err)
			}
		}
		fatal(app.Commit())
	}
	return raw, fine, d, sets
}

func closeAll(b *testing.B, raw *store.Raw, fine *store.Buckets, d *Driver) {
	for _, f := range []func() error{d.Close, d.Coarse.Close, fine.Close, raw.Close} {
		if err := f(); err != nil {
			b.Error(err)
		}
	}
}
