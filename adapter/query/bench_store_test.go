package query

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/store"
)

// BenchmarkStore reads one device's series for the ranges of a chart from the store
// alone: every sample of the tier that a query with a thousand points reads, without
// PromQL and JSON. TICKTIER_BENCH_DATA is a directory that `ticktier-adapter seed` made,
// which nothing else has open.
func BenchmarkStore(b *testing.B) {
	dir := os.Getenv("TICKTIER_BENCH_DATA")
	if dir == "" {
		b.Skip("TICKTIER_BENCH_DATA is not set")
	}
	logger := slog.New(slog.DiscardHandler)
	raw, err := store.OpenRaw(filepath.Join(dir, "raw"), store.RawOptions{Logger: logger})
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close() //nolint:errcheck // only read
	tiers := map[int64]*store.Buckets{}
	for res, name := range map[int64]string{5 * minute: "5m", hour: "1h"} {
		tiers[res], err = store.OpenBuckets(filepath.Join(dir, name), store.BucketsOptions{
			Resolution: res, BlockRange: res * 24, Counter: counterName, ReadOnly: true, Logger: logger,
		})
		if err != nil {
			b.Fatal(err)
		}
		defer tiers[res].Close() //nolint:errcheck // only read
	}
	end := min(tiers[hour].Durable(), tiers[5*minute].Durable())
	const day = 24 * hour
	// The finest tier that is fine enough for the step, and the coarser one before it.
	for _, c := range []struct {
		days, raw, fine, coarse int64
	}{{1, 1, 0, 0}, {7, 0, 7, 0}, {30, 0, 13, 17}, {90, 0, 0, 90}, {730, 0, 0, 730}} {
		b.Run(fmt.Sprint(c.days, "d"), func(b *testing.B) {
			if tiers[hour].MinTime() > end-(c.days-1)*day {
				b.Skip("the directory holds less")
			}
			n, device := 0, 0
			before := cpuUsed(b)
			for b.Loop() {
				device++
				n += readStore(b, device%200, func() (storage.Querier, error) { return raw.Querier(end-c.raw*day, end-1) }, c.raw)
				n += readStore(b, device%200, func() (storage.Querier, error) {
					return tiers[5*minute].Querier(end-c.fine*day, end-1, store.Value, 0)
				}, c.fine)
				n += readStore(b, device%200, func() (storage.Querier, error) {
					return tiers[hour].Querier(end-c.days*day, end-c.fine*day-1, store.Value, 0)
				}, c.coarse)
			}
			b.ReportMetric(float64(cpuUsed(b)-before)/1e6/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(n)/float64(b.N), "samples/op")
		})
	}
}

// cpuUsed is the CPU time that the process has used, in ns: on a machine that others
// use too, the clock says little.
func cpuUsed(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// readStore counts the samples of a device.
func readStore(b *testing.B, device int, open func() (storage.Querier, error), days int64) (n int) {
	if days == 0 {
		return 0
	}
	q, err := open()
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close() //nolint:errcheck // only read
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "instance", fmt.Sprintf("router-%05d", device)))
	var it chunkenc.Iterator
	for set.Next() {
		for it = set.At().Iterator(it); it.Next() != chunkenc.ValNone; n++ {
			_, _ = it.At()
		}
	}
	if set.Err() != nil || n == 0 {
		b.Fatalf("%d samples of device %d: %v", n, device, set.Err())
	}
	return n
}
