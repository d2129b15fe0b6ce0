package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/ticktier/ticktier/adapter/fold"
)

// A merged block does not claim the time of blocks that were dropped before: whoever
// reads would take that for a range without samples.
func TestMergeAfterDrop(t *testing.T) {
	b := openTest(t, t.TempDir())
	b.o.MergeRange = 4 * b.o.BlockRange
	b.Start(0)
	lset := labels.FromStrings("__name__", "x")
	size := b.o.BlockRange
	for from := int64(0); from < 4*size; from += size {
		b.Put(lset, from, from+size, []fold.Bucket{bucketAt(from, 1)})
		b.Advance(from + size)
		if err := b.Cut(from + size); err != nil {
			t.Fatal(err)
		}
	}
	if n := dropBefore(t, b, 2*size); n != 2 {
		t.Fatalf("%d blocks dropped, want 2", n)
	}
	for _, want := range []bool{true, false} {
		if merged, err := b.Merge(4 * size); err != nil || merged != want {
			t.Fatalf("merged %v, %v; want %v", merged, err, want)
		}
	}
	if got := b.MinTime(); got != 2*size {
		t.Errorf("the oldest window is said to be at %d, want %d", got, 2*size)
	}
}

// Merged blocks are merged again, each range when all of it is before the limit, and
// lose nothing.
func TestMergeIntoLargeBlocks(t *testing.T) {
	b := openTest(t, t.TempDir())
	size := b.o.BlockRange
	b.o.MergeRange, b.o.LargeRange = 2*size, 6*size
	b.Start(0)
	lset := labels.FromStrings("__name__", "x")
	const n = 15
	for from := int64(0); from < n*size; from += size {
		b.Put(lset, from, from+size, []fold.Bucket{bucketAt(from, 1), bucketAt(from+size-b.o.Resolution, 2)})
		b.Advance(from + size)
		if err := b.Cut(from + size); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if merged, err := b.Merge(n * size); err != nil {
			t.Fatal(err)
		} else if !merged {
			break
		}
	}
	var got []int64
	for _, blk := range b.blocks {
		got = append(got, (blk.MaxTime()-blk.MinTime())/size)
	}
	if want := []int64{6, 6, 2, 1}; !cmp.Equal(want, got) {
		t.Errorf("blocks of %d ranges, want %d", got, want)
	}
	buckets := 0
	for from := int64(0); from < n*size; from += size {
		if err := b.Each(from, from+size, func(_ labels.Labels, bs []fold.Bucket) error {
			buckets += len(bs)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if buckets != 2*n {
		t.Errorf("%d buckets, want %d", buckets, 2*n)
	}
}
