package backfill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
)

// Path is where an adapter takes old samples: a POST with a remote-write 1.0 message,
// compressed with snappy. A GET with newest= tells the horizon.
const Path = "/api/v1/backfill"

// Remote is a running adapter.
type Remote struct {
	URL    string // without a path
	Client *http.Client
	// Wait is how long to try again while the adapter has no time or no room.
	Wait time.Duration
}

type envelope[T any] struct {
	Data  T      `json:"data"`
	Error string `json:"error"`
}

// Horizon implements Sink.
func (r *Remote) Horizon(ctx context.Context, newest int64) (int64, error) {
	var out envelope[struct {
		Horizon int64 `json:"horizon"`
	}]
	err := r.do(ctx, http.MethodGet, Path+"?newest="+strconv.FormatInt(newest, 10), nil, &out)
	return out.Data.Horizon, err
}

// writtenHeader is how many samples of a push were stored.
const writtenHeader = "X-Prometheus-Remote-Write-Samples-Written"

// Push implements Sink. What the adapter stores and what it refuses it says itself.
func (r *Remote) Push(ctx context.Context, list []Series) (p Pushed, err error) {
	n := int64(0)
	for _, s := range list {
		n += int64(len(s.T))
	}
	err = r.do(ctx, http.MethodPost, "/api/v1/write", Encode(list), nil)
	var a *answered
	if !errors.As(err, &a) {
		if err == nil {
			p.Stored = n
		}
		return p, err
	}
	stored, e := strconv.ParseInt(a.header.Get(writtenHeader), 10, 64)
	if e != nil || stored < 0 || stored > n {
		return p, err
	}
	p.Stored = stored
	if a.code != http.StatusBadRequest || stored == n {
		return p, err
	}
	p.Refused, p.Why = n-stored, a.text
	return p, nil
}

// answered is an answer that says no.
type answered struct {
	code   int
	status string
	header http.Header
	text   string
}

func (a *answered) Error() string { return "the adapter answers " + a.status + ": " + a.text }

// Fold implements Sink.
func (r *Remote) Fold(ctx context.Context, list []Series) (Folded, error) {
	var out envelope[Folded]
	err := r.do(ctx, http.MethodPost, Path, Encode(list), &out)
	return out.Data, err
}

// do asks, and again while it is answered 429 or 503.
func (r *Remote) do(ctx context.Context, method, path string, body []byte, out any) error {
	deadline := time.Now().Add(r.Wait)
	for {
		wait, err := r.once(ctx, method, path, body, out)
		if err == nil || wait == 0 || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (r *Remote) once(ctx context.Context, method, path string, body []byte, out any) (wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(r.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-protobuf")
		req.Header.Set("Content-Encoding", "snappy")
		req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	}
	resp, err := r.Client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("reach the adapter: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, fmt.Errorf("read the adapter's answer: %w", err)
	}
	switch {
	case resp.StatusCode/100 == 2 && out == nil:
		return 0, nil
	case resp.StatusCode/100 == 2:
		if err := json.Unmarshal(text, out); err != nil {
			return 0, fmt.Errorf("%s is no ticktier-adapter: %w", r.URL, err)
		}
		return 0, nil
	case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		wait = time.Duration(max(1, seconds)) * time.Second
	}
	return wait, &answered{resp.StatusCode, resp.Status, resp.Header, fmt.Sprintf("%.300s", bytes.TrimSpace(text))}
}

// Encode makes a remote-write 1.0 body of series.
func Encode(list []Series) []byte {
	var req prompb.WriteRequest
	for _, s := range list {
		ts := prompb.TimeSeries{Labels: prompb.FromLabels(s.Labels, nil)}
		for i, t := range s.T {
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: t, Value: s.V[i]})
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	raw, err := req.Marshal()
	if err != nil {
		panic("BUG: a remote-write message cannot be encoded: " + err.Error())
	}
	return snappy.Encode(nil, raw)
}

// Decode reads what Encode made.
func Decode(body []byte) (list []Series, err error) {
	raw, err := unsnappy(body)
	if err != nil {
		return nil, err
	}
	var req prompb.WriteRequest
	if err := req.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decode remote write 1.0: %w", err)
	}
	b := labels.NewScratchBuilder(0)
	for i := range req.Timeseries {
		ts := &req.Timeseries[i]
		s := Series{Labels: ts.ToLabels(&b, nil)}
		if !s.Labels.IsValid(model.UTF8Validation) || s.Labels.Get(model.MetricNameLabel) == "" {
			return nil, fmt.Errorf("series %d has bad labels: %s", i, s.Labels)
		}
		if name, twice := s.Labels.HasDuplicateLabelNames(); twice {
			return nil, fmt.Errorf("series %d has the label %q twice", i, name)
		}
		for _, x := range ts.Samples {
			s.T, s.V = append(s.T, x.Timestamp), append(s.V, x.Value)
		}
		list = append(list, s)
	}
	return list, nil
}
