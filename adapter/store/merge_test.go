package store

import (
	"testing"

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
