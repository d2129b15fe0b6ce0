package query

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// served is an API with two devices: a gauge of 10 and one of 20 at 0.1 Hz for
// three hours, of which raw samples hold the last.
func served(t *testing.T) (*API, *httptest.Server) {
	t.Helper()
	h := history{}
	for i, v := range []float64{10, 20} {
		lset := labels.FromStrings("__name__", "x", "instance", fmt.Sprint(i))
		for at := base; at < base+3*hour; at += 10 * second {
			h.add(lset, sample{at, v})
		}
	}
	old := labels.FromStrings("__name__", "old", "instance", "gone")
	h.add(old, sample{base + minute, 1})
	raw := newRawStore(t, h)
	raw.expired = base + 2*hour
	app := raw.Appender(context.Background())
	ref, err := app.Append(0, labels.FromStrings("__name__", "x", "instance", "0"), base+3*hour, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.AppendExemplar(ref, labels.EmptyLabels(), exemplar.Exemplar{Labels: labels.FromStrings("trace_id", "abc"), Value: 1, Ts: base + 3*hour}); err != nil {
		t.Fatal(err)
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	a, err := New(Config{
		Raw: raw,
		Tiers: []Tier{
			&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 3*hour - 10*minute},
			&fakeTier{h: h, res: hour, from: base, watermark: base + 2*hour},
		},
		Metadata: func(metric string) map[string][]Metadata {
			all := map[string][]Metadata{"x": {{Type: "gauge", Help: "An x.", Unit: ""}}, "y": {{Type: "counter"}, {Type: "gauge"}}}
			if metric != "" {
				return map[string][]Metadata{metric: all[metric]}
			}
			return all
		},
		Build:      v1.PrometheusVersion{Version: "1.2.3"},
		Flags:      map[string]string{"retention.raw": "1h"},
		TSDB:       testTSDB{raw.DB},
		Logger:     slog.New(slog.DiscardHandler),
		Registerer: reg, Gatherer: reg,
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	return a, srv
}

// testTSDB is a TSDB as the status pages want it.
type testTSDB struct{ *tsdb.DB }

func (d testTSDB) Stats(label string, limit int) (*tsdb.Stats, error) {
	return d.Head().Stats(label, limit), nil
}
func (d testTSDB) WALReplayStatus() (tsdb.WALReplayStatus, error) { return tsdb.WALReplayStatus{}, nil }
func (d testTSDB) BlockMetas() ([]tsdb.BlockMeta, error)          { return nil, nil }
func (d testTSDB) Snapshot(dir string, withHead bool) error       { return d.DB.Snapshot(dir, withHead) }

// reply is a decoded answer.
type reply struct {
	Status, ErrorType, Error string
	Data                     json.RawMessage
	Warnings, Infos          []string
}

func get(t *testing.T, u string) (*http.Response, reply) {
	t.Helper()
	resp, err := http.Get(u)
	if err != nil {
		t.Fatal(err)
	}
	return resp, decode(t, resp)
}

func decode(t *testing.T, resp *http.Response) reply {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var r reply
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%s: %v: %s", resp.Request.URL, err, body)
	}
	return r
}

// Every endpoint answers in Prometheus' shape.
func TestEndpoints(t *testing.T) {
	_, srv := served(t)
	at := func(d int64) string { return fmt.Sprint((base + d) / 1000) }
	tests := []struct{ path, want string }{
		{"query?query=x&time=" + at(3*hour-second), `{"resultType":"vector","result":[{"metric":{"__name__":"x","instance":"0"},"value":[1692010799,"10"]},{"metric":{"__name__":"x","instance":"1"},"value":[1692010799,"20"]}]}`},
		{"query?query=sum(x)&time=" + at(hour), `{"resultType":"vector","result":[{"metric":{},"value":[1692003600,"30"]}]}`},
		{"query?query=1%2B1&time=1", `{"resultType":"scalar","result":[1,"2"]}`},
		{"query_range?query=sum(x)&start=" + at(hour) + "&end=" + at(3*hour) + "&step=3600", `{"resultType":"matrix","result":[{"metric":{},"values":[[1692003600,"30"],[1692007200,"30"],[1692010800,"30"]]}]}`},
		{"query_range?query=count_over_time(x{instance=\"1\"}[1h])&start=" + at(hour) + "&end=" + at(3*hour) + "&step=3600", `{"resultType":"matrix","result":[{"metric":{"instance":"1"},"values":[[1692003600,"360"],[1692007200,"360"],[1692010800,"360"]]}]}`},
		{"series?match[]=x{instance=\"1\"}", `[{"__name__":"x","instance":"1"}]`},
		{"series?match[]=old", `[{"__name__":"old","instance":"gone"}]`},
		{"series?match[]=old&start=" + at(2*hour), `[]`},
		{"labels", `["__name__","instance"]`},
		{"label/instance/values", `["0","1","gone"]`},
		{"label/instance/values?tier=5m&start=" + at(2*hour), `["0","1"]`},
		{"label/instance/values?match[]=old", `["gone"]`},
		{"metadata?metric=x", `{"x":[{"type":"gauge","help":"An x.","unit":""}]}`},
		{"metadata?limit=1", `{"x":[{"type":"gauge","help":"An x.","unit":""}]}`},
		{"metadata?metric=y&limit_per_metric=1", `{"y":[{"type":"counter","help":"","unit":""}]}`},
		{"query_exemplars?query=x&start=" + at(0) + "&end=" + at(4*hour), `[{"seriesLabels":{"__name__":"x","instance":"0"},"exemplars":[{"labels":{"trace_id":"abc"},"value":"1","timestamp":1692010800}]}]`},
		{"status/buildinfo", `{"version":"1.2.3","revision":"","branch":"","buildUser":"","buildDate":"","goVersion":""}`},
		{"status/flags", `{"retention.raw":"1h"}`},
		{"rules", `{"groups":[]}`},
		{"alerts", `{"alerts":[]}`},
		{"targets", `{"activeTargets":[],"droppedTargets":[],"droppedTargetCounts":{}}`},
		{"alertmanagers", `{"activeAlertmanagers":[],"droppedAlertmanagers":[]}`},
		{"format_query?query=sum(x)by(instance)", `"sum by (instance) (x)"`},
	}
	for _, tc := range tests {
		t.Run(tc.path, func(t *testing.T) {
			resp, r := get(t, srv.URL+"/api/v1/"+tc.path)
			if resp.StatusCode != 200 || r.Status != "success" {
				t.Fatalf("status %d, %+v", resp.StatusCode, r)
			}
			if diff := cmp.Diff(tc.want, string(r.Data)); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
	for _, path := range []string{"status/runtimeinfo", "status/tsdb", "status/config", "parse_query?query=rate(x[5m])", "features", "notifications", "scrape_pools", "targets/metadata"} {
		t.Run(path, func(t *testing.T) {
			if resp, r := get(t, srv.URL+"/api/v1/"+path); resp.StatusCode != 200 || r.Status != "success" || len(r.Data) == 0 {
				t.Errorf("status %d, %+v", resp.StatusCode, r)
			}
		})
	}
}

// What is wrong with a request is said with a 4xx.
func TestBadRequests(t *testing.T) {
	_, srv := served(t)
	tests := []struct {
		path string
		code int
		want string
	}{
		{"query?query=sum(", 400, "parse error"},
		{"query?query=x{__tier_agg__!=\"0\"}", 400, "reserved"},
		{"series?match[]={__tier_agg__=\"0\"}", 422, "reserved"},
		{"labels?match[]={__tier_agg__=\"0\"}", 422, "reserved"},
		{"query?query=x&tier=2m", 400, "unknown tier \"2m\"; known are raw, 5m, 1h"},
		{"query?query=x&max_source_resolution=often", 400, "max_source_resolution"},
		{"query?query=x&max_source_resolution=2h", 400, "there are 0s, 5m"},
		{"query_range?query=x&start=0&end=1&step=0", 400, "step"},
		{"metadata?limit=many", 400, "limit must be a number"},
		{"query?query=x&timeout=0", 400, "timeout"},
	}
	for _, tc := range tests {
		t.Run(tc.path, func(t *testing.T) {
			resp, r := get(t, srv.URL+"/api/v1/"+tc.path)
			if resp.StatusCode != tc.code || r.Status != "error" || !strings.Contains(r.Error, tc.want) {
				t.Errorf("status %d, %+v; want %d and %q", resp.StatusCode, r, tc.code, tc.want)
			}
		})
	}
}

// The header and the infos say which tiers served an answer; parameters force one.
func TestTierParameters(t *testing.T) {
	_, srv := served(t)
	at := func(d int64) string { return fmt.Sprint((base + d) / 1000) }
	rng := "&start=" + at(hour) + "&end=" + at(3*hour) + "&step=3600"
	tests := []struct{ path, header string }{
		{"query?query=x&time=" + at(3*hour-second), "raw"},
		{"query?query=x&time=" + at(hour), "5m"},
		{"query?query=x&tier=1h&time=" + at(hour), "1h"},
		{"query?query=x&tier=raw&time=" + at(hour), ""},
		{"query_range?query=max_over_time(x[2h])" + rng, "raw,5m,1h"},
		{"query_range?query=max_over_time(x[2h])&max_source_resolution=5m" + rng, "raw,5m"},
		{"query_range?query=max_over_time(x[2h])&max_source_resolution=0s" + rng, "raw"},
		{"query_range?query=max_over_time(x[2h])&tier=1h" + rng, "1h"},
		{"label/instance/values?tier=1h", "1h"},
		{"series?match[]=x&tier=5m", "5m"},
	}
	for _, tc := range tests {
		t.Run(tc.path, func(t *testing.T) {
			resp, r := get(t, srv.URL+"/api/v1/"+tc.path)
			if got := resp.Header.Get(tiersHeader); resp.StatusCode != 200 || got != tc.header {
				t.Errorf("status %d, tiers %q, want %q", resp.StatusCode, got, tc.header)
			}
			folded := strings.HasPrefix(tc.path, "query") && tc.header != "raw" && tc.header != ""
			if said := strings.Contains(strings.Join(r.Infos, " "), "answered from tiers "+tc.header); said != folded {
				t.Errorf("infos %q for tiers %q", r.Infos, tc.header)
			}
		})
	}
}

func TestPostGzipAndCORS(t *testing.T) {
	_, srv := served(t)
	form := url.Values{"query": {"sum(x)"}, "time": {fmt.Sprint((base + 3*hour) / 1000)}}
	resp, err := http.PostForm(srv.URL+"/api/v1/query", form)
	if err != nil {
		t.Fatal(err)
	}
	if r := decode(t, resp); !strings.Contains(string(r.Data), `"30"`) {
		t.Errorf("POST query: %s", r.Data)
	}
	long := srv.URL + "/api/v1/query_range?query=x&step=5m&" + fmt.Sprintf("start=%d&end=%d", base/1000, (base+3*hour)/1000)
	_, want := get(t, long)
	for _, enc := range []string{"gzip", "zstd"} {
		req, _ := http.NewRequest("GET", long, nil)
		req.Header.Set("Origin", "http://grafana.example")
		req.Header.Set("Accept-Encoding", enc)
		resp, err = http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		h := resp.Header
		if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Content-Encoding") != enc || !strings.Contains(h.Get("Access-Control-Expose-Headers"), tiersHeader) || h.Get(tiersHeader) == "" {
			t.Errorf("headers %v", resp.Header)
		}
		if v := h.Values("Vary"); strings.Count(strings.Join(v, ","), "Accept-Encoding") != 1 {
			t.Errorf("Vary: %q", v)
		}
		if enc == "zstd" {
			zr, err := zstd.NewReader(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body = zr.IOReadCloser()
		} else if resp.Body, err = gzip.NewReader(resp.Body); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want.Data), string(decode(t, resp).Data)); diff != "" {
			t.Errorf("%s: -plain +compressed:\n%s", enc, diff)
		}
	}
	req, _ := http.NewRequest("OPTIONS", srv.URL+"/api/v1/query", nil)
	resp, err = http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("OPTIONS: status %d", resp.StatusCode)
	}
}

func TestFederate(t *testing.T) {
	now := time.Now().UnixMilli()
	h := history{}
	h.add(labels.FromStrings("__name__", "x", "instance", "a"), sample{now - 2000, 1}, sample{now - 1000, 2})
	h.add(labels.FromStrings("__name__", "x", "instance", "ended"), sample{now - 2000, 1}, sample{now - 1000, stale})
	h.add(labels.FromStrings("__name__", "x", "instance", "old"), sample{now - hour, 3})
	srv := httptest.NewServer(newTestAPI(t, newRawStore(t, h)).Handler())
	defer srv.Close()
	resp, err := http.Get(srv.URL + "/federate?match[]=x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	want := fmt.Sprintf("# TYPE x untyped\nx{instance=\"a\"} 2 %d\n", now-1000)
	if string(body) != want {
		t.Errorf("got %q, want %q", body, want)
	}
}

// Remote read gives raw samples where they are and buckets before, both ways.
func TestRemoteRead(t *testing.T) {
	_, srv := served(t)
	q, err := remote.ToQuery(base, base+3*hour-1, []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchEqual, "__name__", "x"), labels.MustNewMatcher(labels.MatchEqual, "instance", "1"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(kinds ...prompb.ReadRequest_ResponseType) *http.Response {
		body, err := (&prompb.ReadRequest{Queries: []*prompb.Query{q}, AcceptedResponseTypes: kinds}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Post(srv.URL+"/api/v1/read", "application/x-protobuf", bytes.NewReader(snappy.Encode(nil, body)))
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 {
			t.Fatalf("status %d", resp.StatusCode)
		}
		return resp
	}
	// One raw sample per 10 s of the last hour, one value per 5 min before.
	const want = 360 + 24
	resp := ask()
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	plain, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	var rr prompb.ReadResponse
	if err := rr.Unmarshal(plain); err != nil {
		t.Fatal(err)
	}
	if n := len(rr.Results[0].Timeseries[0].Samples); n != want {
		t.Errorf("samples: got %d, want %d", n, want)
	}
	resp = ask(prompb.ReadRequest_STREAMED_XOR_CHUNKS)
	defer resp.Body.Close()
	frames := remote.NewChunkedReader(resp.Body, 1<<20, nil)
	n := 0
	for {
		var f prompb.ChunkedReadResponse
		if err := frames.NextProto(&f); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, s := range f.ChunkedSeries {
			for _, c := range s.Chunks {
				n += int(c.Data[0])<<8 | int(c.Data[1]) // XOR chunks begin with their number of samples
			}
		}
	}
	if n != want {
		t.Errorf("streamed samples: got %d, want %d", n, want)
	}
}

func TestConfigIsChecked(t *testing.T) {
	tier := func(res int64) Tier { return &fakeTier{res: res} }
	raw := &rawStore{}
	log := slog.New(slog.DiscardHandler)
	for want, c := range map[string]Config{
		"Raw is missing":    {Logger: log},
		"Logger is missing": {Raw: raw},
		"want the finest":   {Raw: raw, Logger: log, Tiers: []Tier{tier(hour), tier(minute)}},
		"no multiple":       {Raw: raw, Logger: log, Tiers: []Tier{tier(2 * minute), tier(3 * minute)}},
		"CORSOrigin":        {Raw: raw, Logger: log, CORSOrigin: "("},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
