package store

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/fold"
)

// histBuckets folds random histograms of the windows of [from, to), with resets,
// gaps, ends, floats in between and changes of layout.
func histBuckets(r *rand.Rand, from, to int64) []fold.Bucket {
	f := fold.NewFolder(res)
	h := &histogram.FloatHistogram{Schema: 2, ZeroThreshold: 1e-3}
	gauge := r.IntN(3) == 0
	zero, counts := 0.0, make([]float64, 5)
	bounds := []float64{1, 2, 3, 4}
	isCustom := r.IntN(2) == 0
	for t := from + r.Int64N(5000); t < to; t += 20_000 + r.Int64N(40_000) {
		switch r.IntN(60) {
		case 0:
			zero, counts = 0, make([]float64, 5)
		case 1:
			f.Add(t, math.Float64frombits(value.StaleNaN))
			continue
		case 2:
			f.Add(t, 1)
			continue
		case 3:
			h.Schema = r.Int32N(4)
		case 4:
			bounds = [][]float64{{1, 2, 3, 4}, {1, 2, 3, 5}}[r.IntN(2)]
		case 5:
			isCustom = !isCustom
		case 6:
			h.ZeroThreshold *= 2
		case 7:
			gauge = !gauge
		}
		for i := range counts {
			counts[i] += float64(r.IntN(20))
		}
		zero++
		s := *h
		s.Count, s.Sum = zero, zero*3
		if isCustom {
			s.Schema, s.ZeroThreshold, s.CustomValues, s.Count = histogram.CustomBucketsSchema, 0, bounds, 0
		} else {
			s.ZeroCount = zero
		}
		s.PositiveSpans = []histogram.Span{{Offset: 0, Length: 2}, {Offset: int32(r.IntN(2)), Length: 2}}
		s.PositiveBuckets = slices.Clone(counts[:4])
		for _, c := range s.PositiveBuckets {
			s.Count += c
		}
		if gauge {
			s.CounterResetHint = histogram.GaugeType
		}
		f.AddHistogram(t, &s)
	}
	return slices.Clone(f.Buckets())
}

// sameHist compares what histograms mean: a chunk may give them empty buckets.
var sameHist = cmp.Comparer(func(a, b *histogram.FloatHistogram) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.CounterResetHint == b.CounterResetHint && a.Copy().Compact(0).Equals(b.Copy().Compact(0))
})

func TestHistChunkRoundTrip(t *testing.T) {
	r := seed(t)
	for range 300 {
		want := fold.Settle(histBuckets(r, 0, 1+r.Int64N(12*block)), res)
		var got []fold.Bucket
		for rest := want; len(rest) > 0; {
			c, n, err := encodeRun(rest, res)
			if err != nil {
				t.Fatal(err)
			}
			if c.NumSamples() != n || n == 0 {
				t.Fatalf("%d samples, want %d", c.NumSamples(), n)
			}
			counts, err := c.decode(nil, res, colCount)
			if err != nil || len(counts) != n || counts[n-1].Count != rest[n-1].Count {
				t.Fatalf("%v: %v", counts, err)
			}
			if got, err = c.decode(got, res, colAll); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if d := cmp.Diff(want, got, sameBits, sameHist); d != "" {
			t.Fatal(d)
		}
	}
}

// FuzzHistChunk decodes anything without a panic and without taking memory for
// more than is there.
func FuzzHistChunk(f *testing.F) {
	for i := range uint64(4) {
		r := rand.New(rand.NewPCG(i, i))
		for rest := fold.Settle(histBuckets(r, 0, block), res); len(rest) > 0; {
			c, n, err := encodeRun(rest, res)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(c.b)
			rest = rest[n:]
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		bs, err := (&aggrChunk{b}).decode(nil, res, colAll)
		if err != nil {
			return
		}
		for i := range bs {
			if h := bs[i].Hist; h != nil && (h.First == nil || h.Last == nil) {
				t.Fatal("a bucket without its ends")
			}
		}
	})
}

// A series of floats and histograms is written, read back and merged, and every
// aggregate reads it.
func TestHistBlocks(t *testing.T) {
	r := seed(t)
	b, err := OpenBuckets(t.TempDir(), BucketsOptions{Resolution: res, BlockRange: block, MergeRange: 12 * block, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	lset := labels.FromStrings("__name__", "x")
	b.Start(0)
	var want []fold.Bucket
	for from := int64(0); from < 12*block; from += block {
		bs := histBuckets(r, from, from+block)
		if from == 3*block {
			bs = buckets(r, from, from+block)
		}
		b.Put(lset, from, from+block, bs)
		want = append(want, bs...)
		b.Advance(from + block)
	}
	want = fold.Settle(want, res)
	before := readAggs(t, b)
	for b.Durable() < 12*block {
		if err := b.Cut(12 * block); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		var got []fold.Bucket
		for from := int64(0); from < 12*block; from += block {
			err := b.Each(from, from+block, func(_ labels.Labels, bs []fold.Bucket) error {
				got = append(got, bs...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		// A block does not know of the end before its first bucket.
		if d := cmp.Diff(fold.Settle(got, res), want, sameBits, sameHist, cmp.Comparer(func(a, b bool) bool { return true })); d != "" {
			t.Fatal(d)
		}
	}
	check()
	after := readAggs(t, b)
	for agg := range before {
		if agg != Value && before[agg] != after[agg] {
			t.Errorf("aggregate %d: %d samples from memory, %d from blocks", agg, before[agg], after[agg])
		}
	}
	if merged, err := b.Merge(100 * block); err != nil || !merged {
		t.Fatal(merged, err)
	}
	check()
}

// readAggs counts the samples that each aggregate gives.
func readAggs(t *testing.T, b *Buckets) map[Agg]int {
	t.Helper()
	out := map[Agg]int{}
	for agg := Value; agg <= Last; agg++ {
		q, err := b.Querier(math.MinInt64, math.MaxInt64, agg, 0)
		if err != nil {
			t.Fatal(err)
		}
		set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", "x"))
		for set.Next() {
			it := set.At().Iterator(nil)
			for vt := it.Next(); vt != chunkenc.ValNone; vt = it.Next() {
				if vt == chunkenc.ValFloatHistogram {
					if _, h := it.AtFloatHistogram(nil); h == nil {
						t.Error("no histogram")
					}
				}
				out[agg]++
			}
			if it.Err() != nil {
				t.Fatal(it.Err())
			}
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
