package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/golang/snappy"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/ticktier/ticktier/e2e/client"
)

// reply is an answer to a query with all that is said about it.
type reply struct {
	Series          map[string]map[int64]float64 // by name, then by time in ms
	Warnings, Infos []string
	Tiers           string // which tiers it came from, finest first
	Error           string
	Status          int
}

// points counts the values of all series.
func (r *reply) points() (n int) {
	for _, s := range r.Series {
		n += len(s)
	}
	return n
}

// asked is one query: a range where step is set, else an instant at start.
type asked struct {
	expr             string
	start, end, step int64
}

func (q asked) String() string {
	if q.step == 0 {
		return fmt.Sprintf("%s at %d", q.expr, q.start)
	}
	return fmt.Sprintf("%s from %d to %d step %d", q.expr, q.start, q.end, q.step)
}

func secs(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }

// ask sends q to a server. A refusal is an answer too.
func ask(t testing.TB, c *client.Client, q asked, params ...string) *reply {
	t.Helper()
	form := url.Values{"query": {q.expr}}
	for i := 0; i+1 < len(params); i += 2 {
		form.Set(params[i], params[i+1])
	}
	path := "/api/v1/query"
	if q.step == 0 {
		form.Set("time", secs(q.start))
	} else {
		path = "/api/v1/query_range"
		form.Set("start", secs(q.start))
		form.Set("end", secs(q.end))
		form.Set("step", secs(q.step))
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	resp, err := c.Do(t.Context(), http.MethodPost, path, header, []byte(form.Encode()))
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	r, err := decodeReply(resp.Body)
	if err != nil {
		t.Fatalf("%s: status %d: %v", q, resp.Status, err)
	}
	r.Status, r.Tiers = resp.Status, resp.Header.Get("X-Ticktier-Tiers")
	return r
}

func decodeReply(body []byte) (*reply, error) {
	var a struct {
		Error           string
		Warnings, Infos []string
		Data            struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("decode the answer %.200q: %w", body, err)
	}
	r := &reply{Series: map[string]map[int64]float64{}, Warnings: a.Warnings, Infos: a.Infos, Error: a.Error}
	if a.Error != "" {
		return r, nil
	}
	if a.Data.ResultType == "scalar" {
		var p pair
		err := json.Unmarshal(a.Data.Result, &p)
		r.Series["scalar"] = map[int64]float64{p.t: p.v}
		return r, err
	}
	var rows []struct {
		Metric     map[string]string
		Value      *pair
		Values     []pair
		Histogram  *histPair
		Histograms []histPair
	}
	if err := json.Unmarshal(a.Data.Result, &rows); err != nil {
		return nil, fmt.Errorf("decode the result: %w", err)
	}
	for _, row := range rows {
		s := map[int64]float64{}
		if row.Value != nil {
			s[row.Value.t] = row.Value.v
		}
		for _, p := range row.Values {
			s[p.t] = p.v
		}
		name := client.Series{Labels: row.Metric}.Name()
		if _, ok := r.Series[name]; ok {
			return nil, fmt.Errorf("series %s is there twice", name)
		}
		r.Series[name] = s
		if row.Histogram != nil {
			row.Histograms = append(row.Histograms, *row.Histogram)
		}
		for _, h := range row.Histograms {
			h.flatten(r, name)
		}
		if len(s) == 0 {
			delete(r.Series, name)
		}
	}
	return r, nil
}

// histPair is [seconds, a native histogram].
type histPair struct {
	t int64
	h struct {
		Count, Sum string
		Buckets    [][4]any
	}
}

func (p *histPair) UnmarshalJSON(b []byte) error {
	var sec float64
	if err := json.Unmarshal(b, &[]any{&sec, &p.h}); err != nil {
		return err
	}
	p.t = int64(math.Round(sec * 1000))
	return nil
}

// flatten adds a histogram to r as so many series.
func (p *histPair) flatten(r *reply, name string) {
	add := func(what string, v any) {
		f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
		if err != nil {
			f = math.NaN()
		}
		if what = name + " " + what; r.Series[what] == nil {
			r.Series[what] = map[int64]float64{}
		}
		r.Series[what][p.t] = f
	}
	add("count", p.h.Count)
	add("sum", p.h.Sum)
	for _, b := range p.h.Buckets {
		add(fmt.Sprint("from ", b[1], " to ", b[2]), b[3])
	}
}

// pair is [seconds, "value"].
type pair struct {
	t int64
	v float64
}

func (p *pair) UnmarshalJSON(b []byte) error {
	var parts [2]json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	sec, err := strconv.ParseFloat(string(parts[0]), 64)
	if err != nil {
		return err
	}
	p.t = int64(math.Round(sec * 1000))
	p.v, err = strconv.ParseFloat(strings.Trim(string(parts[1]), `"`), 64)
	return err
}

// pushTyped pushes series by remote write 2.0, with their types where types has
// the metric.
func pushTyped(t testing.TB, c *client.Client, series []client.Series, types map[string]writev2.Metadata_MetricType) {
	t.Helper()
	symbols := writev2.NewSymbolTable()
	req := &writev2.Request{}
	for _, s := range series {
		ts := writev2.TimeSeries{Metadata: writev2.Metadata{Type: types[s.Labels["__name__"]]}}
		ts.LabelsRefs = refs(&symbols, s.Labels)
		for _, p := range s.Samples {
			ts.Samples = append(ts.Samples, writev2.Sample{Timestamp: p.T, Value: p.V})
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	req.Symbols = symbols.Symbols()
	pushV2(t, c, req)
}

// refs are the labels of a series by their symbols.
func refs(symbols *writev2.SymbolsTable, lset map[string]string) (out []uint32) {
	for _, n := range slices.Sorted(maps.Keys(lset)) {
		out = append(out, symbols.Symbolize(n), symbols.Symbolize(lset[n]))
	}
	return out
}

// pushV2 pushes a request by remote write 2.0.
func pushV2(t testing.TB, c *client.Client, req *writev2.Request) {
	t.Helper()
	raw, err := req.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(t.Context(), http.MethodPost, "/api/v1/write", client.PushHeader(client.V2), snappy.Encode(nil, raw))
	if err != nil {
		t.Fatal(err)
	}
	if resp.Status/100 != 2 {
		t.Fatalf("push: status %d: %.300s", resp.Status, resp.Body)
	}
}
