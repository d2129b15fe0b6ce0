package receive

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// testNow is the wall clock of the tests.
var testNow = time.UnixMilli(1_700_000_000_000)

const (
	type1 = "application/x-protobuf"
	type2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
)

func testHandler(t testing.TB, s *fakeStore, change ...func(*Config)) *Handler {
	t.Helper()
	cfg := Config{Store: s, Now: func() time.Time { return testNow }}
	for _, c := range change {
		c(&cfg)
	}
	t.Cleanup(func() {
		if s != nil && s.open != 0 {
			t.Errorf("%d appenders were neither committed nor rolled back", s.open)
		}
	})
	return New(cfg)
}

type marshaler interface{ Marshal() ([]byte, error) }

func encode(t testing.TB, m marshaler) []byte {
	t.Helper()
	raw, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return snappy.Encode(nil, raw)
}

func post(h http.Handler, contentType string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Content-Encoding", "snappy")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func written(w *httptest.ResponseRecorder) string {
	h := w.Header()
	return h.Get("X-Prometheus-Remote-Write-Samples-Written") + "/" +
		h.Get("X-Prometheus-Remote-Write-Histograms-Written") + "/" +
		h.Get("X-Prometheus-Remote-Write-Exemplars-Written")
}

// builder makes 2.0 messages.
type builder struct {
	table writev2.SymbolsTable
	req   writev2.Request
}

func newBuilder() *builder { return &builder{table: writev2.NewSymbolTable()} }

func (b *builder) refs(nameValues ...string) (refs []uint32) {
	for _, s := range nameValues {
		refs = append(refs, b.table.Symbolize(s))
	}
	return refs
}

func (b *builder) add(ts writev2.TimeSeries, nameValues ...string) *builder {
	ts.LabelsRefs = b.refs(nameValues...)
	b.req.Timeseries = append(b.req.Timeseries, ts)
	return b
}

// sample adds a series with one sample; t is relative to testNow.
func (b *builder) sample(t int64, v float64, nameValues ...string) *builder {
	return b.add(writev2.TimeSeries{Samples: []writev2.Sample{{Timestamp: at(t), Value: v}}}, nameValues...)
}

func (b *builder) request() *writev2.Request {
	b.req.Symbols = b.table.Symbols()
	return &b.req
}

func at(t int64) int64 { return testNow.UnixMilli() + t }

// series1 is a 1.0 series with samples of value 1 at the given times after testNow.
func series1(ls labels.Labels, times ...int64) prompb.TimeSeries {
	ts := prompb.TimeSeries{Labels: prompb.FromLabels(ls, nil)}
	for _, t := range times {
		ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: at(t), Value: 1})
	}
	return ts
}

// push makes a request of the shape an exporter sends.
func push(series, samples int, from, step int64) *writev2.Request {
	b := newBuilder()
	for i := range series {
		ts := writev2.TimeSeries{Metadata: writev2.Metadata{
			Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: b.table.Symbolize("Seconds the CPUs spent in each mode."),
		}}
		for j := range samples {
			ts.Samples = append(ts.Samples, writev2.Sample{
				Timestamp: from + int64(j)*step, Value: float64(i*1000 + j), StartTimestamp: 1_600_000_000_000,
			})
		}
		b.add(ts, "__name__", "node_cpu_seconds_total", "cpu", fmt.Sprint(i/8), "instance", "router-1", "job", "node", "mode", fmt.Sprintf("mode%d", i%8))
	}
	return b.request()
}

// push1 is the same in 1.0.
func push1(series, samples int, from, step int64) *prompb.WriteRequest {
	req := &prompb.WriteRequest{}
	for i := range series {
		ts := prompb.TimeSeries{Labels: prompb.FromLabels(labels.FromStrings("__name__", "node_cpu_seconds_total",
			"cpu", fmt.Sprint(i/8), "instance", "router-1", "job", "node", "mode", fmt.Sprintf("mode%d", i%8)), nil)}
		for j := range samples {
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: from + int64(j)*step, Value: float64(i*1000 + j)})
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	return req
}

// reversed turns every label set around, as senders that do not sort may send it.
func reversed(req *prompb.WriteRequest) *prompb.WriteRequest {
	for _, ts := range req.Timeseries {
		slices.Reverse(ts.Labels)
	}
	return req
}

func newRequest() *http.Request { return httptest.NewRequest(http.MethodPost, "/", nil) }
