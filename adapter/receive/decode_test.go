package receive

import (
	"errors"
	"hash/maphash"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// flat is a message without its encoding: what both decoders must agree on.
type flat struct {
	Symbols  []string
	Series   []flatSeries
	Families []flatFamily
}

type flatSeries struct {
	Refs       []uint32
	Labels     []string
	Samples    []flatSample
	Histograms []flatHistogram
	Exemplars  []flatExemplar
	Meta       [3]int64
}

type flatSample struct {
	ST, T int64
	V     uint64
}

type flatExemplar struct {
	Refs   []uint32
	Labels []string
	T      int64
	V      uint64
}

type flatFamily struct {
	Type             int32
	Name, Help, Unit string
}

type flatHistogram struct {
	T, ST               int64
	Float, ZeroFloat    bool
	Count, Zero         uint64
	Sum, ZeroThreshold  uint64
	Schema, Hint        int32
	NegSpans, PosSpans  []int64
	NegDeltas, PosDelta []int64
	NegCounts, PosCount []uint64
	Custom              []uint64
}

func bitsOf(list []float64) (out []uint64) {
	for _, v := range list {
		out = append(out, math.Float64bits(v))
	}
	return out
}

// ours decodes with the package's decoder.
func ours(raw []byte, p protocol) (*flat, error) {
	var q request
	if err := q.scan(raw, p); err != nil {
		return nil, err
	}
	f := &flat{}
	seed := maphash.MakeSeed()
	for i := range q.symbols {
		text, _, _ := q.symbol(seed, uint32(i))
		f.Symbols = append(f.Symbols, string(text))
	}
	var s series
	for _, at := range q.series {
		if err := s.decode(&q, at, 1<<20); err != nil {
			return nil, err
		}
		fs, err := flatten(&q, &s)
		if err != nil {
			return nil, err
		}
		f.Series = append(f.Series, fs)
	}
	var m family
	for _, at := range q.families {
		if err := m.decode(q.bytes(at)); err != nil {
			return nil, err
		}
		f.Families = append(f.Families, flatFamily{m.typ, string(m.name), string(m.help), string(m.unit)})
	}
	return f, nil
}

func flatten(q *request, s *series) (flatSeries, error) {
	fs := flatSeries{Meta: [3]int64{int64(s.meta.typ), int64(s.meta.help), int64(s.meta.unit)}}
	fs.Refs = append(fs.Refs, s.refs...)
	fs.Labels = names(s.pairs)
	for _, x := range s.samples {
		fs.Samples = append(fs.Samples, flatSample{x.st, x.t, math.Float64bits(x.v)})
	}
	var h rawHistogram
	for _, at := range s.histograms {
		if err := h.decode(q.bytes(at), q.proto); err != nil {
			return fs, err
		}
		fs.Histograms = append(fs.Histograms, flattenHistogram(&h))
	}
	var e rawExemplar
	for _, at := range s.exemplars {
		if err := e.decode(q.bytes(at), q.proto); err != nil {
			return fs, err
		}
		fs.Exemplars = append(fs.Exemplars, flatExemplar{append([]uint32(nil), e.refs...), names(e.pairs), e.t, math.Float64bits(e.v)})
	}
	return fs, nil
}

func names(pairs []pair) (out []string) {
	for _, p := range pairs {
		out = append(out, string(p.name), string(p.value))
	}
	return out
}

func flattenHistogram(h *rawHistogram) flatHistogram {
	fh := flatHistogram{
		T: h.t, ST: h.st, Float: h.isFloat, ZeroFloat: h.zeroIsFloat, Count: h.count, Zero: h.zero,
		Sum: math.Float64bits(h.sum), ZeroThreshold: math.Float64bits(h.zeroThreshold), Schema: h.schema, Hint: h.hint,
		NegDeltas: h.neg.deltas, PosDelta: h.pos.deltas, NegCounts: bitsOf(h.neg.counts), PosCount: bitsOf(h.pos.counts),
		Custom: bitsOf(h.custom),
	}
	if h.isFloat {
		fh.Count = math.Float64bits(h.countFloat)
	}
	if h.zeroIsFloat {
		fh.Zero = math.Float64bits(h.zeroFloat)
	}
	for _, s := range h.neg.spans {
		fh.NegSpans = append(fh.NegSpans, int64(s.Offset), int64(s.Length))
	}
	for _, s := range h.pos.spans {
		fh.PosSpans = append(fh.PosSpans, int64(s.Offset), int64(s.Length))
	}
	return fh
}

// theirs1 and theirs2 decode with the generated code.
func theirs1(raw []byte) (*flat, error) {
	var req prompb.WriteRequest
	if err := req.Unmarshal(raw); err != nil {
		return nil, err
	}
	f := &flat{}
	for _, ts := range req.Timeseries {
		var fs flatSeries
		for _, l := range ts.Labels {
			fs.Labels = append(fs.Labels, l.Name, l.Value)
		}
		for _, s := range ts.Samples {
			fs.Samples = append(fs.Samples, flatSample{0, s.Timestamp, math.Float64bits(s.Value)})
		}
		for _, h := range ts.Histograms {
			fh := flatHistogram{
				T: h.Timestamp, Sum: math.Float64bits(h.Sum), ZeroThreshold: math.Float64bits(h.ZeroThreshold),
				Schema: h.Schema, Hint: int32(h.ResetHint), NegDeltas: h.NegativeDeltas, PosDelta: h.PositiveDeltas,
				NegCounts: bitsOf(h.NegativeCounts), PosCount: bitsOf(h.PositiveCounts), Custom: bitsOf(h.CustomValues),
			}
			switch c := h.Count.(type) {
			case *prompb.Histogram_CountInt:
				fh.Count = c.CountInt
			case *prompb.Histogram_CountFloat:
				fh.Float, fh.Count = true, math.Float64bits(c.CountFloat)
			}
			switch z := h.ZeroCount.(type) {
			case *prompb.Histogram_ZeroCountInt:
				fh.Zero = z.ZeroCountInt
			case *prompb.Histogram_ZeroCountFloat:
				fh.ZeroFloat, fh.Zero = true, math.Float64bits(z.ZeroCountFloat)
			}
			for _, s := range h.NegativeSpans {
				fh.NegSpans = append(fh.NegSpans, int64(s.Offset), int64(s.Length))
			}
			for _, s := range h.PositiveSpans {
				fh.PosSpans = append(fh.PosSpans, int64(s.Offset), int64(s.Length))
			}
			fs.Histograms = append(fs.Histograms, fh)
		}
		for _, e := range ts.Exemplars {
			fe := flatExemplar{T: e.Timestamp, V: math.Float64bits(e.Value)}
			for _, l := range e.Labels {
				fe.Labels = append(fe.Labels, l.Name, l.Value)
			}
			fs.Exemplars = append(fs.Exemplars, fe)
		}
		f.Series = append(f.Series, fs)
	}
	for _, m := range req.Metadata {
		f.Families = append(f.Families, flatFamily{int32(m.Type), m.MetricFamilyName, m.Help, m.Unit})
	}
	return f, nil
}

func theirs2(raw []byte) (*flat, error) {
	var req writev2.Request
	if err := req.Unmarshal(raw); err != nil {
		return nil, err
	}
	f := &flat{Symbols: req.Symbols}
	for _, ts := range req.Timeseries {
		fs := flatSeries{
			Refs: ts.LabelsRefs,
			Meta: [3]int64{int64(ts.Metadata.Type), int64(ts.Metadata.HelpRef), int64(ts.Metadata.UnitRef)},
		}
		for _, s := range ts.Samples {
			fs.Samples = append(fs.Samples, flatSample{s.StartTimestamp, s.Timestamp, math.Float64bits(s.Value)})
		}
		for _, h := range ts.Histograms {
			fs.Histograms = append(fs.Histograms, theirHistogram2(&h))
		}
		for _, e := range ts.Exemplars {
			fs.Exemplars = append(fs.Exemplars, flatExemplar{Refs: e.LabelsRefs, T: e.Timestamp, V: math.Float64bits(e.Value)})
		}
		f.Series = append(f.Series, fs)
	}
	return f, nil
}

func theirHistogram2(h *writev2.Histogram) flatHistogram {
	fh := flatHistogram{
		T: h.Timestamp, ST: h.StartTimestamp, Sum: math.Float64bits(h.Sum), ZeroThreshold: math.Float64bits(h.ZeroThreshold),
		Schema: h.Schema, Hint: int32(h.ResetHint), NegDeltas: h.NegativeDeltas, PosDelta: h.PositiveDeltas,
		NegCounts: bitsOf(h.NegativeCounts), PosCount: bitsOf(h.PositiveCounts), Custom: bitsOf(h.CustomValues),
	}
	switch c := h.Count.(type) {
	case *writev2.Histogram_CountInt:
		fh.Count = c.CountInt
	case *writev2.Histogram_CountFloat:
		fh.Float, fh.Count = true, math.Float64bits(c.CountFloat)
	}
	switch z := h.ZeroCount.(type) {
	case *writev2.Histogram_ZeroCountInt:
		fh.Zero = z.ZeroCountInt
	case *writev2.Histogram_ZeroCountFloat:
		fh.ZeroFloat, fh.Zero = true, math.Float64bits(z.ZeroCountFloat)
	}
	for _, s := range h.NegativeSpans {
		fh.NegSpans = append(fh.NegSpans, int64(s.Offset), int64(s.Length))
	}
	for _, s := range h.PositiveSpans {
		fh.PosSpans = append(fh.PosSpans, int64(s.Offset), int64(s.Length))
	}
	return fh
}

// agree fails where the decoders differ. Ours may refuse more in three ways only: its
// own limits, packed fields whose last element runs past their end, and messages of
// the other version.
func agree(t *testing.T, raw []byte, p protocol, theirs func([]byte) (*flat, error)) {
	t.Helper()
	got, err := ours(raw, p)
	want, wantErr := theirs(raw)
	var limit limitError
	switch {
	case err != nil && wantErr == nil:
		if !errors.As(err, &limit) && !errors.Is(err, errPacked) && !errors.Is(err, errWrongSchema) {
			t.Fatalf("refused with %q what the generated code takes", err)
		}
	case err == nil && wantErr != nil:
		t.Fatalf("accepted what the generated code refuses with %q", wantErr)
	case err == nil:
		for i := range want.Series {
			if len(want.Series[i].Labels) > 2*maxLabels || exemplarTooWide(want.Series[i]) {
				return // ours stops keeping them
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("decoders differ (-generated +ours):\n%s", diff)
		}
	}
}

func exemplarTooWide(s flatSeries) bool {
	for _, e := range s.Exemplars {
		if len(e.Labels) > 2*maxLabels {
			return true
		}
	}
	return false
}

func FuzzDecode1(f *testing.F) {
	for _, raw := range seeds1(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { agree(t, raw, proto1, theirs1) })
}

func FuzzDecode2(f *testing.F) {
	for _, raw := range seeds2(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { agree(t, raw, proto2, theirs2) })
}

func marshal(t testing.TB, m marshaler) []byte {
	t.Helper()
	raw, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func seeds1(t testing.TB) [][]byte {
	full := push1(2, 3, at(0), 100)
	full.Timeseries[0].Histograms = []prompb.Histogram{intHistogram1(), floatHistogram1()}
	full.Timeseries[1].Exemplars = []prompb.Exemplar{{Labels: []prompb.Label{{Name: "trace_id", Value: "x"}}, Value: 1, Timestamp: at(0)}}
	full.Metadata = []prompb.MetricMetadata{{Type: prompb.MetricMetadata_COUNTER, MetricFamilyName: "a", Help: "b", Unit: "c"}}
	return [][]byte{
		nil,
		marshal(t, full),
		{0x0a, 0x00, 0x13, 0x14},             // an empty series and an empty group
		{0x0a, 0x04, 0x0a, 0x02, 0x0a, 0x00}, // a label with an empty name
		{0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1},       // a length past the end
		{0x0a, 0x05, 0x22, 0x03, 0x4a, 0x01, 0x80},          // a packed list cut in an element
		{0x8a, 0x00, 0x02, 0x12, 0x00, 0x1a, 0x02, 0x08, 9}, // a long tag, an unknown type
	}
}

func seeds2(t testing.TB) [][]byte {
	b := newBuilder()
	b.sample(0, 1, "__name__", "a", "b", "c")
	b.add(writev2.TimeSeries{
		Histograms: []writev2.Histogram{intHistogram2(at(1)), floatHistogram2(at(2)), customHistogram2(at(3))},
		Exemplars:  []writev2.Exemplar{{LabelsRefs: b.refs("trace_id", "x"), Value: 1, Timestamp: at(0)}},
		Metadata:   writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_HISTOGRAM, HelpRef: b.table.Symbolize("help")},
	}, "__name__", "h")
	return [][]byte{
		nil,
		marshal(t, b.request()),
		marshal(t, push(3, 2, at(0), 100)),
		{0x22, 0x00, 0x2a, 0x06, 0x08, 0x01, 0x0a, 0x02, 0x02, 0x03}, // refs packed and not
		{0x2a, 0x04, 0x12, 0x02, 0x18, 0x05},                         // a start timestamp alone
		{0x2a, 0x09, 0x1a, 0x07, 0x52, 0x04, 1, 2, 3, 4, 0x20},       // half a double
	}
}

func intHistogram1() prompb.Histogram {
	return prompb.Histogram{
		Count: &prompb.Histogram_CountInt{CountInt: 9}, Sum: 3.5, Schema: 1, ZeroThreshold: 0.01,
		ZeroCount:     &prompb.Histogram_ZeroCountInt{ZeroCountInt: 2},
		NegativeSpans: []prompb.BucketSpan{{Offset: -1, Length: 1}}, NegativeDeltas: []int64{2},
		PositiveSpans: []prompb.BucketSpan{{Offset: 0, Length: 2}}, PositiveDeltas: []int64{2, 1},
		Timestamp: at(0), ResetHint: prompb.Histogram_NO,
	}
}

func floatHistogram1() prompb.Histogram {
	return prompb.Histogram{
		Count: &prompb.Histogram_CountFloat{CountFloat: 2.5}, Sum: 3.5,
		ZeroCount:     &prompb.Histogram_ZeroCountFloat{ZeroCountFloat: 0.5},
		PositiveSpans: []prompb.BucketSpan{{Length: 2}}, PositiveCounts: []float64{0.5, 1.5}, Timestamp: at(1),
	}
}

func intHistogram2(t int64) writev2.Histogram {
	return writev2.Histogram{
		Count: &writev2.Histogram_CountInt{CountInt: 9}, Sum: 3.5, Schema: 1, ZeroThreshold: 0.01,
		ZeroCount:     &writev2.Histogram_ZeroCountInt{ZeroCountInt: 2},
		NegativeSpans: []writev2.BucketSpan{{Offset: -1, Length: 1}}, NegativeDeltas: []int64{2},
		PositiveSpans: []writev2.BucketSpan{{Offset: 0, Length: 2}}, PositiveDeltas: []int64{2, 1},
		Timestamp: t, StartTimestamp: t - 1000,
	}
}

func floatHistogram2(t int64) writev2.Histogram {
	return writev2.Histogram{
		Count: &writev2.Histogram_CountFloat{CountFloat: 2.5}, Sum: 3.5,
		ZeroCount:     &writev2.Histogram_ZeroCountFloat{ZeroCountFloat: 0.5},
		PositiveSpans: []writev2.BucketSpan{{Length: 2}}, PositiveCounts: []float64{0.5, 1.5}, Timestamp: t,
	}
}

func customHistogram2(t int64) writev2.Histogram {
	return writev2.Histogram{
		Count: &writev2.Histogram_CountInt{CountInt: 30}, Sum: 3.5, Schema: -53,
		PositiveSpans: []writev2.BucketSpan{{Length: 6}}, PositiveDeltas: []int64{2, 1, 2, 3, -1, -2},
		CustomValues: []float64{0.1, 0.5, 1, 2.5, 5, 10}, Timestamp: t,
	}
}
