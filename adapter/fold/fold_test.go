package fold

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var stale = math.Float64frombits(staleNaN)

type sample struct {
	t int64
	v float64
}

// parse reads "t:v t:v …"; v may be s (staleness marker), nan, inf.
func parse(t *testing.T, in string) []sample {
	t.Helper()
	var out []sample
	for _, f := range strings.Fields(in) {
		at, val, _ := strings.Cut(f, ":")
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		v := stale
		if val != "s" {
			if v, err = strconv.ParseFloat(val, 64); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, sample{ms, v})
	}
	return out
}

func foldAll(res int64, in []sample) []Bucket {
	f := NewFolder(res)
	for _, s := range in {
		f.Add(s.t, s.v)
	}
	return f.Buckets()
}

func TestFold(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []Bucket
	}{
		{"nothing", "", nil},
		{"one sample", "5:7", []Bucket{{Start: 0, Count: 1, Sum: 7, Min: 7, Max: 7, First: 7, Last: 7, FirstT: 5, LastT: 5}}},
		{"window edges", "0:1 99:2 100:4", []Bucket{
			{Start: 0, Count: 2, Sum: 3, Min: 1, Max: 2, First: 1, Last: 2, FirstT: 0, LastT: 99},
			{Start: 100, Count: 1, Sum: 4, Min: 4, Max: 4, First: 4, Last: 4, FirstT: 100, LastT: 100},
		}},
		{"before the epoch", "-1:3 0:4", []Bucket{
			{Start: -100, Count: 1, Sum: 3, Min: 3, Max: 3, First: 3, Last: 3, FirstT: -1, LastT: -1},
			{Start: 0, Count: 1, Sum: 4, Min: 4, Max: 4, First: 4, Last: 4},
		}},
		{"two resets", "0:100 10:110 20:5 30:20 40:1", []Bucket{{Start: 0, Count: 5, Sum: 236, Min: 1, Max: 110,
			First: 100, Last: 1, LastT: 40, Corr: 110 + 20, Resets: 2}}},
		{"gap", "0:1 350:2", []Bucket{
			{Start: 0, Count: 1, Sum: 1, Min: 1, Max: 1, First: 1, Last: 1},
			{Start: 300, Count: 1, Sum: 2, Min: 2, Max: 2, First: 2, Last: 2, FirstT: 350, LastT: 350},
		}},
		{"ended", "0:1 10:s", []Bucket{{Start: 0, Count: 1, Sum: 1, Min: 1, Max: 1, First: 1, Last: 1, Ended: true}}},
		{"ended and back", "0:1 10:s 20:3", []Bucket{{Start: 0, Count: 2, Sum: 4, Min: 1, Max: 3, First: 1, Last: 3, LastT: 20}}},
		{"ended in the next window", "99:1 100:s", []Bucket{
			{Start: 0, Count: 1, Sum: 1, Min: 1, Max: 1, First: 1, Last: 1, FirstT: 99, LastT: 99},
			{Start: 100, Ended: true},
		}},
		{"infinities", "0:+inf 1:2", []Bucket{{Start: 0, Count: 2, Sum: math.Inf(1), Min: 2, Max: math.Inf(1), First: math.Inf(1), Last: 2, LastT: 1, Corr: math.Inf(1), Resets: 1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, foldAll(100, parse(t, tc.in))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNaN(t *testing.T) {
	got := foldAll(100, parse(t, "0:1 1:nan 2:3"))
	b := got[0]
	if b.Count != 3 || !math.IsNaN(b.Sum) || b.Min != 1 || b.Max != 3 || b.Ended {
		t.Errorf("a NaN between numbers: %+v", b)
	}
	b = foldAll(100, parse(t, "0:nan"))[0]
	if b.Count != 1 || !math.IsNaN(b.Min) || !math.IsNaN(b.Max) || IsStale(b.Last) {
		t.Errorf("only a NaN: %+v", b)
	}
}

func TestSettle(t *testing.T) {
	in := foldAll(100, parse(t, "99:1 100:s 500:s 600:2 650:s"))
	got := Settle(in, 100)
	if len(got) != 2 || !got[0].Ended || got[0].Start != 0 || got[1].Start != 600 || !got[1].Ended {
		t.Errorf("got %+v", got)
	}
}

// seed is TEST_SEED or the time, printed when a test fails.
func seed(t *testing.T) *rand.Rand {
	s := uint64(time.Now().UnixNano())
	if e := os.Getenv("TEST_SEED"); e != "" {
		s, _ = strconv.ParseUint(e, 10, 64)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("TEST_SEED=%d", s)
		}
	})
	return rand.New(rand.NewPCG(s, 1))
}

// random makes samples with jitter, gaps, resets, staleness markers and NaN.
func random(r *rand.Rand, n int) []sample {
	var out []sample
	t, v := r.Int64N(1e6), float64(r.IntN(1000))
	for range n {
		t += 1 + r.Int64N(40)
		switch r.IntN(40) {
		case 0:
			t += r.Int64N(5000)
		case 1:
			v = float64(r.IntN(5))
		case 2:
			out = append(out, sample{t, stale})
			continue
		case 3:
			out = append(out, sample{t, math.NaN()})
			continue
		}
		v += float64(r.IntN(50))
		out = append(out, sample{t, v})
	}
	return out
}

// naive folds by looking at every sample of each window, with no state.
func naive(res int64, in []sample) []Bucket {
	var out []Bucket
	for i := 0; i < len(in); {
		w := int64(math.Floor(float64(in[i].t)/float64(res))) * res
		b := Bucket{Start: w}
		var vs []float64
		for ; i < len(in) && in[i].t < w+res; i++ {
			if math.Float64bits(in[i].v) == staleNaN {
				b.Ended = true
				continue
			}
			b.Ended = false
			if len(vs) == 0 {
				b.FirstT = in[i].t
			}
			b.LastT = in[i].t
			vs = append(vs, in[i].v)
		}
		b.Count = uint64(len(vs))
		if len(vs) > 0 {
			b.First, b.Last, b.Min, b.Max = vs[0], vs[len(vs)-1], math.NaN(), math.NaN()
		}
		for j, v := range vs {
			b.Sum += v
			if math.IsNaN(b.Min) || v < b.Min {
				b.Min = v
			}
			if math.IsNaN(b.Max) || v > b.Max {
				b.Max = v
			}
			if j > 0 && v < vs[j-1] {
				b.Corr, b.Resets = b.Corr+vs[j-1], b.Resets+1
			}
		}
		out = append(out, b)
	}
	return out
}

var nanEqual = cmp.Comparer(func(a, b float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	return a == b || math.Abs(a-b) <= 1e-9*math.Abs(a)
})

func TestOracle(t *testing.T) {
	r := seed(t)
	for i := range 300 {
		in := random(r, r.IntN(400))
		if d := cmp.Diff(naive(100, in), foldAll(100, in), nanEqual); d != "" {
			t.Fatalf("run %d: %s", i, d)
		}
		fine := foldAll(100, in)
		f := NewFolder(1200)
		for _, b := range fine {
			f.AddBucket(b)
		}
		if d := cmp.Diff(foldAll(1200, in), f.Buckets(), nanEqual); d != "" {
			t.Fatalf("run %d, an hour from its twelve: %s", i, d)
		}
	}
}

func TestCompensated(t *testing.T) {
	f := NewFolder(100)
	for i, v := range []float64{1e16, 1, 1, -1e16} {
		f.Add(int64(i), v)
	}
	if got := f.Buckets()[0].Sum; got != 2 {
		t.Errorf("sum %v, want 2", got)
	}
}

func TestNoAllocation(t *testing.T) {
	f := NewFolder(1000)
	run := func() {
		f.Reset()
		for i := range int64(5000) {
			f.Add(i, float64(i))
		}
		if len(f.Buckets()) != 5 {
			t.Fatal("want five buckets")
		}
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations a fold", n)
	}
}

func FuzzFold(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 0, 255, 9, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		var in []sample
		var at int64
		for i := 0; i+1 < len(b); i += 2 {
			at += int64(b[i])
			v := float64(b[i+1])
			if b[i+1] == 255 {
				v = stale
			}
			in = append(in, sample{at, v})
		}
		if d := cmp.Diff(naive(100, in), foldAll(100, in), nanEqual); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkFold(b *testing.B) {
	for _, n := range []int{300, 3000} {
		b.Run(fmt.Sprintf("samples=%d", n), func(b *testing.B) {
			f := NewFolder(300_000)
			b.ReportAllocs()
			for b.Loop() {
				f.Reset()
				for i := range n {
					f.Add(int64(i)*(300_000/int64(n)), float64(i))
				}
				f.Buckets()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/sample")
		})
	}
}
