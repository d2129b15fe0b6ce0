package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

// benchTier is a tier of so many series and blocks of five-minute buckets.
func benchTier(b *testing.B, series, blocks int) (*Buckets, int64) {
	b.Helper()
	t, err := OpenBuckets(b.TempDir(), BucketsOptions{Resolution: res, BlockRange: block, MergeRange: 12 * block, Logger: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := t.Close(); err != nil {
			b.Error(err)
		}
	})
	t.Start(0)
	for i := range int64(blocks) {
		fillBench(t, series, i*block)
		if err := t.Cut((i + 1) * block); err != nil {
			b.Fatal(err)
		}
		if _, err := t.Merge((i + 1) * block); err != nil {
			b.Fatal(err)
		}
	}
	return t, int64(blocks) * block
}

func fillBench(t *Buckets, series int, at int64) {
	r := rand.New(rand.NewPCG(1, uint64(at)))
	for s := range series {
		t.Put(labels.FromStrings("__name__", "a", "s", fmt.Sprint(s)), at, at+block, buckets(r, at, at+block))
	}
	t.Advance(at + block)
}

// BenchmarkCut cuts one block beside a history of one day and of a month.
func BenchmarkCut(b *testing.B) {
	for _, days := range []int{1, 30} {
		b.Run(fmt.Sprintf("days=%d", days), func(b *testing.B) {
			t, at := benchTier(b, 100, 12*days)
			for b.Loop() {
				b.StopTimer()
				fillBench(t, 100, at)
				b.StartTimer()
				at += block
				if err := t.Cut(at); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDropDay drops a day of 1,800 series.
func BenchmarkDropDay(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		t, at := benchTier(b, 1800, 12)
		b.StartTimer()
		if n, _, err := t.Retain(at+1, Retention{Age: 1, Before: math.MaxInt64}); err != nil || n != 1 {
			b.Fatal(n, err)
		}
		t.closing.Wait()
	}
}
