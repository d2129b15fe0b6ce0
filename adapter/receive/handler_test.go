package receive

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// row is what fakeStore keeps of a float sample.
func row(ls string, st, t int64, v float64) string {
	return fmt.Sprintf("%s %d/%d %x", ls, st, at(t), math.Float64bits(v))
}

func TestNegotiation(t *testing.T) {
	good := newBuilder().sample(0, 1, "__name__", "a").request()
	for _, tc := range []struct {
		typ, enc string
		want     int
	}{
		{type2, "snappy", 204},
		{"application/x-protobuf; proto=io.prometheus.write.v2.Request", "snappy", 204},
		{"Application/X-Protobuf ; Proto=\"io.prometheus.write.v2.Request\"", "SNAPPY", 204},
		{"application/x-protobuf;charset=utf-8;proto=io.prometheus.write.v2.Request", " snappy ", 204},
		{"application/x-protobuf;proto=io.prometheus.write.v3.Request", "snappy", 415},
		{"application/x-protobuf;proto=", "snappy", 415},
		{"application/x-protobuf;proto=io.prometheus.write.V2.Request", "snappy", 415},
		{"application/x-protobuffer", "snappy", 415},
		{"application/json", "snappy", 415},
		{"application/x-protobuf;;", "snappy", 415},
		{"", "snappy", 415},
		{type2, "", 415},
		{type2, "gzip", 415},
		{type2, "zstd", 415},
		{type2, "snappy, gzip", 415},
	} {
		t.Run(tc.typ+" "+tc.enc, func(t *testing.T) {
			h := testHandler(t, &fakeStore{})
			body := &countingReader{r: bytes.NewReader(encode(t, good))}
			r := httptest.NewRequest(http.MethodPost, "/api/v1/write", body)
			r.Header.Set("Content-Type", tc.typ)
			r.Header.Set("Content-Encoding", tc.enc)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Fatalf("status %d, want %d: %s", w.Code, tc.want, w.Body)
			}
			if tc.want != 415 {
				if got := written(w); got != "1/0/0" {
					t.Errorf("written headers %s", got)
				}
				return
			}
			if body.n != 0 {
				t.Errorf("%d bytes of the body were read", body.n)
			}
			if !strings.Contains(w.Body.String(), "accepted: ") || w.Header().Get("Accept-Encoding") != "snappy" {
				t.Errorf("the answer does not say what is accepted: %q", w.Body)
			}
			if written(w) != "//" {
				t.Errorf("written headers %s on a 415", written(w))
			}
		})
	}
}

