package fold

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
)

type histSample struct {
	t int64
	h *histogram.FloatHistogram // nil: the float 1
}

// exponential is a histogram of schema s with n observations in each of its buckets.
func exponential(s int32, n float64, buckets ...float64) *histogram.FloatHistogram {
	h := &histogram.FloatHistogram{Schema: s, ZeroThreshold: 1e-9, ZeroCount: n, Count: n, Sum: 3 * n}
	h.PositiveSpans = []histogram.Span{{Offset: 1, Length: uint32(len(buckets))}}
	for _, b := range buckets {
		h.PositiveBuckets = append(h.PositiveBuckets, b+n)
		h.Count += b + n
	}
	return h
}

// custom is a histogram with bounds of its own.
func custom(bounds []float64, buckets ...float64) *histogram.FloatHistogram {
	h := &histogram.FloatHistogram{Schema: histogram.CustomBucketsSchema, CustomValues: bounds}
	h.PositiveSpans = []histogram.Span{{Length: uint32(len(buckets))}}
	h.PositiveBuckets = slices.Clone(buckets)
	for i, b := range buckets {
		h.Count += b
		h.Sum += b * float64(i)
	}
	return h
}

// randomHists makes a counter or a gauge with resets, gaps, ends of series and, now
// and then, another resolution or other bounds.
func randomHists(r *rand.Rand, n int) []histSample {
	var out []histSample
	isCustom, gauge := r.IntN(2) == 0, r.IntN(3) == 0
	t := r.Int64N(1e6)
	schema, bounds := int32(2), []float64{1, 2, 3, 4}
	n0, b := 0.0, []float64{0, 0, 0, 0}
	for range n {
		t += 1 + r.Int64N(40)
		switch r.IntN(30) {
		case 0:
			t += r.Int64N(5000)
		case 1:
			n0, b = 0, []float64{0, 0, 0, 0}
		case 2:
			schema = r.Int32N(4)
		case 3:
			bounds = [][]float64{{1, 2, 3, 4}, {1, 2, 3, 5}, {2, 3, 4, 8}}[r.IntN(3)]
		case 4:
			out = append(out, histSample{t, &histogram.FloatHistogram{Sum: stale}})
			continue
		case 5:
			if r.IntN(10) == 0 {
				isCustom = !isCustom
			}
		}
		n0 += float64(r.IntN(3))
		for i := range b {
			if b[i] += float64(r.IntN(9)); gauge {
				b[i] = float64(r.IntN(9))
			}
		}
		h := exponential(schema, n0, b...)
		if isCustom {
			h = custom(bounds, b...)
		}
		if gauge {
			h.CounterResetHint = histogram.GaugeType
		}
		out = append(out, histSample{t, h})
	}
	return out
}

func foldHists(res int64, in []histSample) []Bucket {
	f := NewFolder(res)
	for _, s := range in {
		if s.h == nil {
			f.Add(s.t, 1)
		} else {
			f.AddHistogram(s.t, s.h)
		}
	}
	return slices.Clone(f.Buckets())
}

// naiveIncrease is that of the samples of one window, as PromQL has it; nil where
// it has none.
func naiveIncrease(in []histSample) *histogram.FloatHistogram {
	out := in[len(in)-1].h.Copy()
	if len(in) > 1 && in[1].h.DetectReset(in[0].h) {
		in = in[1:]
	} else if _, _, _, err := out.Sub(in[0].h); err != nil {
		return nil
	}
	for i := 1; i < len(in); i++ {
		if in[i].h.UsesCustomBuckets() != in[0].h.UsesCustomBuckets() {
			return nil
		}
		if in[i].h.DetectReset(in[i-1].h) {
			if _, _, _, err := out.Add(in[i-1].h); err != nil {
				return nil
			}
		}
	}
	return out.Compact(0)
}

func naiveHistSum(in []histSample) *histogram.FloatHistogram {
	out := in[0].h.Copy()
	for _, s := range in[1:] {
		if _, _, _, err := out.Add(s.h); err != nil {
			return nil
		}
	}
	return out
}

