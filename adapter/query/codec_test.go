package query

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// sameBytes compares the answer with that of Prometheus' codec.
func sameBytes(t *testing.T, resp *v1.Response) {
	t.Helper()
	want, err := v1.JSONCodec{}.Encode(resp)
	if err != nil {
		t.Fatal(err)
	}
	got, err := codec{}.Encode(resp)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Fatalf("-Prometheus +ours:\n%s", diff)
	}
}

// made is a float of one of the kinds that are written in a way of their own.
func made(r *rand.Rand) float64 {
	sign := float64(1 - 2*r.IntN(2))
	switch r.IntN(8) {
	case 0:
		return sign * float64(r.IntN(1e9))
	case 1:
		return sign * float64(r.Int64N(1<<60))
	case 2:
		return sign * float64(r.IntN(1e6)) / []float64{10, 100, 1000, 1e4}[r.IntN(4)]
	case 3:
		return sign * r.Float64()
	case 4:
		return math.Float64frombits(r.Uint64())
	case 5:
		return sign * math.Pow(10, float64(r.IntN(50)-25))
	case 6:
		return sign * (1e12 + float64(r.IntN(1e6))/1000)
	}
	edges := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1e15, 1e21, 1e-6, 1e-7, 0.001, 0.0009, math.MaxFloat64, math.SmallestNonzeroFloat64, 999999999999999, 1e15 - 0.125}
	return edges[r.IntN(len(edges))]
}

func TestCodecWritesPrometheusBytes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(seed(t), 20))
	values := []string{"", "a", `say "hi" \ there`, "line\nbreak\ttab\r", "\x00\x1f\x7f", "grün €", "bad \xff utf-8", "<a&b>", "\u2028"}
	lset := func() labels.Labels {
		b := labels.NewScratchBuilder(3)
		b.Add("__name__", values[r.IntN(len(values))])
		b.Add("x", values[r.IntN(len(values))])
		if r.IntN(2) == 0 {
			b.Add("ü \"y\"", "z")
		}
		b.Sort()
		return b.Labels()
	}
	when := func() int64 { return []int64{r.Int64N(2e12), -r.Int64N(2e12), 1000 * r.Int64N(2e9), 7}[r.IntN(4)] }
	for range 300 {
		var m promql.Matrix
		start, step := when(), r.Int64N(1e5)
		for range r.IntN(4) {
			s := promql.Series{Metric: lset()}
			for k := range r.Int64N(40) {
				at := start + k*step // most series of an answer have the same times
				if r.IntN(8) == 0 {
					at = when()
				}
				s.Floats = append(s.Floats, promql.FPoint{T: at, F: made(r)})
			}
			m = append(m, s)
		}
		var v promql.Vector
		for range r.IntN(10) {
			v = append(v, promql.Sample{Metric: lset(), T: when(), F: made(r)})
		}
		for _, res := range []parser.Value{m, v, promql.Scalar{T: when(), V: made(r)}, promql.String{T: when(), V: "result\":["}} {
			resp := &v1.Response{Status: "success", Data: &v1.QueryData{ResultType: res.Type(), Result: res}}
			sameBytes(t, resp)
			resp.Warnings, resp.Infos = []string{`a <b> "result":[`}, []string{"é"}
			resp.Data.(*v1.QueryData).Stats = stats.NewQueryStats(&stats.Statistics{Timers: stats.NewQueryTimers(), Samples: stats.NewQuerySamples(false)})
			sameBytes(t, resp)
		}
	}
}

func TestCodecLeavesTheRestToPrometheus(t *testing.T) {
	t.Parallel()
	h := &histogram.FloatHistogram{Count: 3, Sum: 2.5, ZeroThreshold: 0.001, ZeroCount: 1, PositiveSpans: []histogram.Span{{Offset: 0, Length: 1}}, PositiveBuckets: []float64{2}}
	lset := labels.FromStrings("__name__", "h")
	for _, res := range []parser.Value{
		promql.Matrix{{Metric: lset, Histograms: []promql.HPoint{{T: 1, H: h}}}},
		promql.Vector{{Metric: lset, T: 1500, H: h}},
		promql.Matrix(nil), promql.Vector(nil),
	} {
		sameBytes(t, &v1.Response{Status: "success", Data: &v1.QueryData{ResultType: res.Type(), Result: res}})
	}
	sameBytes(t, &v1.Response{Status: "success", Data: []string{"a", "b"}})
	sameBytes(t, &v1.Response{Status: "error", Error: "no", ErrorType: "bad_data"})
	sameBytes(t, &v1.Response{Status: "success"})
}

// A number is written as strconv writes it.
func FuzzNumber(f *testing.F) {
	for _, v := range []float64{0, 1, -1, 0.1, 12.34, 1e15, 123456789.125, 0.001, 1.0005} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		sameBytes(t, &v1.Response{Status: "success", Data: &v1.QueryData{Result: promql.Vector{{F: v}}}})
	})
}

func BenchmarkCodec(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var m promql.Matrix
	for i := range 9 {
		s := promql.Series{Metric: labels.FromStrings("__name__", "node_cpu_seconds_total", "instance", "router-00001")}
		for k := range 1080 {
			v := float64(k * 1234)
			if i%2 == 0 {
				v = r.Float64() * 100
			}
			s.Floats = append(s.Floats, promql.FPoint{T: 1_700_000_000_000 + int64(k)*7_200_000, F: v})
		}
		m = append(m, s)
	}
	resp := &v1.Response{Status: "success", Data: &v1.QueryData{ResultType: m.Type(), Result: m}}
	for name, c := range map[string]v1.Codec{"ours": codec{}, "prometheus": v1.JSONCodec{}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Encode(resp); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
