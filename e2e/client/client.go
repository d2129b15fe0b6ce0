package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client talks to one server.
type Client struct {
	base string
	http *http.Client
}

// New returns a client of the server at base, for example http://127.0.0.1:9748.
func New(base string) *Client {
	return &Client{
		base: strings.TrimSuffix(base, "/"),
		http: &http.Client{Timeout: 60 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 4}},
	}
}

// URL returns the base URL with path appended.
func (c *Client) URL(path string) string { return c.base + path }

// Close closes idle connections, which a server that stops gracefully may wait for.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Response is what a server answered.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends one request and reads the whole answer. Any status is an answer.
func (c *Client) Do(ctx context.Context, method, path string, header http.Header, body []byte) (*Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL(path), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	return &Response{Status: resp.StatusCode, Header: resp.Header, Body: got}, nil
}

// Get returns the body at path and demands status 200.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	resp, err := c.Do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	if resp.Status != http.StatusOK {
		return nil, fmt.Errorf("GET %s: status %d: %s", path, resp.Status, bytes.TrimSpace(resp.Body))
	}
	return resp.Body, nil
}

// Metric returns the value of the first sample on /metrics whose line starts with
// series, which is a name or a name with its whole label set.
func (c *Client) Metric(ctx context.Context, series string) (float64, error) {
	body, err := c.Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(body)) {
		rest, ok := strings.CutPrefix(line, series)
		if !ok || rest == "" || (rest[0] != ' ' && rest[0] != '{') {
			continue
		}
		fields := strings.Fields(rest[strings.LastIndexByte(rest, '}')+1:])
		if len(fields) == 0 {
			continue
		}
		return strconv.ParseFloat(fields[0], 64)
	}
	return 0, fmt.Errorf("%s/metrics has no %s", c.base, series)
}

// seconds writes a time in ms as the API takes it, without rounding.
func seconds(ms int64) string {
	return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64)
}

func values(pairs []string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}
