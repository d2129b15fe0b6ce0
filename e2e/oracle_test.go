package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/ticktier/ticktier/e2e/client"
)

const (
	minuteMs = int64(60_000)
	hourMs   = 60 * minuteMs
	dayMs    = 24 * hourMs
)

// stale is Prometheus' staleness marker.
var stale = math.Float64frombits(0x7ff0000000000002)

func isStale(v float64) bool { return math.Float64bits(v) == math.Float64bits(stale) }

// isCounter follows the naming rule, which is all that a push without metadata
// tells.
func isCounter(s client.Series) bool { return strings.HasSuffix(s.Labels["__name__"], "_total") }

// madeUp returns series of made-up samples in [start, end), the same for the same
// seed. No sample lies on a multiple of five minutes, where a PromQL range and a
// window disagree about which side it belongs to; some lie a millisecond beside.
func madeUp(seed uint64, start, end int64) []client.Series {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out []client.Series
	add := func(name string, number int, samples []client.Sample) {
		out = append(out, client.Series{
			Labels: map[string]string{
				"__name__": name, "job": "made", "instance": fmt.Sprintf("router-%d", number),
			},
			Samples: samples,
		})
	}
	for i := range 2 {
		add("made_level", i, gauge(rng, times(rng, start, end, 15_000, 0), 0))
		add("made_level_gaps", i, gauge(rng, times(rng, start, end, 30_000, 0.002), 0.001))
		add("made_spike", i, spikes(rng, times(rng, start, end, 10_000, 0)))
		add("made_work_total", i, counter(rng, times(rng, start, end, 10_000, 0), 0))
		add("made_resets_total", i, counter(rng, times(rng, start, end, 15_000, 0), 0.003))
		add("made_gaps_total", i, counter(rng, times(rng, start, end, 30_000, 0.002), 0.002))
	}
	return out
}

// onEdges is a gauge with samples exactly on the edges of windows, a millisecond
// before and a millisecond after.
func onEdges(start, end int64) client.Series {
	s := client.Series{Labels: map[string]string{"__name__": "made_edges", "job": "made", "instance": "router-0"}}
	for i, w := 0, start; w < end; i, w = i+1, w+5*minuteMs {
		v := float64(i * 3)
		s.Samples = append(s.Samples, client.Sample{T: w, V: v}, client.Sample{T: w + 1, V: v + 1}, client.Sample{T: w + 5*minuteMs - 1, V: v + 2})
	}
	return s
}

// shifted returns s a millisecond later. A folded answer to (t-r, t] covers
// [t-r, t), which is what PromQL answers for the shifted series.
func shifted(s client.Series) client.Series {
	out := client.Series{Labels: s.Labels}
	for _, p := range s.Samples {
		out.Samples = append(out.Samples, client.Sample{T: p.T + 1, V: p.V})
	}
	return out
}

// times returns times about interval ms apart. With gaps > 0 the series ends now
// and then, for up to three hours; its last time before a gap is returned negative
// when a staleness marker is to stand there.
func times(rng *rand.Rand, start, end, interval int64, gaps float64) []int64 {
	var out []int64
	for base := start; base < end; base += interval {
		t := base + 1 + rng.Int64N(interval/2)
		switch rng.IntN(200) {
		case 0: // a millisecond after the edge of a window
			t = (base+interval-1)/(5*minuteMs)*(5*minuteMs) + 1
		case 1: // and one before
			t = (base/(5*minuteMs)+1)*(5*minuteMs) - 1
		}
		if t < base || t >= min(base+interval, end) {
			t = base + interval/2 + 1
		}
		if t%(5*minuteMs) == 0 {
			t++
		}
		if gaps > 0 && rng.Float64() < gaps {
			if rng.IntN(2) == 0 {
				t = -t
			}
			base += rng.Int64N(3*hourMs) / interval * interval
		}
		out = append(out, t)
	}
	return out
}

func gauge(rng *rand.Rand, at []int64, nan float64) []client.Sample {
	v := 50.0
	return fill(at, func() float64 {
		v += rng.NormFloat64()
		if rng.Float64() < nan {
			return math.NaN()
		}
		return math.Round(v*100) / 100
	})
}

func spikes(rng *rand.Rand, at []int64) []client.Sample {
	return fill(at, func() float64 {
		if rng.IntN(500) == 0 {
			return 950 - 1900*float64(rng.IntN(2))
		}
		return 0
	})
}

func counter(rng *rand.Rand, at []int64, resets float64) []client.Sample {
	v := float64(rng.IntN(1000))
	return fill(at, func() float64 {
		v += float64(rng.IntN(30))
		if rng.Float64() < resets {
			v = float64(rng.IntN(5))
		}
		return v
	})
}

