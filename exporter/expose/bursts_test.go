package expose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/burst"
)

// bursty is a recorder after a few ticks of one interface.
func bursty(t testing.TB, m *machine, rates ...int64) *burst.Recorder {
	t.Helper()
	rec := burst.New(&m.schema)
	var slot int
	for i := range m.schema.Series() {
		if m.schema.Series()[i].Name == "node_network_receive_bytes_total" {
			slot = i
		}
	}
	mono := int64(1e9)
	for _, r := range append([]int64{0}, rates...) {
		m.row.Values[slot] += r
		rec.Append(uint64(mono), mono, 1, m.row.Values, m.row.Present)
		mono += 1e9
	}
	return rec
}

var netBytes = collectors.Metric{Name: "node_network_receive_bytes_total", Type: collectors.Counter}

func netMachine() *machine {
	m := sampleMachine()
	m.add(&netBytes, 0, label("device", "eth\"0"))
	return m
}

func (m *machine) burstHandler(t testing.TB, b Bursts) http.Handler {
	t.Helper()
	h, err := Handler(Config{Latest: m, Schema: &m.schema, Bursts: b})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const wantBursts = `# HELP ticktier_network_receive_bytes_per_second Bytes per second received by a device, in each tick.
# TYPE ticktier_network_receive_bytes_per_second histogram
ticktier_network_receive_bytes_per_second_bucket{device="eth\"0",le="0"} 1
ticktier_network_receive_bytes_per_second_bucket{device="eth\"0",le="1000"} 2
ticktier_network_receive_bytes_per_second_bucket{device="eth\"0",le="10000"} 2
`

func TestBurstText(t *testing.T) {
	m := netMachine()
	h := m.burstHandler(t, bursty(t, m, 100, 0, 2e9))
	got := body(t, get(t, h, "/metrics"))
	if !strings.Contains(got, wantBursts) {
		t.Errorf("no\n%s in\n%s", wantBursts, got)
	}
	for _, line := range []string{
		`ticktier_network_receive_bytes_per_second_bucket{device="eth\"0",le="+Inf"} 3`,
		`ticktier_network_receive_bytes_per_second_sum{device="eth\"0"} 2.0000001e+09`,
		`ticktier_network_receive_bytes_per_second_count{device="eth\"0"} 3`,
		`ticktier_network_receive_bytes_per_second_min{device="eth\"0"} 0`,
		`ticktier_network_receive_bytes_per_second_max{device="eth\"0"} 2e+09`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
	if again := body(t, get(t, h, "/metrics")); strings.Contains(again, "_second_max") || !strings.Contains(again, wantBursts) {
		t.Error("the range was not begun anew, or the histogram was")
	}
	if other := body(t, get(t, h, "/metrics", "User-Agent", "other")); !strings.Contains(other, "_second_max") {
		t.Error("another scraper is not told of the range")
	}
}

// parse reads an exposition with Prometheus' parser.
func parse(t *testing.T, b []byte, contentType string) (series, histograms int) {
	t.Helper()
	p, err := textparse.New(b, contentType, labels.NewSymbolTable(), textparse.ParserOptions{KeepClassicOnClassicAndNativeHistograms: true})
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := p.Next()
		if errors.Is(err, io.EOF) {
			return series, histograms
		}
		if err != nil {
			t.Fatalf("%v in\n%q", err, b)
		}
		switch e {
		case textparse.EntrySeries:
			series++
		case textparse.EntryHistogram:
			histograms++
			_, _, h, _ := p.Histogram()
			if err := h.Validate(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestBurstFormats(t *testing.T) {
	m := netMachine()
	rec := bursty(t, m, 100, 0, 2e9)
	for _, c := range []struct {
		accept             string
		series, histograms int
	}{
		{"text/plain", 12 + 16 + 2, 0},
		{"application/openmetrics-text", 12 + 16 + 2, 0},
		{typeProto, 12 + 16 + 2, 1},
	} {
		resp := get(t, m.burstHandler(t, rec), "/metrics", "Accept", c.accept, "User-Agent", c.accept)
		b := []byte(body(t, resp))
		if series, histograms := parse(t, b, resp.Header.Get("Content-Type")); series != c.series || histograms != c.histograms {
			t.Errorf("%s: %d series and %d histograms, want %d and %d", c.accept, series, histograms, c.series, c.histograms)
		}
	}
}

// families decodes with client_model.
func families(t *testing.T, b []byte) map[string]*dto.MetricFamily {
	t.Helper()
	dec := expfmt.NewDecoder(bytes.NewReader(b), expfmt.NewFormat(expfmt.TypeProtoDelim))
	out := map[string]*dto.MetricFamily{}
	for {
		f := new(dto.MetricFamily)
		if err := dec.Decode(f); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out[f.GetName()] = f
	}
}

func TestProto(t *testing.T) {
	m := netMachine()
	resp := get(t, m.burstHandler(t, bursty(t, m, 100, 0, 2e9)), "/metrics", "Accept", typeProto)
	if got := resp.Header.Get("Content-Type"); got != typeProto {
		t.Errorf("Content-Type %q", got)
	}
	fs := families(t, []byte(body(t, resp)))
	cpu := fs["node_cpu_seconds_total"]
	if cpu.GetHelp() != "Seconds." || cpu.GetUnit() != "seconds" || cpu.GetType() != dto.MetricType_COUNTER || len(cpu.GetMetric()) != 2 {
		t.Fatalf("%v", cpu)
	}
	if x := cpu.GetMetric()[0]; x.GetCounter().GetValue() != 123.45 || len(x.GetLabel()) != 2 || x.GetLabel()[1].GetValue() != "user" {
		t.Errorf("%v", x)
	}
	if x := fs["node_temp_celsius"]; x.GetType() != dto.MetricType_GAUGE || x.GetUnit() != "" || x.GetMetric()[0].GetGauge().GetValue() != -40 {
		t.Errorf("%v", x)
	}
	if x := fs["node_vmstat_pgfault"]; x.GetType() != dto.MetricType_UNTYPED || x.GetMetric()[0].GetUntyped().GetValue() != math.MaxUint64 {
		t.Errorf("%v", x)
	}
	if x := fs["ticktier_network_receive_bytes_per_second_max"].GetMetric()[0]; x.GetGauge().GetValue() != 2e9 || x.GetLabel()[0].GetValue() != `eth"0` {
		t.Errorf("%v", x)
	}
	h := fs["ticktier_network_receive_bytes_per_second"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 3 || h.GetZeroCount() != 1 || h.GetSchema() != 3 || len(h.GetPositiveSpan()) != 2 || fmt.Sprint(h.GetPositiveDelta()) != "[1 0]" {
		t.Errorf("%v", h)
	}
	if len(fs) != len(strings.Split("cpu float forks temp time vmstat net hist min max", " ")) {
		t.Errorf("%d families", len(fs))
	}
}

// TestSpans: whatever buckets there are, a decoder finds them.
func TestSpans(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		s := burst.Series{First: rnd.IntN(600) - 300, Classic: []uint64{0}}
		want := map[int]uint64{}
		for i := range rnd.IntN(40) {
			n := uint64(0)
			if rnd.IntN(3) == 0 {
				n = rnd.Uint64N(1 << rnd.IntN(60))
			}
			if s.Native = append(s.Native, n); n > 0 {
				want[s.First+i] = n
			}
		}
		b, m := appendFamily(nil, "x", "", "", protoHistogram)
		b = m.end(appendHistogram(b, &burst.Family{}, &s, nil))
		h := families(t, b)["x"].GetMetric()[0].GetHistogram()
		got := map[int]uint64{}
		k, i, n := 0, 0, int64(0)
		for j, span := range h.GetPositiveSpan() {
			if k += int(span.GetOffset()); j > 0 && span.GetOffset() <= 2 {
				t.Errorf("seed %d: two spans where one would do", seed)
			}
			for range span.GetLength() {
				if n += h.GetPositiveDelta()[i]; n > 0 {
					got[k] = uint64(n)
				}
				k, i = k+1, i+1
			}
		}
		if i != len(h.GetPositiveDelta()) {
			t.Errorf("seed %d: %d deltas for %d buckets", seed, len(h.GetPositiveDelta()), i)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
	}
}

func TestScraper(t *testing.T) {
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	a := scraper(r)
	if r.RemoteAddr = "192.0.2.1:4321"; scraper(r) != a {
		t.Error("another port is another scraper")
	}
	q := httptest.NewRequest("GET", "/metrics?scraper=b", nil)
	q.RemoteAddr = "192.0.2.1:1234"
	if scraper(q) == a {
		t.Error("a name makes no difference")
	}
	if r.Header.Set("User-Agent", strings.Repeat("x", 5000)); scraper(r) == a || len(scraper(r)) > 500 {
		t.Errorf("%d bytes", len(scraper(r)))
	}
}
