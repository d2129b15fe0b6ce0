package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ticktier/ticktier/adapter/fold"
)

// The quick way to values gives what the long way gives.
func TestQuickValues(t *testing.T) {
	r := seed(t)
	for range 50 {
		for _, lacks := range []fold.Parts{0, fold.PartSum, fold.PartCounter} {
			bs := fold.Settle(buckets(r, 0, (1+r.Int64N(250))*res), res)
			for i := range bs {
				bs[i].Drop(lacks)
				bs[i].Ended = r.IntN(10) == 0
			}
			bs = bs[:min(len(bs), maxChunkBuckets)]
			if len(bs) == 0 {
				continue
			}
			c, err := encodeAggr(bs, res)
			if err != nil {
				t.Fatal(err)
			}
			for _, counter := range []bool{false, true} {
				from := r.Int64N(50) * res
				to := from + r.Int64N(200)*res
				sm := sampler{agg: Value, res: res, counter: counter}
				var want, got samples
				all, err := c.decode(nil, res, sm.columns())
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range between(all, from, to) {
					sm.add(&want, &b)
				}
				var d decoder
				if done, err := d.appendValues(&got, c, &sm, from, to); err != nil || !done {
					t.Fatalf("done %v: %v", done, err)
				}
				if diff := cmp.Diff([]any{want.ts, want.vs}, []any{got.ts, got.vs}, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("lacks %v, counter %v: -long +quick:\n%s", lacks, counter, diff)
				}
			}
		}
	}
}

// Damaged chunks are an error or leave the work to the long way; never a panic.
func FuzzQuickValues(f *testing.F) {
	r := seed(f)
	for _, lacks := range []fold.Parts{0, fold.PartSum, fold.PartCounter} {
		bs := fold.Settle(buckets(r, 0, 40*res), res)
		for i := range bs {
			bs[i].Drop(lacks)
		}
		if c, err := encodeAggr(bs, res); err == nil {
			f.Add(c.b, lacks == fold.PartSum)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, counter bool) {
		var (
			d   decoder
			out samples
		)
		done, err := d.appendValues(&out, &aggrChunk{b}, &sampler{agg: Value, res: res, counter: counter}, 0, 1<<60)
		if done && err != nil {
			t.Error("done in spite of an error")
		}
		long, longErr := (&aggrChunk{b}).decode(nil, res, colSum|colLast|colSpecial)
		if done && longErr == nil && len(long) != len(d.ends) {
			t.Errorf("%d buckets, the long way %d", len(d.ends), len(long))
		}
	})
}
