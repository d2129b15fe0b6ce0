package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ticktier/ticktier/e2e/client"
)

// TestCallsOfGrafana makes the calls that Grafana's Prometheus data source makes for
// its health check, query editor, dashboards, variables, annotations and alert lists.
func TestCallsOfGrafana(t *testing.T) {
	t.Parallel()
	end := lastHour()
	start := end - hourMs
	adapter := startAdapter(t, t.TempDir(), "--out-of-order-window=3h")
	var samples []client.Sample
	for at := start; at < end; at += 15_000 {
		samples = append(samples, client.Sample{T: at, V: float64(at-start) / 1000})
	}
	for _, instance := range []string{"a", "b"} {
		pushTyped(t, adapter.Client, []client.Series{{Labels: map[string]string{"__name__": "g_total", "job": "node", "instance": instance}, Samples: samples}}, nil)
	}
	times := func(more ...string) url.Values {
		v := url.Values{"start": {secs(start)}, "end": {secs(end)}}
		for i := 0; i+1 < len(more); i += 2 {
			v.Add(more[i], more[i+1])
		}
		return v
	}
	for _, c := range []struct {
		method, path string
		form         url.Values
		want         string // in the answer
	}{
		{"GET", "/api/v1/status/buildinfo", nil, `"version":"3.`},
		{"POST", "/api/v1/query", url.Values{"query": {"1+1"}, "time": {secs(end)}}, `"2"`},
		{"POST", "/api/v1/query_range", times("query", "rate(g_total[1m])", "step", "15"), `"instance":"b"`},
		{"POST", "/api/v1/query_range", times("query", "g_total", "step", "0.5", "limit", "1", "start", secs(end-10_000), "timeout", "10s"), "results truncated due to limit"},
		{"POST", "/api/v1/query_range", times("query", "g_total", "step", "15", "stats", "all"), `"totalQueryableSamplesPerStep":[[`},
		{"POST", "/api/v1/query", url.Values{"query": {"g_total"}, "time": {secs(end + 600_000)}, "lookback_delta": {"1m"}}, `"result":[]`},
		{"POST", "/api/v1/query", url.Values{"query": {"g_total"}, "time": {secs(end + 600_000)}, "lookback_delta": {"15m"}}, `"instance":"a"`},
		{"POST", "/api/v1/query", url.Values{"query": {"rate(g_total["}}, `"errorType":"bad_data"`},
		{"GET", "/api/v1/labels", times("match[]", `{job="node"}`), `["__name__","instance","job"]`},
		{"POST", "/api/v1/labels", times("match[]", `g_total`, "limit", "1"), `["__name__"]`},
		{"GET", "/api/v1/label/instance/values", times("match[]", `g_total{job="node"}`, "limit", "40000"), `["a","b"]`},
		{"GET", "/api/v1/label/__name__/values", times(), `"g_total"`},
		{"POST", "/api/v1/series", times("match[]", `g_total{instance="b"}`), `[{"__name__":"g_total","instance":"b","job":"node"}]`},
		{"GET", "/api/v1/metadata", url.Values{"limit": {"40000"}}, `"ticktier_adapter_query_panics_total":[{"type":"counter","help":"`},
		{"GET", "/api/v1/rules", nil, `{"groups":[]}`},
		{"GET", "/api/v1/alerts", nil, `{"alerts":[]}`},
		{"GET", "/api/v1/query_exemplars", times("query", "g_total"), `"data":[]`},
		{"GET", "/api/v1/targets", url.Values{"state": {"active"}}, `"activeTargets":[]`},
		{"GET", "/api/v1/format_query", url.Values{"query": {"sum(rate(x[5m]))by(a)"}}, `"sum by (a) (rate(x[5m]))"`},
		{"GET", "/api/v1/parse_query", url.Values{"query": {"rate(x[5m])"}}, `"name":"rate"`},
		{"GET", "/federate", url.Values{"match[]": {`{__name__="ticktier_adapter_query_panics_total"}`}}, ""},
	} {
		path, header := c.path+"?"+c.form.Encode(), http.Header{}
		var body []byte
		if c.method == http.MethodPost {
			path, body = c.path, []byte(c.form.Encode())
			header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		r, err := adapter.Do(t.Context(), c.method, path, header, body)
		if err != nil {
			t.Fatal(err)
		}
		ok := r.Status == http.StatusOK || r.Status == http.StatusBadRequest && strings.Contains(c.want, "errorType")
		if !ok || !strings.Contains(string(r.Body), c.want) {
			t.Errorf("%s %s %v: %d, no %q in %.400s", c.method, c.path, c.form, r.Status, c.want, r.Body)
		}
	}
}
