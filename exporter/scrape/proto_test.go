package scrape

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/collectors/promtext"
)

// delimited are families as a target sends them.
func delimited(t testing.TB, families ...*dto.MetricFamily) []byte {
	t.Helper()
	var out []byte
	for _, f := range families {
		b, err := proto.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(binary.AppendUvarint(out, uint64(len(b))), b...)
	}
	return out
}

// made makes a family.
func made(r *rand.Rand, n int) *dto.MetricFamily {
	float := func() *float64 {
		v := []float64{0, 1, 2.5, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.Float64frombits(staleNaN), 1e21, 1e-7, float64(r.IntN(1000))}[r.IntN(11)]
		return &v
	}
	maybe := func() bool { return r.IntN(3) == 0 }
	stamp := func() *timestamppb.Timestamp {
		if !maybe() {
			return nil
		}
		return &timestamppb.Timestamp{Seconds: 1_700_000_000 + r.Int64N(1e6), Nanos: r.Int32N(1e9)}
	}
	exemplar := func() *dto.Exemplar {
		if !maybe() {
			return nil
		}
		return &dto.Exemplar{Label: []*dto.LabelPair{{Name: proto.String("id"), Value: proto.String("x")}}, Value: float(), Timestamp: stamp()}
	}
	t := dto.MetricType(r.IntN(6))
	f := &dto.MetricFamily{Name: proto.String([]string{"m", "a.b", "é"}[r.IntN(3)] + strconv.Itoa(n)), Type: &t}
	if maybe() {
		f.Help, f.Unit = proto.String("help \n \\"), proto.String("seconds")
	}
	for i := range r.IntN(4) {
		m := &dto.Metric{}
		for j := range r.IntN(3) {
			m.Label = append(m.Label, &dto.LabelPair{Name: proto.String([]string{"z", "le", "a b"}[j]), Value: proto.String([]string{"", "é\"", "v"}[r.IntN(3)])})
		}
		if t == dto.MetricType_HISTOGRAM || t == dto.MetricType_GAUGE_HISTOGRAM {
			m.Label = nil
		}
		m.Label = append(m.Label, &dto.LabelPair{Name: proto.String("i"), Value: proto.String(strconv.Itoa(i))})
		if maybe() {
			m.TimestampMs = proto.Int64(r.Int64N(2) * 1_700_000_000_123)
		}
		switch t {
		case dto.MetricType_COUNTER:
			m.Counter = &dto.Counter{Value: float(), Exemplar: exemplar(), CreatedTimestamp: stamp()}
		case dto.MetricType_GAUGE:
			m.Gauge = &dto.Gauge{Value: float()}
		case dto.MetricType_UNTYPED:
			m.Untyped = &dto.Untyped{Value: float()}
		case dto.MetricType_SUMMARY:
			m.Summary = &dto.Summary{SampleCount: proto.Uint64(r.Uint64N(100)), SampleSum: float(), CreatedTimestamp: stamp()}
			for q := range r.IntN(3) {
				m.Summary.Quantile = append(m.Summary.Quantile, &dto.Quantile{Quantile: proto.Float64(float64(q)), Value: float()})
			}
		default:
			h := &dto.Histogram{SampleCount: proto.Uint64(r.Uint64N(100)), SampleSum: float(), CreatedTimestamp: stamp()}
			if maybe() {
				h.SampleCountFloat = proto.Float64(7.5)
			}
			for q := range r.IntN(4) {
				bound := []float64{0.5, 1, 1e6, math.Inf(1)}[q]
				h.Bucket = append(h.Bucket, &dto.Bucket{CumulativeCount: proto.Uint64(r.Uint64N(50)), UpperBound: &bound, Exemplar: exemplar()})
				if maybe() {
					h.Bucket[q].CumulativeCountFloat = proto.Float64(3.5)
				}
			}
			if r.IntN(4) == 0 {
				h.Schema, h.ZeroThreshold, h.ZeroCount = proto.Int32(3), proto.Float64(0.01), proto.Uint64(1)
				h.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(-2), Length: proto.Uint32(2)}}
				h.PositiveDelta = []int64{1, -1}
			}
			m.Histogram = h
		}
		// Prometheus gives an untyped metric without a value that of the one before.
		if t != dto.MetricType_UNTYPED && maybe() && r.IntN(4) == 0 {
			m.Counter, m.Gauge, m.Untyped, m.Summary, m.Histogram = nil, nil, nil, nil, nil
		}
		f.Metric = append(f.Metric, m)
	}
	return f
}

// theirs is what Prometheus makes of it.
func theirs(b []byte) (out []string, err error) {
	p := textparse.NewProtobufParser(bytes.Clone(b), true, false, false, false, labels.NewSymbolTable())
	var typ model.MetricType
	var help string
	for {
		e, err := p.Next()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, err
		}
		switch e {
		case textparse.EntryHelp:
			_, h := p.Help()
			help = string(h)
		case textparse.EntryType:
			_, typ = p.Type()
		case textparse.EntrySeries:
			_, ts, v := p.Series()
			var ls labels.Labels
			p.Labels(&ls)
			if _, dup := ls.HasDuplicateLabelNames(); dup || !ls.IsValid(model.UTF8Validation) {
				return out, errors.New("labels")
			}
			ms := int64(0)
			if ts != nil {
				ms = *ts
			}
			out = append(out, protoLine(ls.WithoutEmpty(), v, ms, p.StartTimestamp(), string(typ), help))
		}
	}
}

