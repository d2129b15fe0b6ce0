package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// limited is a server over three hours of two series at 1 Hz, of which raw samples
// hold all and five-minute buckets all but the last ten minutes.
func limited(t *testing.T, change func(*Config)) (*httptest.Server, *prometheus.Registry) {
	t.Helper()
	h := history{}
	for _, n := range []string{"a", "b"} {
		steady(h, base, base+3*hour, second, 10, n)
	}
	raw := newRawStore(t, h)
	raw.expired = base + 2*hour
	reg := prometheus.NewRegistry()
	c := Config{
		Raw: raw, Tiers: []Tier{&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 3*hour - 10*minute, counters: true}},
		Logger: slog.New(slog.DiscardHandler), Registerer: reg,
	}
	change(&c)
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	return srv, reg
}

func queryURL(srv *httptest.Server, expr string, pairs ...string) string {
	v := url.Values{"query": {expr}}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	path := "/api/v1/query?"
	if v.Has("step") {
		path = "/api/v1/query_range?"
	}
	return srv.URL + path + v.Encode()
}

func at(d int64) string { return fmt.Sprint((base + d) / 1000) }

// explain=1 says which tiers, blocks and samples a query read, selector by selector.
func TestExplain(t *testing.T) {
	t.Parallel()
	srv, reg := limited(t, func(*Config) {})
	type stats struct {
		Stats struct {
			Timings map[string]float64
			Explain []struct {
				Selector, Function, Range string
				Parts                     []struct {
					Tier, From, To  string
					Blocks          []string
					Series, Samples int
				}
			}
		}
	}
	ask := func(u string) (s stats) {
		t.Helper()
		resp, r := get(t, u)
		if resp.StatusCode != 200 {
			t.Fatalf("status %d, %+v", resp.StatusCode, r)
		}
		if err := json.Unmarshal(r.Data, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	// From 40 minutes of buckets, and from raw samples after the watermark.
	got := ask(queryURL(srv, `sum(rate(c_total[30m])) / x{instance="a"}`, "time", at(3*hour-second), "explain", "1"))
	if len(got.Stats.Explain) != 2 || got.Stats.Timings != nil {
		t.Fatalf("got %+v", got)
	}
	rate, x := got.Stats.Explain[0], got.Stats.Explain[1]
	if rate.Function != "rate" {
		rate, x = x, rate
	}
	if !strings.Contains(rate.Selector, "c_total") || strings.Contains(rate.Selector, reservedLabel) || rate.Range != "30m0s" {
		t.Errorf("selector %+v", rate)
	}
	tiers := map[string]int{}
	for _, p := range rate.Parts {
		tiers[p.Tier] += p.Samples
		if p.Series == 0 || p.From >= p.To {
			t.Errorf("part %+v", p)
		}
	}
	// At 1 Hz two series have 1800 samples in the range, and at most two times three
	// samples in each of four buckets.
	if tiers["raw"] == 0 || tiers["5m"] == 0 || tiers["5m"] > 60 || tiers["raw"] > 2*1800 {
		t.Errorf("samples read: %v", tiers)
	}
	if len(x.Parts) != 1 || x.Parts[0].Tier != "raw" || x.Parts[0].Series != 1 || x.Parts[0].Samples < 1 || !strings.Contains(x.Selector, `instance="a"`) {
		t.Errorf("selector %+v", x)
	}
	if got := ask(queryURL(srv, "x", "time", at(hour), "explain", "1", "stats", "all")); got.Stats.Timings == nil || len(got.Stats.Explain) != 1 || got.Stats.Explain[0].Parts[0].Tier != "5m" {
		t.Errorf("with stats: %+v", got)
	}
	if got := ask(queryURL(srv, "x", "time", at(hour))); got.Stats.Explain != nil {
		t.Errorf("unasked: %+v", got)
	}
	if resp, r := get(t, queryURL(srv, "x", "explain", "perhaps")); resp.StatusCode != 400 || !strings.Contains(r.Error, "explain") {
		t.Errorf("explain=perhaps: status %d, %+v", resp.StatusCode, r)
	}
	n, err := testutil.GatherAndCount(reg, "ticktier_adapter_query_samples_read_total", "ticktier_adapter_query_series_read_total")
	if err != nil || n != 4 {
		t.Errorf("%d read metrics, %v", n, err)
	}
}

// A query that is too large is refused with what to change; one that is not is not.
func TestLimitsSayWhatToChange(t *testing.T) {
	t.Parallel()
	rng := []string{"start", at(hour), "end", at(3 * hour), "step", "10"}
	for _, tc := range []struct {
		name, expr string
		change     func(*Config)
		want       string
	}{
		{"series", "x", func(c *Config) { c.MaxSeries = 1 }, "raise --query.max-series"},
		{"series of two selectors", `x{instance="a"} + c_total{instance="a"}`, func(c *Config) { c.MaxSeries = 1 }, "raise --query.max-series"},
		{"one series", `x{instance="a"}`, func(c *Config) { c.MaxSeries = 1 }, ""},
		{"bytes", "x", func(c *Config) { c.MaxResponseBytes = 20_000 }, "raise --query.max-response-bytes (now 20000)"},
		{"few bytes", "sum(x)", func(c *Config) { c.MaxResponseBytes = 30_000 }, ""},
		{"samples", "rate(c_total[20m])", func(c *Config) { c.MaxSamples = 500 }, "raise --query.max-samples (now 500)"},
		{"time", "sum(rate(c_total[20m]))", func(c *Config) { c.Timeout = time.Nanosecond }, "raise --query.timeout"},
	} {
		srv, _ := limited(t, tc.change)
		resp, r := get(t, queryURL(srv, tc.expr, rng...))
		if tc.want == "" && resp.StatusCode != 200 || tc.want != "" && (resp.StatusCode/100 == 2 || !strings.Contains(r.Error, tc.want)) {
			t.Errorf("%s: status %d, %q, want %q", tc.name, resp.StatusCode, r.Error, tc.want)
		}
	}
	srv, _ := limited(t, func(c *Config) { c.MaxSeries = 3 })
	if resp, r := get(t, srv.URL+`/api/v1/series?match[]={__name__=~".%2B"}`); resp.StatusCode != 422 || !strings.Contains(r.Error, "--query.max-series") {
		t.Errorf("series: status %d, %q", resp.StatusCode, r.Error)
	}
}

// The log of slow queries has what was asked, and no header or other parameter.
func TestSlowLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	srv, reg := limited(t, func(c *Config) {
		c.LogSlowerThan, c.Logger = time.Nanosecond, slog.New(slog.NewTextHandler(&log, nil))
	})
	get(t, queryURL(srv, "sum(x)", "time", at(hour), "token", "geheim"))
	srv.Close() // waits for the handler
	for _, want := range []string{"slow query", "query=sum(x)", "path=/api/v1/query", "tiers=5m", "time=" + at(hour), "took="} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "geheim") {
		t.Errorf("a parameter that is no query's is logged: %s", log.String())
	}
	if v := testutil.CollectAndCount(reg, "ticktier_adapter_query_slow_total"); v != 1 {
		t.Errorf("%d slow counters", v)
	}
	log.Reset()
	srv, _ = limited(t, func(c *Config) {
		c.LogSlowerThan, c.Logger = time.Hour, slog.New(slog.NewTextHandler(&log, nil))
	})
	get(t, queryURL(srv, "sum(x)", "time", at(hour)))
	srv.Close()
	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
}
