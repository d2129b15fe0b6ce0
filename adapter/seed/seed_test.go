package seed

import (
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"go.uber.org/goleak"

	"github.com/ticktier/ticktier/adapter/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hour = int64(3_600_000)

func config(t *testing.T, seed uint64) Config {
	return Config{
		Dir: t.TempDir(), Devices: 3, Days: 12, RawHours: 6, FineDays: 2, Seed: seed,
		End:    time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		Fine:   store.BucketsOptions{Resolution: hour / 12, BlockRange: 2 * hour, MergeRange: 24 * hour, Logger: slog.New(slog.DiscardHandler)},
		Coarse: store.BucketsOptions{Resolution: hour, BlockRange: 24 * hour, MergeRange: 5 * 24 * hour, Logger: slog.New(slog.DiscardHandler)},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// content is every sample of a data directory's tier, by series.
func content(t *testing.T, open func() (storage.Querier, error)) map[string][][2]float64 {
	t.Helper()
	q, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	out := map[string][][2]float64{}
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+"))
	for set.Next() {
		k := set.At().Labels().String()
		for it := set.At().Iterator(nil); it.Next() == chunkenc.ValFloat; {
			at, v := it.At()
			out[k] = append(out[k], [2]float64{float64(at), v})
		}
	}
	if set.Err() != nil {
		t.Fatal(set.Err())
	}
	return out
}

func read(t *testing.T, c Config, agg store.Agg) (raw, fine, coarse map[string][][2]float64) {
	t.Helper()
	r, err := store.OpenRaw(c.Dir+"/raw", store.RawOptions{Logger: c.Logger})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := store.OpenBuckets(c.Dir+"/5m", c.Fine)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := store.OpenBuckets(c.Dir+"/1h", c.Coarse)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	const lo, hi = math.MinInt64 / 4, math.MaxInt64 / 4
	return content(t, func() (storage.Querier, error) { return r.Querier(lo, hi) }),
		content(t, func() (storage.Querier, error) { return f.Querier(lo, hi, agg, 0) }),
		content(t, func() (storage.Querier, error) { return h.Querier(lo, hi, agg, 0) })
}

func TestSeed(t *testing.T) {
	a := config(t, 7)
	last := 0.0
	a.Progress = func(d float64) {
		if d <= last || d > 1 {
			t.Errorf("progress went from %v to %v", last, d)
		}
		last = d
	}
	res, err := Run(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if last != 1 {
		t.Errorf("progress ended at %v", last)
	}
	raw, fine, coarse := read(t, a, store.Count)
	if len(raw) != 27 || len(fine) != 27 || len(coarse) != 27 || res.Series != 27 {
		t.Fatalf("%d raw, %d fine and %d coarse series, want 27", len(raw), len(fine), len(coarse))
	}
	// The last six hours are in all three: their counts agree.
	end := a.End.UnixMilli()
	for k, ss := range raw {
		n, m, o := 0.0, 0.0, 0.0
		for _, s := range ss {
			if int64(s[0]) >= end-6*hour {
				n++
			}
		}
		for _, s := range fine[k] {
			if int64(s[0]) >= end-6*hour {
				m += s[1]
			}
		}
		for _, s := range coarse[k] {
			if int64(s[0]) >= end-6*hour {
				o += s[1]
			}
		}
		if n == 0 || n != m || n != o {
			t.Errorf("%s: %v raw samples, %v in fine, %v in coarse buckets", k, n, m, o)
		}
	}
	if _, err := Run(t.Context(), a); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("seeding a full directory: %v", err)
	}
}

func TestSameSeedSameSamples(t *testing.T) {
	var got []map[string][][2]float64
	for _, s := range []uint64{7, 7, 8} {
		c := config(t, s)
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		_, _, coarse := read(t, c, store.Max)
		got = append(got, coarse)
	}
	if d := cmp.Diff(got[0], got[1]); d != "" {
		t.Error(d)
	}
	if cmp.Equal(got[0], got[2]) {
		t.Error("another seed gives the same samples")
	}
}