func fill(at []int64, next func() float64) []client.Sample {
	out := make([]client.Sample, 0, len(at))
	for _, t := range at {
		if t < 0 {
			out = append(out, client.Sample{T: -t, V: stale})
			continue
		}
		out = append(out, client.Sample{T: t, V: next()})
	}
	return out
}

// cut returns the samples with from ≤ t < to.
func cut(samples []client.Sample, from, to int64) []client.Sample {
	lo := sort.Search(len(samples), func(i int) bool { return samples[i].T >= from })
	hi := sort.Search(len(samples), func(i int) bool { return samples[i].T >= to })
	return samples[lo:hi]
}

// oracle computes what a range function must answer over (at-rng, at] by looking
// at every raw sample. ok is false where there is no answer.
func oracle(fn string, s client.Series, at, rng int64) (v float64, ok bool) {
	var in []client.Sample
	for _, p := range cut(s.Samples, at-rng+1, at+1) {
		if !isStale(p.V) {
			in = append(in, p)
		}
	}
	if len(in) == 0 {
		return 0, false
	}
	switch fn {
	case "count_over_time":
		return float64(len(in)), true
	case "sum_over_time":
		sum := 0.0
		for _, p := range in {
			sum += p.V
		}
		return sum, true
	case "avg_over_time":
		sum := 0.0
		for _, p := range in {
			sum += p.V
		}
		return sum / float64(len(in)), true
	case "min_over_time":
		return best(in, func(a, b float64) bool { return a < b }), true
	case "max_over_time":
		return best(in, func(a, b float64) bool { return a > b }), true
	case "resets":
		_, n := grown(in)
		return float64(n), true
	case "increase":
		return extrapolated(in, at, rng)
	}
	panic("BUG: no oracle for " + fn)
}

// best is the smallest or largest value; any number beats a NaN.
func best(in []client.Sample, better func(a, b float64) bool) float64 {
	v := in[0].V
	for _, p := range in[1:] {
		if math.IsNaN(v) || better(p.V, v) {
			v = p.V
		}
	}
	return v
}

// grown is what a counter counted from its first sample to its last, and how often
// it started again from zero.
func grown(in []client.Sample) (sum float64, resets int) {
	for i := 1; i < len(in); i++ {
		if in[i].V < in[i-1].V {
			resets++
			sum += in[i].V
			continue
		}
		sum += in[i].V - in[i-1].V
	}
	return sum, resets
}

// extrapolated is increase() as Prometheus documents it: what the counter counted,
// stretched to the ends of the range where samples come close to them, by half an
// interval where they do not, and never to before the counter was zero.
func extrapolated(in []client.Sample, at, rng int64) (float64, bool) {
	if len(in) < 2 {
		return 0, false
	}
	first, last := in[0], in[len(in)-1]
	sum, _ := grown(in)
	span := float64(last.T - first.T)
	interval := span / float64(len(in)-1)
	reach := func(gap float64) float64 {
		if gap >= 1.1*interval {
			return interval / 2
		}
		return gap
	}
	left, right := reach(float64(first.T-(at-rng))), reach(float64(at-last.T))
	if sum > 0 && first.V >= 0 {
		left = min(left, span*first.V/sum)
	}
	return sum * (span + left + right) / span, true
}

// TestOracle pins the oracle itself to figures worked out by hand.
func TestOracle(t *testing.T) {
	t.Parallel()
	s := client.Series{Samples: []client.Sample{{T: 10_000, V: 8}, {T: 20_000, V: 12}, {T: 30_000, V: 2}, {T: 35_000, V: stale}, {T: 40_000, V: 4}}}
	for _, c := range []struct {
		fn      string
		at, rng int64
		want    float64
	}{
		{"count_over_time", 40_000, 40_000, 4},
		{"count_over_time", 40_000, 30_000, 3}, // the left end is outside
		{"sum_over_time", 40_000, 40_000, 26},
		{"min_over_time", 40_000, 40_000, 2},
		{"max_over_time", 40_000, 40_000, 12},
		{"resets", 40_000, 40_000, 1},
		{"increase", 40_000, 40_000, 8 * 40.0 / 30}, // 4, then 2 from zero, then 2; 10 s added before
		{"increase", 45_000, 40_000, 8 * 40.0 / 30}, // 5 s added on either side
	} {
		got, ok := oracle(c.fn, s, c.at, c.rng)
		if !ok || !alike(got, c.want, 1e-12) {
			t.Errorf("%s over (%d, %d] = %v, %v; want %v", c.fn, c.at-c.rng, c.at, got, ok, c.want)
		}
	}
	if _, ok := oracle("increase", s, 10_000, 5_000); ok {
		t.Error("increase of one sample has an answer")
	}
}