func protoLine(ls labels.Labels, v float64, ms, start int64, typ, help string) string {
	bits := fmt.Sprintf("%x", math.Float64bits(v))
	if math.IsNaN(v) {
		bits = "NaN"
	}
	return fmt.Sprintf("%s %s at %d since %d, %s %q", ls, bits, ms, start, typ, help)
}

var typeNames = map[collectors.Type]string{collectors.Untyped: "unknown", collectors.Counter: "counter", collectors.Gauge: "gauge", collectors.Summary: "summary",
	collectors.Histogram: "histogram", collectors.GaugeHistogram: "gaugehistogram"}

// ours is what is read of it.
func ours(t testing.TB, b []byte) (out []string, r *reading, err error) {
	t.Helper()
	c := config(t, newRows(t), &fakeNet{}, io.Discard, "http://h#label=job=&label=instance=")
	c.MaxSeries = 100_000
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r = s.targets[0].reading
	r.begin(1)
	if err := r.protobuf(b); err != nil {
		return nil, r, err
	}
	for _, p := range r.points {
		all := []labels.Label{{Name: "__name__", Value: p.s.metric.Name}}
		for _, l := range p.s.labels {
			all = append(all, labels.Label(l))
		}
		out = append(out, protoLine(labels.New(all...), p.value, p.time, p.start, typeNames[p.s.metric.Type], p.s.metric.Help))
	}
	return out, r, nil
}

func TestProtobufAsPrometheus(t *testing.T) {
	seed := uint64(os.Getpid())
	r := rand.New(rand.NewPCG(seed, 0))
	samples := 0
	for range 300 {
		var families []*dto.MetricFamily
		for i := range r.IntN(4) {
			families = append(families, made(r, i))
		}
		b := delimited(t, families...)
		want, wantErr := theirs(b)
		got, _, gotErr := ours(t, b)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("seed %d: got %v, want %v of\n%v", seed, gotErr, wantErr, families)
		}
		if d := cmp.Diff(want, got); d != "" && wantErr == nil {
			t.Fatalf("seed %d (-want +got):\n%s\n%v", seed, d, families)
		}
		samples += len(want)
	}
	if samples < 1000 {
		t.Errorf("only %d samples were compared", samples)
	}
}

// protoBody is an answer of some of everything.
func protoBody(t testing.TB) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var families []*dto.MetricFamily
	for i := range 12 {
		f := made(r, i)
		for _, m := range f.Metric {
			m.TimestampMs = nil
		}
		families = append(families, f)
	}
	return delimited(t, families...)
}

func TestNativeHistogram(t *testing.T) {
	typ := dto.MetricType_HISTOGRAM
	b := delimited(t, &dto.MetricFamily{Name: proto.String("h"), Type: &typ, Metric: []*dto.Metric{{Histogram: &dto.Histogram{
		SampleCount: proto.Uint64(3), SampleSum: proto.Float64(4), PositiveSpan: []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}},
		Exemplars: []*dto.Exemplar{{Value: proto.Float64(1)}}}}}})
	got, r, err := ours(t, b)
	if err != nil || len(got) != 3 || r.native != 1 || r.exemplars != 1 {
		t.Errorf("%q, %d native, %d exemplars, %v", got, r.native, r.exemplars, err)
	}
}

func FuzzProtobuf(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(delimited(f, made(r, 1), made(r, 2)))
	}
	f.Add(slices.Concat([]byte{3}, []byte("\x0a\x01a")))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, _, err := ours(t, b)
		if err != nil {
			return
		}
		for _, l := range got {
			if l == "" {
				t.Error("no series")
			}
		}
	})
}

// FuzzText reads hostile texts as a whole scrape: nothing may break, twice the same
// is the same, and no more is kept than may be.
func FuzzText(f *testing.F) {
	f.Add([]byte("# TYPE c counter\nc_total{x=\"1\"} 5 # {id=\"1\"} 1\nc_created{x=\"1\"} 1749999000.5\nt 1 5\n# EOF\n"))
	f.Add([]byte("a 1\na 1 5\na{} 2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, format := range []promtext.Format{promtext.Text, promtext.OpenMetrics} {
			c := config(t, newRows(t), &fakeNet{}, io.Discard, "http://h")
			c.MaxSeries = 50
			s, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			x := s.targets[0]
			var before []point
			for i := range 3 {
				s.mu.Lock()
				x.reading.begin(int64(i))
				err := x.reading.text(&s.text, b, format)
				if i > 0 && err == nil && len(before) != len(x.reading.points) {
					t.Errorf("%q: %d points, and again %d", b, len(before), len(x.reading.points))
				}
				before = slices.Clone(x.reading.points)
				s.store(x, int64(i), 1, err)
				s.mu.Unlock()
			}
			if s.cfg.Schema.Len() > 6*50+5 {
				t.Errorf("%q: %d slots", b, s.cfg.Schema.Len())
			}
		}
	})
}
