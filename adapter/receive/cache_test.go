package receive

import (
	"fmt"
	"hash/maphash"
	"sync"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

func testResolver(c *cache, seed maphash.Seed) *resolver {
	return &resolver{cache: c, seed: seed, maxLabels: maxLabels}
}

func sentLabels(n int) *series {
	return &series{pairs: []pair{{[]byte("__name__"), []byte("m")}, {[]byte("n"), fmt.Append(nil, n)}}}
}

func TestCacheReturnsWhatWasPut(t *testing.T) {
	c := newCache(1000, 1<<20)
	v := testResolver(c, maphash.MakeSeed())
	first := map[int]*resolved{}
	for n := range 900 {
		first[n], _ = v.resolve(&request{proto: proto1}, sentLabels(n))
	}
	for n := range 900 {
		r, why := v.resolve(&request{proto: proto1}, sentLabels(n))
		if r != first[n] || why != reasonNone {
			t.Fatalf("series %d was resolved again", n)
		}
		if want := labels.FromStrings("__name__", "m", "n", fmt.Sprint(n)); !labels.Equal(r.ls, want) {
			t.Fatalf("series %d is %s", n, r.ls)
		}
	}
	if c.len() != 900 || c.swept != 0 {
		t.Errorf("%d label sets are held, %d sweeps", c.len(), c.swept)
	}
}

// TestCacheVerifies: two label sets with one hash are not taken for each other.
func TestCacheVerifies(t *testing.T) {
	c := newCache(10, 1<<20)
	a := &resolved{hash: 7, ls: labels.FromStrings("__name__", "a"), size: 9}
	b := &resolved{hash: 7, ls: labels.FromStrings("__name__", "b"), size: 9}
	c.put(a, []pair{{[]byte("__name__"), []byte("a")}})
	c.put(b, []pair{{[]byte("__name__"), []byte("b")}})
	if got := c.get(7, []pair{{[]byte("__name__"), []byte("b")}}); got != b {
		t.Error("the second of two label sets with one hash is not found")
	}
	for _, pairs := range [][]pair{nil, {{[]byte("__name__"), []byte("c")}}, {{[]byte("__name__"), []byte("a")}, {[]byte("x"), []byte("y")}}} {
		if got := c.get(7, pairs); got != nil {
			t.Errorf("%q is taken for %s", pairs, got.ls)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	for _, c := range []*cache{newCache(100, 1<<20), newCache(1<<20, 1000)} {
		v := testResolver(c, maphash.MakeSeed())
		for n := range 5000 {
			v.resolve(&request{proto: proto1}, sentLabels(n))
			if hot, _ := v.resolve(&request{proto: proto1}, sentLabels(0)); hot == nil {
				t.Fatal("the series in use is not resolved")
			}
			if c.entries > c.maxEntries || c.bytes > c.maxBytes+100 {
				t.Fatalf("%d label sets of %d bytes are held", c.entries, c.bytes)
			}
		}
		if c.swept == 0 {
			t.Error("nothing was ever dropped")
		}
	}
}

func TestLargeLabelSetsAreNotKept(t *testing.T) {
	c := newCache(100, 1<<20)
	v := testResolver(c, maphash.MakeSeed())
	s := &series{pairs: []pair{{[]byte("__name__"), []byte("m")}, {[]byte("a"), make([]byte, maxCachedLabelSetBytes)}}}
	r, why := v.resolve(&request{proto: proto1}, s)
	if r == nil || why != reasonNone || c.len() != 0 {
		t.Errorf("resolved %v, %s; %d kept", r, why.text(), c.len())
	}
}

func TestCacheIsSafe(t *testing.T) {
	c := newCache(200, 1<<20)
	seed := maphash.MakeSeed()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			v := testResolver(c, seed)
			for i := range 3000 {
				n := (i*7 + g) % 400
				r, _ := v.resolve(&request{proto: proto1}, sentLabels(n))
				if r.ls.Get("n") != fmt.Sprint(n) {
					t.Errorf("series %d resolved to %s", n, r.ls)
					return
				}
			}
		})
	}
	wg.Wait()
}