// alike compares histograms and says what is unlike.
func alike(a, b *histogram.FloatHistogram) string {
	if a == nil || b == nil {
		if a == b {
			return ""
		}
		return cmp.Diff(a, b)
	}
	x, y := a.Copy().Compact(0), b.Copy().Compact(0)
	x.CounterResetHint, y.CounterResetHint = 0, 0
	if x.Equals(y) {
		return ""
	}
	return cmp.Diff(x, y, nanEqual)
}

func checkHists(t *testing.T, res int64, in []histSample, got []Bucket) {
	t.Helper()
	windows := map[int64][]histSample{}
	for _, s := range in {
		if !IsStale(s.h.Sum) {
			w := Window(s.t, res)
			windows[w] = append(windows[w], s)
		}
	}
	for _, b := range got {
		w := windows[b.Start]
		delete(windows, b.Start)
		if len(w) == 0 {
			if b.Count != 0 || !b.Ended {
				t.Fatalf("a bucket of nothing: %+v", b)
			}
			continue
		}
		if b.Count != uint64(len(w)) || b.Hist == nil || b.FirstT != w[0].t || b.LastT != w[len(w)-1].t {
			t.Fatalf("window %d: %+v of %d samples", b.Start, b, len(w))
		}
		want, resets := naiveIncrease(w), uint32(0)
		for i := 1; i < len(w); i++ {
			if w[i].h.DetectReset(w[i-1].h) {
				resets++
			}
		}
		if b.Hist.Gauge {
			want, _ = b.Hist.Increase()
			resets = 0
		}
		inc, err := b.Hist.Increase()
		if d := alike(want, inc); d != "" || b.Resets != resets {
			t.Fatalf("window %d: increase (%v), %d resets of %d: %s", b.Start, err, b.Resets, resets, d)
		}
		for _, d := range []string{alike(naiveHistSum(w), b.Hist.Sum), alike(w[0].h, b.Hist.First), alike(w[len(w)-1].h, b.Hist.Last)} {
			if d != "" {
				t.Fatalf("window %d: %s", b.Start, d)
			}
		}
	}
	if len(windows) > 0 {
		t.Fatalf("%d windows are missing", len(windows))
	}
}

func TestHistOracle(t *testing.T) {
	r := seed(t)
	for range 300 {
		in := randomHists(r, 1+r.IntN(300))
		fine := foldHists(100, in)
		checkHists(t, 100, in, fine)
		checkHists(t, 1200, in, foldHists(1200, in))
		f := NewFolder(1200)
		for _, b := range fine {
			f.AddBucket(b)
		}
		checkHists(t, 1200, in, f.Buckets())
		// What was merged is as it was.
		checkHists(t, 100, in, fine)
	}
}

// A window with floats and histograms keeps no number of the floats.
func TestHistMixed(t *testing.T) {
	h := exponential(1, 1, 1, 2)
	for _, in := range [][]histSample{{{1, h}, {2, nil}}, {{1, nil}, {2, h}}, {{1, nil}, {50, h}, {60, nil}}} {
		got := foldHists(100, in)
		f := NewFolder(100)
		for _, b := range foldHists(25, in) {
			f.AddBucket(b)
		}
		for _, b := range []Bucket{got[0], f.Buckets()[0]} {
			if b.Count != uint64(len(in)) || b.Hist == nil || !b.Hist.Mixed || b.Sum != 0 || b.FirstT != 1 || b.LastT != in[len(in)-1].t {
				t.Errorf("%+v", b)
			}
		}
	}
}

func TestHistEnded(t *testing.T) {
	end := &histogram.FloatHistogram{Sum: math.Float64frombits(staleNaN)}
	got := Settle(foldHists(100, []histSample{{1, exponential(0, 1, 1)}, {50, end}, {120, exponential(0, 1, 1)}, {210, end}}), 100)
	if len(got) != 2 || !got[0].Ended || !got[1].Ended {
		t.Errorf("%+v", got)
	}
}
