package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sort"
	"strconv"
	"strings"
)

// Sample is a value at a time in Unix milliseconds.
type Sample struct {
	T int64
	V float64
}

// Series is a label set with samples in the order of time.
type Series struct {
	Labels  map[string]string
	Samples []Sample
}

// Name returns the series as PromQL writes it, labels sorted.
func (s Series) Name() string {
	names := make([]string, 0, len(s.Labels))
	for n := range s.Labels {
		if n != "__name__" {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	var b strings.Builder
	b.WriteString(s.Labels["__name__"])
	b.WriteByte('{')
	for i, n := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%q", n, s.Labels[n])
	}
	b.WriteByte('}')
	return b.String()
}

// Result is the answer to a query, its series sorted by name.
type Result struct {
	Type     string
	Series   []Series
	Warnings []string
}

// Value returns the value of a result that has exactly one series with one sample.
func (r *Result) Value() (float64, error) {
	if len(r.Series) != 1 || len(r.Series[0].Samples) != 1 {
		return 0, fmt.Errorf("want one series with one sample, got %d series: %+v", len(r.Series), r.Series)
	}
	return r.Series[0].Samples[0].V, nil
}

// Query evaluates expr at a time in ms. More parameters may follow as pairs of name
// and value.
func (c *Client) Query(ctx context.Context, expr string, at int64, params ...string) (*Result, error) {
	v := values(params)
	v.Set("query", expr)
	v.Set("time", seconds(at))
	return c.query(ctx, "/api/v1/query", v.Encode(), expr)
}

// QueryRange evaluates expr from start to end, both inclusive and in ms like step.
func (c *Client) QueryRange(ctx context.Context, expr string, start, end, step int64, params ...string) (*Result, error) {
	v := values(params)
	v.Set("query", expr)
	v.Set("start", seconds(start))
	v.Set("end", seconds(end))
	v.Set("step", seconds(step))
	return c.query(ctx, "/api/v1/query_range", v.Encode(), expr)
}

func (c *Client) query(ctx context.Context, path, form, expr string) (*Result, error) {
	// The form goes into the URL, where every server takes it.
	resp, err := c.Do(ctx, http.MethodGet, path+"?"+form, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	r, err := decodeResult(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("query %s: status %d: %w", expr, resp.Status, err)
	}
	return r, nil
}

func decodeResult(body []byte) (*Result, error) {
	var answer struct {
		Status   string
		Error    string
		Warnings []string
		Infos    []string
		Data     struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("decode the answer %.200q: %w", body, err)
	}
	if answer.Status != "success" {
		return nil, errors.New(answer.Error)
	}
	r := &Result{Type: answer.Data.ResultType, Warnings: append(answer.Warnings, answer.Infos...)}
	switch r.Type {
	case "vector", "matrix":
	default:
		return nil, fmt.Errorf("result type %q is not one that this client reads", r.Type)
	}
	var rows []struct {
		Metric map[string]string
		Value  *point
		Values []point
	}
	if err := json.Unmarshal(answer.Data.Result, &rows); err != nil {
		return nil, fmt.Errorf("decode the result: %w", err)
	}
	for _, row := range rows {
		s := Series{Labels: row.Metric}
		if row.Value != nil {
			s.Samples = append(s.Samples, Sample(*row.Value))
		}
		for _, p := range row.Values {
			s.Samples = append(s.Samples, Sample(p))
		}
		r.Series = append(r.Series, s)
	}
	sort.Slice(r.Series, func(i, j int) bool { return r.Series[i].Name() < r.Series[j].Name() })
	return r, nil
}

// point is [seconds, "value"].
type point Sample

func (p *point) UnmarshalJSON(b []byte) error {
	var pair [2]json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	sec, err := strconv.ParseFloat(string(pair[0]), 64)
	if err != nil {
		return fmt.Errorf("time of a sample: %w", err)
	}
	var text string
	if err := json.Unmarshal(pair[1], &text); err != nil {
		return fmt.Errorf("value of a sample: %w", err)
	}
	p.T = int64(math.Round(sec * 1000))
	p.V, err = strconv.ParseFloat(text, 64)
	return err
}
