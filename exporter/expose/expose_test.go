package expose

import (
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// machine is a schema and the newest tick on it.
type machine struct {
	schema collectors.Schema
	row    collectors.Row
	taken  bool
}

func (m *machine) add(metric *collectors.Metric, v int64, ls ...collectors.Label) int {
	slot := m.schema.Add(0, metric, ls...)
	m.row.Grow(slot + 1)
	m.row.Set(slot, v)
	m.taken = true
	return slot
}

func (m *machine) Latest(t *frame.Tick) bool {
	t.Values = append(t.Values[:0], m.row.Values...)
	t.Present = append(t.Present[:0], m.row.Present...)
	return m.taken
}

func label(name, value string) collectors.Label { return collectors.Label{Name: name, Value: value} }

func (m *machine) handler(t testing.TB, pprof bool) http.Handler {
	t.Helper()
	h, err := Handler(Config{Latest: m, Schema: &m.schema, Pprof: pprof})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(t testing.TB, h http.Handler, path string, header ...string) *http.Response {
	t.Helper()
	req := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec.Result()
}

func body(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const openAccept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"

// sampleMachine has one family of every kind.
func sampleMachine() *machine {
	m := &machine{}
	cpu := &collectors.Metric{Name: "node_cpu_seconds_total", Help: "Seconds.", Unit: "seconds", Type: collectors.Counter, Div: 100}
	m.add(cpu, 12345, label("mode", "user"), label("cpu", "0"))
	m.add(&collectors.Metric{Name: "node_time_seconds", Help: `A "time"` + "\nand \\.", Unit: "seconds", Type: collectors.Gauge, Kind: collectors.Float},
		int64(math.Float64bits(1.5e9)))
	m.add(cpu, 7, label("cpu", "1"), label("mode", "idle"))
	m.add(&collectors.Metric{Name: "node_temp_celsius", Help: "Cold.", Unit: "seconds", Type: collectors.Gauge, Kind: collectors.Signed}, -40)
	m.add(&collectors.Metric{Name: "node_vmstat_pgfault", Help: "Faults."}, -1, label("why", "a\\b\"c\nd"))
	m.add(&collectors.Metric{Name: "node_forks", Help: "A counter without its suffix.", Type: collectors.Counter}, 3)
	m.row.Clear(m.add(&collectors.Metric{Name: "node_absent", Type: collectors.Gauge}, 1))
	for i, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0.1, 1e300} {
		m.add(&collectors.Metric{Name: "node_float", Type: collectors.Gauge, Kind: collectors.Float},
			int64(math.Float64bits(v)), label("i", fmt.Sprint(i)))
	}
	return m
}

func TestText(t *testing.T) {
	resp := get(t, sampleMachine().handler(t, false), "/metrics")
	if got := resp.Header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("Content-Type %q", got)
	}
	want := `# HELP node_cpu_seconds_total Seconds.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="user"} 123.45
node_cpu_seconds_total{cpu="1",mode="idle"} 0.07
# HELP node_float 
# TYPE node_float gauge
node_float{i="0"} +Inf
node_float{i="1"} -Inf
node_float{i="2"} NaN
node_float{i="3"} 0.1
node_float{i="4"} 1e+300
# HELP node_forks A counter without its suffix.
# TYPE node_forks counter
node_forks 3
# HELP node_temp_celsius Cold.
# TYPE node_temp_celsius gauge
node_temp_celsius -40
# HELP node_time_seconds A "time"\nand \\.
# TYPE node_time_seconds gauge
node_time_seconds 1.5e+09
# HELP node_vmstat_pgfault Faults.
# TYPE node_vmstat_pgfault untyped
node_vmstat_pgfault{why="a\\b\"c\nd"} 1.8446744073709552e+19
`
	if diff := cmp.Diff(want, body(t, resp)); diff != "" {
		t.Error(diff)
	}
}

func TestOpenMetrics(t *testing.T) {
	resp := get(t, sampleMachine().handler(t, false), "/metrics", "Accept", openAccept)
	if got := resp.Header.Get("Content-Type"); got != "application/openmetrics-text; version=1.0.0; charset=utf-8" {
		t.Errorf("Content-Type %q", got)
	}
	want := `# TYPE node_cpu_seconds counter
# UNIT node_cpu_seconds seconds
# HELP node_cpu_seconds Seconds.
node_cpu_seconds_total{cpu="0",mode="user"} 123.45
node_cpu_seconds_total{cpu="1",mode="idle"} 0.07
# TYPE node_float gauge
# HELP node_float 
node_float{i="0"} +Inf
node_float{i="1"} -Inf
node_float{i="2"} NaN
node_float{i="3"} 0.1
node_float{i="4"} 1e+300
# TYPE node_forks unknown
# HELP node_forks A counter without its suffix.
node_forks 3
# TYPE node_temp_celsius gauge
# HELP node_temp_celsius Cold.
node_temp_celsius -40
# TYPE node_time_seconds gauge
# UNIT node_time_seconds seconds
# HELP node_time_seconds A \"time\"\nand \\.
node_time_seconds 1.5e+09
# TYPE node_vmstat_pgfault unknown
# HELP node_vmstat_pgfault Faults.
node_vmstat_pgfault{why="a\\b\"c\nd"} 1.8446744073709552e+19
# EOF
`
	if diff := cmp.Diff(want, body(t, resp)); diff != "" {
		t.Error(diff)
	}
}

// parsed is what Prometheus' own parser makes of an answer: values by label set,
// types by family.
func parsed(t testing.TB, resp *http.Response) (values map[string]float64, types map[string]string) {
	t.Helper()
	p, err := textparse.New([]byte(body(t, resp)), resp.Header.Get("Content-Type"), labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	values, types = map[string]float64{}, map[string]string{}
	for {
		e, err := p.Next()
		switch {
		case err == io.EOF:
			return values, types
		case err != nil:
			t.Fatal(err)
		case e == textparse.EntrySeries:
			var ls labels.Labels
			p.Labels(&ls)
			_, _, v := p.Series()
			if _, ok := values[ls.String()]; ok {
				t.Fatalf("%s is there twice", ls)
			}
			values[ls.String()] = v
		case e == textparse.EntryType:
			name, typ := p.Type()
			if _, ok := types[string(name)]; ok {
				t.Fatalf("%s has two types", name)
			}
			types[string(name)] = string(typ)
		}
	}
}

// Names, labels, values and types survive Prometheus' parsers, in both formats.
func TestRealParsers(t *testing.T) {
	m := sampleMachine()
	want := map[string]float64{}
	for i, s := range m.schema.Series() {
		if !m.row.Has(i) {
			continue
		}
		ls := labels.NewScratchBuilder(4)
		ls.Add("__name__", s.Name)
		for _, l := range s.Labels {
			ls.Add(l.Name, l.Value)
		}
		ls.Sort()
		want[ls.Labels().String()] = s.Value(m.row.Values[i])
	}
	for _, accept := range []string{"", openAccept} {
		values, types := parsed(t, get(t, m.handler(t, false), "/metrics", "Accept", accept))
		if diff := cmp.Diff(want, values, cmp.Comparer(func(a, b float64) bool {
			return a == b || math.IsNaN(a) && math.IsNaN(b)
		})); diff != "" {
			t.Errorf("Accept %q (-want +got):\n%s", accept, diff)
		}
		cpu, forks := "node_cpu_seconds_total", "counter"
		if accept != "" {
			cpu, forks = "node_cpu_seconds", "unknown"
		}
		wantTypes := map[string]string{
			cpu: "counter", "node_float": "gauge", "node_forks": forks, "node_temp_celsius": "gauge",
			"node_time_seconds": "gauge", "node_vmstat_pgfault": "unknown",
		}
		if diff := cmp.Diff(wantTypes, types); diff != "" {
			t.Errorf("Accept %q (-want +got):\n%s", accept, diff)
		}
	}
}

func TestFamilyClash(t *testing.T) {
	m := &machine{}
	m.add(&collectors.Metric{Name: "x_total", Type: collectors.Counter}, 1)
	m.add(&collectors.Metric{Name: "x", Type: collectors.Gauge}, 2)
	_, types := parsed(t, get(t, m.handler(t, false), "/metrics", "Accept", openAccept))
	if diff := cmp.Diff(map[string]string{"x_total": "unknown", "x": "gauge"}, types); diff != "" {
		t.Error(diff)
	}
}

// The table follows the schema, a tick may have fewer slots than it, and of two
// equal series the newest that is present is shown.
func TestSchemaGrows(t *testing.T) {
	m := &machine{}
	h := m.handler(t, false)
	for range 2 {
		if got := body(t, get(t, h, "/metrics", "Accept", openAccept)); got != "# EOF\n" {
			t.Errorf("before the first tick: %q", got)
		}
	}
	metric := &collectors.Metric{Name: "x", Type: collectors.Gauge}
	want := func(want map[string]float64) {
		t.Helper()
		values, _ := parsed(t, get(t, h, "/metrics"))
		if diff := cmp.Diff(want, values); diff != "" {
			t.Error(diff)
		}
	}
	m.add(metric, 1, label("a", "1"))
	want(map[string]float64{`{__name__="x", a="1"}`: 1})
	m.schema.Add(0, metric, label("a", "2"))
	want(map[string]float64{`{__name__="x", a="1"}`: 1})
	m.row.Grow(2)
	m.row.Set(1, 5)
	want(map[string]float64{`{__name__="x", a="1"}`: 1, `{__name__="x", a="2"}`: 5})
	again := m.add(metric, 9, label("a", "1"))
	want(map[string]float64{`{__name__="x", a="1"}`: 9, `{__name__="x", a="2"}`: 5})
	m.row.Clear(again)
	want(map[string]float64{`{__name__="x", a="1"}`: 1, `{__name__="x", a="2"}`: 5})
	m.row.Clear(0)
	want(map[string]float64{`{__name__="x", a="2"}`: 5})
}

func TestGzip(t *testing.T) {
	m := sampleMachine()
	h := m.handler(t, false)
	want := body(t, get(t, h, "/metrics"))
	for accept, zipped := range map[string]bool{
		"": false, "gzip": true, "deflate, gzip;q=0.5": true, "gzip;q=0": false, "*": true, "identity": false, "gzip;q=0, *": false, ";;, gzip": true,
	} {
		resp := get(t, h, "/metrics", "Accept-Encoding", accept)
		if got := resp.Header.Get("Content-Encoding") == "gzip"; got != zipped {
			t.Errorf("Accept-Encoding %q: gzip is %v", accept, got)
			continue
		}
		if zipped {
			z, err := gzip.NewReader(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body = z
		}
		if diff := cmp.Diff(want, body(t, resp)); diff != "" {
			t.Errorf("Accept-Encoding %q: %s", accept, diff)
		}
	}
}

func TestNegotiate(t *testing.T) {
	const text, open1, open0 = "text/plain; version=0.0.4; charset=utf-8", "application/openmetrics-text; version=1.0.0; charset=utf-8", "application/openmetrics-text; version=0.0.1; charset=utf-8"
	for _, c := range []struct{ accept, want string }{
		{"", text},
		{"*/*", text},
		{"text/html,application/xhtml+xml,*/*;q=0.8", text},
		{"application/openmetrics-text", open1},
		{"application/openmetrics-text;version=2.0.0", text},
		{"application/openmetrics-text;q=0, text/plain", text},
		{"application/openmetrics-text;q=nonsense", text},
		{"application/openmetrics-text;version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", open0},
		{"application/openmetrics-text;q=0.2,text/plain;q=0.5", text},
		// Prometheus 2.55 and 3.x.
		{"application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", open1},
		{"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1", typeProto},
		{"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text", text},
		{"application/vnd.google.protobuf;proto=other;encoding=delimited", text},
		{"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.1,text/plain", text},
	} {
		want := map[string]format{text: asText, open1: asOpen, open0: asOpen, typeProto: asProto}[c.want]
		if got, f := negotiate([]string{c.accept}); got != c.want || f != want {
			t.Errorf("Accept %q: %q in format %d, want %q", c.accept, got, f, c.want)
		}
	}
}

func TestRoutes(t *testing.T) {
	m := &machine{}
	h, profiled := m.handler(t, false), m.handler(t, true)
	for _, c := range []struct {
		h          http.Handler
		path, want string
		code       int
	}{
		{h, "/-/healthy", "ok", 200},
		{h, "/-/ready", "no tick was taken yet", 503},
		{h, "/", `<a href="/metrics">`, 200},
		{h, "/nothing", "not found", 404},
		{h, "/debug/pprof/", "not found", 404},
		{profiled, "/debug/pprof/", "goroutine", 200},
		{profiled, "/debug/pprof/goroutine?debug=1", "goroutine profile:", 200},
		{profiled, "/debug/pprof/profile?seconds=0.01", "\x1f\x8b", 200},
		{profiled, "/debug/pprof/profile?seconds=-1", "-1", 400},
		{profiled, "/debug/pprof/trace?seconds=0.01", "go 1.", 200},
		{profiled, "/debug/pprof/nothing", "no such profile", 404},
		{profiled, "/", "/debug/pprof/", 200},
	} {
		resp := get(t, c.h, c.path)
		if got := body(t, resp); resp.StatusCode != c.code || !strings.Contains(got, c.want) {
			t.Errorf("GET %s: %d %q, want %d with %q", c.path, resp.StatusCode, got, c.code, c.want)
		}
	}
	m.taken = true
	if resp := get(t, h, "/-/ready"); resp.StatusCode != 200 {
		t.Errorf("/-/ready with a tick: %d", resp.StatusCode)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("POST", "/metrics", nil))
	if rec.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /metrics: %d", rec.Code)
	}
	if _, err := Handler(Config{}); err == nil {
		t.Error("a handler without ticks was made")
	}
}

// Whatever a label's value and a help text are, both parsers read the value back.
func FuzzEscaping(f *testing.F) {
	f.Add("eth0", "help")
	f.Add("a\\b\"c\nd", "\\n\n\"")
	f.Add("\xff\xfe", "\xc3\x28")
	f.Add("\r\t\x00}# ", "{}=")
	f.Fuzz(func(t *testing.T, value, help string) {
		m := &machine{}
		m.add(&collectors.Metric{Name: "x_total", Help: help, Type: collectors.Counter}, 5, label("l", value), label("m", "z"))
		want := labels.FromStrings("__name__", "x_total", "l", utf8Text(value), "m", "z")
		for _, accept := range []string{"", openAccept} {
			values, _ := parsed(t, get(t, m.handler(t, false), "/metrics", "Accept", accept))
			if v, ok := values[want.String()]; !ok || v != 5 || len(values) != 1 {
				t.Fatalf("Accept %q: %v, want %s", accept, values, want)
			}
		}
	})
}
