package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/ticktier/ticktier/adapter/fold"
)

// anyFloat is a float of one of the kinds that matter.
func anyFloat(r *rand.Rand) float64 {
	switch r.IntN(8) {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(r.IntN(2)*2 - 1)
	case 2:
		return math.Copysign(0, float64(r.IntN(2)*2-1))
	case 3:
		return r.NormFloat64()
	case 4:
		return math.Float64frombits(r.Uint64())
	case 5:
		return float64(r.Int64N(1 << 54))
	}
	return math.Round(r.Float64()*1e6) / pow10[r.IntN(len(pow10))]
}

func anyBucket(r *rand.Rand, start int64) fold.Bucket {
	b := fold.Bucket{Start: start, Ended: r.IntN(5) == 0}
	if b.Lacks = fold.Parts(r.IntN(4)); r.IntN(10) == 0 {
		b.Ended = true
		return b
	}
	b.Count = 1 + r.Uint64N(1000)
	b.LastT = start + r.Int64N(res)
	if b.Lacks&fold.PartCounter == 0 {
		b.FirstT = start + r.Int64N(res)
	}
	if r.IntN(8) == 0 {
		b.Hist, b.Lacks, b.Resets = &fold.Hist{}, 0, uint32(r.IntN(3))
		return b
	}
	b.Last, b.Min, b.Max = anyFloat(r), anyFloat(r), anyFloat(r)
	if b.Lacks&fold.PartSum == 0 {
		b.Sum = anyFloat(r)
	}
	if b.Lacks&fold.PartCounter == 0 {
		b.First = anyFloat(r)
		if r.IntN(3) == 0 {
			b.Min, b.Max = b.First, b.Last
		}
		if r.IntN(4) == 0 {
			b.Resets, b.Corr = uint32(r.IntN(3)), anyFloat(r)
		}
	}
	return b
}

// sameBuckets compares bit by bit, and histograms by where they are.
var sameBuckets = cmp.Options{
	cmp.Comparer(func(a, b float64) bool { return equalBits(a, b) }),
	cmp.Comparer(func(a, b *fold.Hist) bool { return a == b }), cmpopts.EquateEmpty(),
}

// Whatever is put into the compact form in whatever order is what a plain list of
// buckets would hold, bit by bit, and what a reader took stays as it was.
func TestMemBucketsModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	for range 300 {
		var m, taken memBuckets
		var want, wasTaken []fold.Bucket
		next := -5 * int64(res)
		for range 40 {
			from := next
			if r.IntN(4) == 0 {
				from -= r.Int64N(10) * res
			}
			to := from + (1+r.Int64N(3))*res
			var bs []fold.Bucket
			for w := from; w < to; w += res {
				if r.IntN(5) > 0 {
					bs = append(bs, anyBucket(r, w))
				}
			}
			next = max(next, to)
			m.put(from, to, bs, res)
			want = slices.Concat(between(want, math.MinInt64, from), fuller(between(want, from, to), bs), between(want, to, math.MaxInt64))
			a, b := from-r.Int64N(5)*res, to-r.Int64N(3)*res
			if d := cmp.Diff(between(want, a, b), m.appendTo(nil, a, b, res), sameBuckets); d != "" {
				t.Fatalf("seed %d: %s", seed, d)
			}
			if has := len(between(want, a, b)) > 0; m.has(a, b, res) != has || int(m.n) != len(want) {
				t.Fatalf("seed %d: has %v, want %v; %d buckets, want %d", seed, !has, has, m.n, len(want))
			}
			if d := cmp.Diff(wasTaken, taken.appendTo(nil, math.MinInt64, math.MaxInt64, res), sameBuckets); d != "" {
				t.Fatalf("seed %d: what a reader has changed: %s", seed, d)
			}
			if r.IntN(3) == 0 {
				taken, wasTaken = m, slices.Clone(want)
			}
		}
	}
}