type countingReader struct {
	r *bytes.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func TestMethod(t *testing.T) {
	w := httptest.NewRecorder()
	testHandler(t, &fakeStore{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/write", nil))
	if w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("status %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

// TestBadBodies: each is refused with words that name what is wrong, nothing is
// stored, and the next good request is.
func TestBadBodies(t *testing.T) {
	good2 := encode(t, newBuilder().sample(0, 1, "__name__", "a").request())
	raw1 := marshal(t, push1(1, 1, at(0), 1))
	raw2 := marshal(t, push(1, 1, at(0), 1))
	for _, tc := range []struct {
		name, typ string
		body      []byte
		status    int
		says      string
	}{
		{"empty", type2, nil, 400, "empty"},
		{"not snappy", type2, []byte("hello, world"), 400, "not snappy"},
		{"uncompressed protobuf", type2, raw2, 400, "not snappy"},
		{"snappy, cut", type2, good2[:len(good2)-3], 400, "not snappy"},
		{"not protobuf", type2, snappy.Encode(nil, []byte("hello, world")), 400, "not a protobuf"},
		{"protobuf, cut", type2, snappy.Encode(nil, raw2[:len(raw2)-3]), 400, "not a protobuf"},
		{"1.0 as 2.0", type2, snappy.Encode(nil, raw1), 400, "other protocol version"},
		{"2.0 as 1.0", type1, snappy.Encode(nil, raw2), 400, "other protocol version"},
		{"declares 4 GiB", type2, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0x00}, 413, "declares"},
		{"declares 64 MiB", type2, []byte{0x80, 0x80, 0x80, 0x20, 0x00, 0x00}, 400, "cannot hold"},
		{"a good series, then a broken one", type2, snappy.Encode(nil, append(bytes.Clone(raw2), 0x2a, 0x02, 0x12, 0x05)), 400, "timeseries 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &fakeStore{}
			h := testHandler(t, s)
			w := post(h, tc.typ, tc.body)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("status %d, body %q; want %d and %q", w.Code, w.Body, tc.status, tc.says)
			}
			if rows := s.take(); len(rows) > 0 {
				t.Errorf("stored %q", rows)
			}
			if w := post(h, type2, good2); w.Code != 204 {
				t.Errorf("the next good request is answered with %d: %s", w.Code, w.Body)
			}
			if diff := cmp.Diff([]string{row(`{__name__="a"}`, 0, 0, 1)}, s.take()); diff != "" {
				t.Errorf("the next good request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStores1(t *testing.T) {
	s := &fakeStore{}
	h := testHandler(t, s)
	ls := labels.FromStrings("__name__", "a", "instance", "r1")
	ts := series1(ls, 0, 100)
	ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: at(200), Value: math.Float64frombits(value.StaleNaN)})
	ts.Exemplars = []prompb.Exemplar{{Labels: []prompb.Label{{Name: "trace_id", Value: "x"}}, Value: 2, Timestamp: at(0)}}
	hs := series1(labels.FromStrings("__name__", "h"))
	hs.Histograms = []prompb.Histogram{intHistogram1(), floatHistogram1()}
	w := post(h, type1, encode(t, &prompb.WriteRequest{
		Timeseries: []prompb.TimeSeries{ts, hs},
		Metadata:   []prompb.MetricMetadata{{Type: prompb.MetricMetadata_GAUGE, MetricFamilyName: "a", Help: "An a.", Unit: "s"}},
	}))
	if w.Code != 204 || written(w) != "3/2/1" || w.Body.Len() > 0 {
		t.Fatalf("status %d, written %s, body %q", w.Code, written(w), w.Body)
	}
	want := []string{
		row(ls.String(), 0, 0, 1), row(ls.String(), 0, 100, 1),
		row(ls.String(), 0, 200, math.Float64frombits(value.StaleNaN)),
		fmt.Sprintf(`%s exemplar {trace_id="x"} 2 %d`, ls, at(0)),
	}
	rows := s.take()
	if diff := cmp.Diff(want, rows[:4]); diff != "" {
		t.Errorf("floats and exemplars (-want +got):\n%s", diff)
	}
	for i, part := range []string{"{count:9, sum:3.5,", "float {count:2.5, sum:3.5,"} {
		if !strings.Contains(rows[4+i], part) {
			t.Errorf("histogram %q, want %q", rows[4+i], part)
		}
	}
	if m := h.Metadata()["a"]; m.Type != "gauge" || m.Help != "An a." || m.Unit != "s" {
		t.Errorf("metadata %+v", m)
	}
}

func TestStores2(t *testing.T) {
	s := &fakeStore{}
	h := testHandler(t, s)
	b := newBuilder()
	b.add(writev2.TimeSeries{
		Samples:   []writev2.Sample{{Timestamp: at(0), Value: 1, StartTimestamp: at(-5000)}, {Timestamp: at(10), Value: 2, StartTimestamp: at(5000)}},
		Exemplars: []writev2.Exemplar{{Timestamp: at(10), Value: 7}, {LabelsRefs: b.refs("id", "x"), Timestamp: at(0), Value: 3}},
		Metadata:  writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: b.table.Symbolize("Help."), UnitRef: b.table.Symbolize("things")},
	}, "__name__", "c")
	b.add(writev2.TimeSeries{Histograms: []writev2.Histogram{intHistogram2(at(0)), customHistogram2(at(1))}}, "__name__", "h")
	w := post(h, type2, encode(t, b.request()))
	if w.Code != 204 || written(w) != "2/2/2" {
		t.Fatalf("status %d, written %s, body %q", w.Code, written(w), w.Body)
	}
	want := []string{
		fmt.Sprintf(`{__name__="c"} %d/%d %x`, at(-5000), at(0), math.Float64bits(1)),
		row(`{__name__="c"}`, 0, 10, 2), // its start timestamp made no sense
		fmt.Sprintf(`{__name__="c"} exemplar {id="x"} 3 %d`, at(0)),
		fmt.Sprintf(`{__name__="c"} exemplar {} 7 %d`, at(10)),
	}
	rows := s.take()
	sortStrings(want)
	if diff := cmp.Diff(want, rows[:4]); diff != "" {
		t.Errorf("floats and exemplars (-want +got):\n%s", diff)
	}
	if len(rows) != 6 || !strings.Contains(rows[5], fmt.Sprintf("%d/%d", at(-1000), at(0))) {
		t.Errorf("histograms %q", rows[4:])
	}
	if m := h.Metadata()["c"]; m.Type != "counter" || m.Help != "Help." || m.Unit != "things" {
		t.Errorf("metadata %+v", m)
	}
}

// TestLenient: what is unusual and means something is stored.
func TestLenient(t *testing.T) {
	for name, tc := range map[string]struct {
		b    *builder
		want []string
		n    string
	}{
		"unsorted labels are sorted": {
			newBuilder().sample(0, 1, "z", "1", "a", "2", "__name__", "m"),
			[]string{row(`{__name__="m", a="2", z="1"}`, 0, 0, 1)}, "1/0/0",
		},
		"an empty value is no label": {
			newBuilder().sample(0, 1, "__name__", "m", "a", "").sample(1, 1, "__name__", "m"),
			[]string{row(`{__name__="m"}`, 0, 0, 1), row(`{__name__="m"}`, 0, 1, 1)}, "2/0/0",
		},
		"unsorted samples are sorted": {
			newBuilder().add(writev2.TimeSeries{Samples: []writev2.Sample{{Timestamp: at(2), Value: 2}, {Timestamp: at(1), Value: 1}}}, "__name__", "m"),
			[]string{row(`{__name__="m"}`, 0, 1, 1), row(`{__name__="m"}`, 0, 2, 2)}, "2/0/0",
		},
		"an exact duplicate is written once and counted": {
			newBuilder().sample(0, 1, "__name__", "m").sample(0, 1, "__name__", "m"),
			[]string{row(`{__name__="m"}`, 0, 0, 1)}, "2/0/0",
		},
		"metadata alone": {
			newBuilder().add(writev2.TimeSeries{Metadata: writev2.Metadata{Type: 1}}, "__name__", "m"), nil, "0/0/0",
		},
		"ten minutes ahead": {
			newBuilder().sample(600_000, 1, "__name__", "m"), []string{row(`{__name__="m"}`, 0, 600_000, 1)}, "1/0/0",
		},
		"nothing at all": {newBuilder(), nil, "0/0/0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeStore{}
			w := post(testHandler(t, s), type2, encode(t, tc.b.request()))
			if w.Code != 204 || written(w) != tc.n {
				t.Errorf("status %d, written %s, body %q", w.Code, written(w), w.Body)
			}
			if diff := cmp.Diff(tc.want, s.take()); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func countSamples(h *Handler) int { return int(counterValue(h.metrics.samples)) }

func TestInOrderStore(t *testing.T) {
	s := &fakeStore{}
	h := testHandler(t, s, func(c *Config) { c.InOrder = true })
	b := newBuilder().sample(10, 1, "__name__", "m").sample(5, 1, "__name__", "m").sample(20, 1, "__name__", "m")
	w := post(h, type2, encode(t, b.request()))
	if w.Code != 400 || written(w) != "2/0/0" || !strings.Contains(w.Body.String(), "out of order") {
		t.Errorf("status %d, written %s, body %q", w.Code, written(w), w.Body)
	}
}

type pushes []Push

func (p *pushes) Pushed(x Push) { *p = append(*p, x) }

func TestObserver(t *testing.T) {
	var seen pushes
	s := &fakeStore{}
	h := testHandler(t, s, func(c *Config) { c.Observer = &seen })
	post(h, type2, []byte("junk"))
	body := encode(t, newBuilder().sample(0, 1, "__name__", "a", "instance", "r1").sample(700_000, 1, "__name__", "b", "instance", "r1").sample(-50, 1, "__name__", "c").request())
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.RemoteAddr = "192.0.2.1:999"
	r.Header.Set("Content-Type", type2)
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("User-Agent", "ticktier-exporter/1")
	h.ServeHTTP(httptest.NewRecorder(), r)
	want := pushes{{
		Device: "r1", RemoteAddr: "192.0.2.1:999", UserAgent: "ticktier-exporter/1", Protocol: "2.0", Status: 400,
		Series: 3, Samples: 2, Rejected: 1, Oldest: at(-50), Newest: at(0), Bytes: len(body), Received: testNow,
	}}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("pushes (-want +got):\n%s", diff)
	}
}

func TestIsCounter(t *testing.T) {
	h := testHandler(t, &fakeStore{})
	post(h, type1, encode(t, &prompb.WriteRequest{Metadata: []prompb.MetricMetadata{
		{Type: prompb.MetricMetadata_GAUGE, MetricFamilyName: "odd_total"},
		{Type: prompb.MetricMetadata_COUNTER, MetricFamilyName: "plain"},
		{Type: prompb.MetricMetadata_SUMMARY, MetricFamilyName: "s"},
		{Type: prompb.MetricMetadata_HISTOGRAM, MetricFamilyName: "h"},
		{Type: prompb.MetricMetadata_GAUGEHISTOGRAM, MetricFamilyName: "g"},
		{Type: prompb.MetricMetadata_UNKNOWN, MetricFamilyName: "u_total"},
	}}))
	for name, want := range map[string]bool{
		"odd_total": false, "plain": true, "s": false, "s_sum": true, "s_count": true, "h": true, "h_bucket": true,
		"g_bucket": false, "g": false, "u_total": true, "x_total": true, "x_count": true, "x": false, "_total": false,
		"node_memory_MemFree_bytes": false,
	} {
		if got := h.IsCounter(name); got != want {
			t.Errorf("IsCounter(%q) = %v", name, got)
		}
	}
	for name, want := range map[string]model.MetricType{
		"odd_total": "gauge", "plain": "counter", "plain_total": "counter", "plain_count": "unknown", "h": "histogram",
		"h_bucket": "counter", "h_sum": "unknown", "h_total": "unknown", "s_count": "counter", "s_bucket": "unknown",
		"g_bucket": "unknown", "u_total": "unknown", "x_total": "unknown",
	} {
		if got := h.TypeOf(name); got != want {
			t.Errorf("TypeOf(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestMetadataIsBounded(t *testing.T) {
	h := testHandler(t, &fakeStore{}, func(c *Config) { c.MaxFamilies = 3 })
	b := newBuilder()
	for i := range 10 {
		b.add(writev2.TimeSeries{
			Samples:  []writev2.Sample{{Timestamp: at(0)}},
			Metadata: writev2.Metadata{Type: 1, HelpRef: b.table.Symbolize(strings.Repeat("é", maxHelpBytes))},
		}, "__name__", fmt.Sprint("m", i))
	}
	if w := post(h, type2, encode(t, b.request())); w.Code != 204 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	all := h.Metadata()
	if len(all) != 3 {
		t.Errorf("%d families are kept", len(all))
	}
	for name, m := range all {
		if len(m.Help) > maxHelpBytes {
			t.Errorf("%s: help of %d bytes", name, len(m.Help))
		}
	}
}
