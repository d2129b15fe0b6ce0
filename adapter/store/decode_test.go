package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/adapter/fold"
)

// A decoder that has its room takes no more for the next chunk, whatever is wanted.
func TestDecoderAllocates(t *testing.T) {
	r := seed(t)
	bs := fold.Settle(buckets(r, 0, 100*res), res)
	c, err := encodeAggr(bs, res)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]columns{"count": colCount, "sum": colSum, "min": colMin, "last": colLast, "all": colAll} {
		var (
			d   decoder
			out []fold.Bucket
		)
		if got := testing.AllocsPerRun(100, func() {
			var err error
			if out, err = d.decode(c, out[:0], res, want); err != nil {
				t.Fatal(err)
			}
		}); got > 2 { // a column that is no decimals is an XOR chunk of its own
			t.Errorf("%s: %v allocations a chunk", name, got)
		}
	}
}

// The last values alone are those that come with everything.
func TestDecodeLast(t *testing.T) {
	r := seed(t)
	var d decoder
	for _, lacks := range []fold.Parts{0, fold.PartSum, fold.PartCounter} {
		bs := fold.Settle(buckets(r, 0, 200*res), res)
		for i := range bs {
			bs[i].Drop(lacks)
		}
		c, err := encodeAggr(bs[:min(len(bs), maxChunkBuckets)], res)
		if err != nil {
			t.Fatal(err)
		}
		all, err := d.decode(c, nil, res, colAll)
		if err != nil {
			t.Fatal(err)
		}
		last, err := d.decode(c, nil, res, colLast)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []float64
		for i := range all {
			want, got = append(want, all[i].Last), append(got, last[i].Last)
		}
		if len(want) == 0 || !cmp.Equal(want, got) {
			t.Errorf("without %v: %s", lacks, cmp.Diff(want, got))
		}
	}
}