func TestMemoryDropBefore(t *testing.T) {
	m := newMemory(res)
	r := rand.New(rand.NewPCG(3, 3))
	for i := range 10 {
		l := labels.FromStrings("__name__", "m", "i", fmt.Sprint(i))
		for w := range int64(i + 1) {
			b := anyBucket(r, w*res)
			m.put(l, w*res, (w+1)*res, []fold.Bucket{b})
		}
	}
	m.dropBefore(5 * res)
	if series, buckets, _ := m.size(); series != 5 || buckets != 1+2+3+4+5 {
		t.Errorf("%d series with %d buckets, want 5 with 15", series, buckets)
	}
	if first, ok := m.minTime(); !ok || first != 5*res {
		t.Errorf("from %d on", first)
	}
	if n := len(m.byName["m"]); n != 5 {
		t.Errorf("%d series by name", n)
	}
	m.dropBefore(100 * res)
	if series, buckets, bytes := m.size(); series+buckets+bytes != 0 || len(m.byName)+len(m.byHash) > 0 {
		t.Error("something is left")
	}
}

// BenchmarkMemory puts two hours of buckets of series in memory, one window after the
// other, and says what they take of the heap: labels and maps included, and in bytes of
// the compact form alone. As plain buckets each would take unsafe.Sizeof and what append
// leaves free.
func BenchmarkMemory(b *testing.B) {
	kinds := map[string]func(r *rand.Rand, f *fold.Folder, w int64, series int) []fold.Bucket{
		"counter": func(r *rand.Rand, f *fold.Folder, w int64, series int) []fold.Bucket {
			for k := range int64(10) {
				f.Add(w+k*30_000, math.Round(float64(w/1000)*float64(series%97)*13.7+float64(k)*30*float64(series%97)))
			}
			return f.Buckets()
		},
		"gauge": func(r *rand.Rand, f *fold.Folder, w int64, series int) []fold.Bucket {
			for k := range int64(10) {
				f.Add(w+k*30_000, math.Round(float64(series)*1000+r.NormFloat64()*500)/100)
			}
			return f.Buckets()
		},
		"noise": func(r *rand.Rand, f *fold.Folder, w int64, series int) []fold.Bucket {
			for k := range int64(10) {
				f.Add(w+k*30_000, r.NormFloat64())
			}
			return f.Buckets()
		},
	}
	for _, k := range []string{"counter", "gauge", "noise"} {
		b.Run(k, func(b *testing.B) { benchmarkMemory(b, kinds[k], map[string]fold.Parts{"counter": fold.PartSum}[k]) })
	}
}

func benchmarkMemory(b *testing.B, gen func(*rand.Rand, *fold.Folder, int64, int) []fold.Bucket, lacks fold.Parts) {
	const series, windows = 10_000, 24
	if lacks == 0 {
		lacks = fold.PartCounter
	}
	sets := make([]labels.Labels, series)
	for i := range sets {
		sets[i] = labels.FromStrings("__name__", fmt.Sprintf("node_metric_%d_total", i%500), "instance", fmt.Sprintf("router-%d", i/500), "job", "node")
	}
	f := fold.NewFolder(res)
	var heap, compact float64
	var took time.Duration
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := newMemory(res)
		r := rand.New(rand.NewPCG(1, 1))
		for w := range int64(windows) {
			for i, l := range sets {
				f.Reset()
				bs := gen(r, f, w*res, i)
				for k := range bs {
					bs[k].Drop(lacks)
				}
				began := time.Now()
				m.put(l, w*res, (w+1)*res, bs)
				took += time.Since(began)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		_, n, bytes := m.size()
		heap, compact = float64(after.HeapAlloc-before.HeapAlloc)/float64(n), float64(bytes)/float64(n)
		runtime.KeepAlive(m)
	}
	b.ReportMetric(heap, "heap-B/bucket")
	b.ReportMetric(compact, "B/bucket")
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/(series*windows), "ns/put")
}
