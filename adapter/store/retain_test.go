package store

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/ticktier/ticktier/adapter/fold"
)

// dropBefore drops the blocks that end at or before at.
func dropBefore(t *testing.T, b *Buckets, at int64) int {
	t.Helper()
	n, _, err := b.Retain(at+1, Retention{Age: 1, Before: math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// have are the buckets that the tier holds, by series and window.
func have(t *testing.T, b *Buckets) map[string]fold.Bucket {
	t.Helper()
	out := map[string]fold.Bucket{}
	for _, blk := range b.snapshot() {
		err := readBlock(blk, res, colAll, func(lset labels.Labels, bs []fold.Bucket) error {
			for _, x := range bs {
				out[fmt.Sprint(lset, x.Start)] = x
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Each series lives as long as the first rule that matches it says, whatever order
// blocks, merges and restarts come in.
func TestRetainByMatch(t *testing.T) {
	r := seed(t)
	dir := t.TempDir()
	b := openTest(t, dir)
	names := []string{"long", "short", "plain", "ever"}
	age := map[string]int64{"long": 6 * block, "short": block, "plain": 3 * block, "ever": math.MaxInt64 / 2}
	rules := Retention{Age: age["plain"], Before: math.MaxInt64}
	for _, n := range []string{"long", "short", "ever"} {
		a := age[n]
		if n == "ever" {
			a = 0
		}
		rules.Keeps = append(rules.Keeps, Keep{[]*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "__name__", n)}, a})
	}
	// It comes after the one that names the series: it does not count for it.
	rules.Keeps = append(rules.Keeps, Keep{[]*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, "__name__", "long|ever")}, 1})
	const n = 8
	b.Start(0)
	for i := range int64(n) {
		for _, name := range names {
			b.Put(labels.FromStrings("__name__", name), i*block, (i+1)*block, buckets(r, i*block, (i+1)*block))
		}
	}
	b.Advance(n * block)
	for range n {
		if err := b.Cut(n * block); err != nil {
			t.Fatal(err)
		}
	}
	all := have(t, b)
	for now := int64(block); now <= 2*n*block; now += block / 2 {
		for rewrote := true; rewrote; {
			var err error
			if _, rewrote, err = b.Retain(now, rules); err != nil {
				t.Fatal(err)
			}
			if r.IntN(4) == 0 {
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
				b = openTest(t, dir)
			}
		}
		want := map[string]fold.Bucket{}
		for i := range int64(n) {
			for _, name := range names {
				if (i+1)*block <= now-age[name] {
					continue
				}
				for w := i * block; w < (i+1)*block; w += res {
					k := fmt.Sprint(labels.FromStrings("__name__", name), w)
					if x, ok := all[k]; ok {
						want[k] = x
					}
				}
			}
		}
		if d := cmp.Diff(want, have(t, b), sameBits); d != "" {
			t.Fatalf("at %d: %s", now/block, d)
		}
		if err := b.Verify(t.Context(), func(int, int) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDropOver(t *testing.T) {
	r := seed(t)
	b := openTest(t, t.TempDir())
	defer b.Close()
	b.Start(0)
	for i := range int64(4) {
		b.Put(labels.FromStrings("__name__", "a"), i*block, (i+1)*block, buckets(r, i*block, (i+1)*block))
	}
	b.Advance(4 * block)
	for range 4 {
		if err := b.Cut(4 * block); err != nil {
			t.Fatal(err)
		}
	}
	first := b.snapshot()[0].Size()
	before := b.Size()
	if n := b.DropOver(first+1, 3*block); b.Size() != before-n || len(b.snapshot()) != 2 {
		t.Errorf("%d bytes of %d freed, %d left in %d blocks", n, before, b.Size(), len(b.snapshot()))
	}
	if b.DropOver(math.MaxInt64, 3*block); len(b.snapshot()) != 1 {
		t.Errorf("%d blocks left, want the one that must stay", len(b.snapshot()))
	}
	if n := testutil.ToFloat64(b.dropped.blocks.WithLabelValues(droppedSize)); n != 3 {
		t.Errorf("%v blocks counted, want 3", n)
	}
}

// A tier that is only looked at shows what can be read, names what cannot, and moves
// nothing.
func TestReadOnlyNamesDamage(t *testing.T) {
	r := seed(t)
	dir := t.TempDir()
	b := openTest(t, dir)
	b.Start(0)
	for i := range int64(2) {
		b.Put(labels.FromStrings("__name__", "a"), i*block, (i+1)*block, buckets(r, i*block, (i+1)*block))
	}
	b.Advance(2 * block)
	for range 2 {
		if err := b.Cut(2 * block); err != nil {
			t.Fatal(err)
		}
	}
	bad := b.snapshot()[0].Dir()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(bad, "index"), 100); err != nil {
		t.Fatal(err)
	}
	b, err := OpenBuckets(dir, BucketsOptions{Resolution: res, BlockRange: block, ReadOnly: true, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	read := 0
	err = b.Verify(t.Context(), func(done, _ int) { read = done })
	if err == nil || !strings.Contains(err.Error(), filepath.Base(bad)) || read != 1 || len(b.Blocks()) != 1 {
		t.Errorf("%d blocks read, %d shown: %v", read, len(b.Blocks()), err)
	}
	if err := b.Unreadable(); err == nil || !strings.Contains(err.Error(), filepath.Base(bad)) {
		t.Errorf("unreadable: %v", err)
	}
	if _, err := os.Stat(bad); err != nil {
		t.Errorf("the damaged block was moved: %v", err)
	}
}
