package client

import (
	"context"
	"fmt"
	"net/http"
	"sort"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// Version is a version of the remote write protocol.
type Version string

// The versions that exist.
const (
	V1 Version = "1.0"
	V2 Version = "2.0"
)

// Push sends series as one remote write request to /api/v1/write and returns the
// answer, whatever its status.
func (c *Client) Push(ctx context.Context, v Version, series []Series) (*Response, error) {
	body, err := Encode(v, series)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(ctx, http.MethodPost, "/api/v1/write", PushHeader(v), body)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	return resp, nil
}

// PushHeader returns the headers that the protocol asks for.
func PushHeader(v Version) http.Header {
	h := http.Header{}
	h.Set("Content-Encoding", "snappy")
	h.Set("User-Agent", "ticktier-e2e/1")
	if v == V2 {
		h.Set("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
		h.Set("X-Prometheus-Remote-Write-Version", "2.0.0")
		return h
	}
	h.Set("Content-Type", "application/x-protobuf")
	h.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	return h
}

// Encode returns the snappy-compressed message.
func Encode(v Version, series []Series) ([]byte, error) {
	var raw []byte
	var err error
	if v == V2 {
		raw, err = message2(series).Marshal()
	} else {
		raw, err = message1(series).Marshal()
	}
	if err != nil {
		return nil, fmt.Errorf("encode a push: %w", err)
	}
	return snappy.Encode(nil, raw), nil
}

func message1(series []Series) *prompb.WriteRequest {
	req := &prompb.WriteRequest{}
	for _, s := range series {
		ts := prompb.TimeSeries{}
		for _, n := range sortedNames(s.Labels) {
			ts.Labels = append(ts.Labels, prompb.Label{Name: n, Value: s.Labels[n]})
		}
		for _, p := range s.Samples {
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: p.T, Value: p.V})
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	return req
}

func message2(series []Series) *writev2.Request {
	symbols := writev2.NewSymbolTable()
	req := &writev2.Request{}
	for _, s := range series {
		ts := writev2.TimeSeries{}
		for _, n := range sortedNames(s.Labels) {
			ts.LabelsRefs = append(ts.LabelsRefs, symbols.Symbolize(n), symbols.Symbolize(s.Labels[n]))
		}
		for _, p := range s.Samples {
			ts.Samples = append(ts.Samples, writev2.Sample{Timestamp: p.T, Value: p.V})
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	req.Symbols = symbols.Symbols()
	return req
}

func sortedNames(labels map[string]string) []string {
	names := make([]string, 0, len(labels))
	for n := range labels {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
