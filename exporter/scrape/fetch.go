package scrape

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// fetcher gets what one target serves, over one connection.
type fetcher struct {
	t      *Target
	http   *http.Client
	header http.Header
	max    int64

	body []byte
	gzip *gzip.Reader
}

// accepts are what is asked for, by format.
var accepts = [...]string{
	Auto:        protoType + ";q=0.7," + openType + ";q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
	Protobuf:    protoType + ",*/*;q=0.1",
	OpenMetrics: openType + ",*/*;q=0.1",
	Text:        "text/plain;version=0.0.4,*/*;q=0.1",
}

const (
	protoType = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;escaping=allow-utf-8"
	openType  = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8"
)

func newFetcher(t *Target, c *Config) (*fetcher, error) {
	rt := c.Transport
	if rt == nil {
		conf := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.Insecure}
		if t.CAFile != "" {
			pem, err := os.ReadFile(t.CAFile)
			if err != nil {
				return nil, err
			}
			conf.RootCAs = x509.NewCertPool()
			if !conf.RootCAs.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("%s has no certificate", t.CAFile)
			}
		}
		rt = &http.Transport{
			DialContext:            (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:        conf,
			MaxConnsPerHost:        1,
			IdleConnTimeout:        max(90*time.Second, 2*t.Interval),
			DisableCompression:     true, // it would expand without a bound
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	h := http.Header{}
	h.Set("User-Agent", "ticktier-exporter/"+c.Version)
	h.Set("Accept", accepts[t.Format])
	h.Set("Accept-Encoding", "gzip")
	h.Set("X-Prometheus-Scrape-Timeout-Seconds", strconv.FormatFloat(t.Timeout.Seconds(), 'f', -1, 64))
	return &fetcher{t: t, header: h, max: c.MaxBytes, http: &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (f *fetcher) close() { f.http.CloseIdleConnections() }

var errTimeout = errors.New("no whole answer within the timeout")

// fetch asks once. The body is valid until the next fetch.
func (f *fetcher) fetch(ctx context.Context) ([]byte, Format, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.t.Timeout, errTimeout)
	defer cancel()
	body, form, err := f.ask(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		err = errTimeout
	}
	// The text of a url.Error holds the URL, and that may hold a token.
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	return body, form, err
}

func (f *fetcher) ask(ctx context.Context) ([]byte, Format, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.t.URL.String(), nil)
	if err != nil {
		return nil, Text, err
	}
	for name, values := range f.header {
		req.Header[name] = values
	}
	if err := f.authorize(req); err != nil {
		return nil, Text, err
	}
	resp, err := f.http.Do(req)
	if err != nil {
		return nil, Text, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode/100 == 3:
		return nil, Text, fmt.Errorf("it answers %d to %.100s, redirects are not followed", resp.StatusCode, redacted(resp.Header.Get("Location")))
	case resp.StatusCode != http.StatusOK:
		return nil, Text, fmt.Errorf("it answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	if err := f.read(resp); err != nil {
		return nil, Text, err
	}
	form, err := formatOf(resp.Header.Get("Content-Type"))
	return f.body, form, err
}

// redacted is a URL without what may be secret in it.
func redacted(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "what is no URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// authorize adds the credentials of the target.
func (f *fetcher) authorize(req *http.Request) error {
	switch {
	case f.t.TokenFile != "":
		b, err := os.ReadFile(f.t.TokenFile)
		if err != nil {
			return fmt.Errorf("read token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(b)))
	case f.t.Username != "":
		b, err := os.ReadFile(f.t.PasswordFile)
		if err != nil {
			return fmt.Errorf("read password: %w", err)
		}
		req.SetBasicAuth(f.t.Username, strings.TrimSpace(string(b)))
	}
	return nil
}

// read reads the body as a whole, as far as it may go.
func (f *fetcher) read(resp *http.Response) error {
	// What is compressed is no longer than what comes of it, or it is a trick.
	var src io.Reader = io.LimitReader(resp.Body, f.max+1)
	switch enc := resp.Header.Get("Content-Encoding"); enc {
	case "", "identity":
	case "gzip":
		if f.gzip == nil {
			f.gzip = new(gzip.Reader)
		}
		if err := f.gzip.Reset(src); err != nil {
			return fmt.Errorf("expand: %w", err)
		}
		src = io.LimitReader(f.gzip, f.max+1)
	default:
		return fmt.Errorf("its encoding %.20q was not asked for", enc)
	}
	used := len(f.body)
	if cap(f.body) > 256<<10 && cap(f.body) > 4*used {
		f.body = nil // of an answer that was larger than others
	}
	f.body = f.body[:0]
	for {
		if len(f.body) == cap(f.body) {
			f.body = append(f.body, 0)[:len(f.body)]
		}
		n, err := src.Read(f.body[len(f.body):cap(f.body)])
		f.body = f.body[:len(f.body)+n]
		switch {
		case int64(len(f.body)) > f.max:
			f.body = nil
			return fmt.Errorf("its answer has more than the %d bytes of --scrape.max-bytes", f.max)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read the answer: %w", err)
		}
	}
}

// formatOf is the format that a Content-Type names. One that names none is taken for
// text, which then is read or is not.
func formatOf(contentType string) (Format, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return Text, nil
	}
	switch media {
	case "application/openmetrics-text":
		return OpenMetrics, nil
	case "application/vnd.google.protobuf":
		if params["proto"] != "io.prometheus.client.MetricFamily" || params["encoding"] != "delimited" {
			return Protobuf, fmt.Errorf("its answer is protobuf of another kind: %.100q", contentType)
		}
		return Protobuf, nil
	}
	return Text, nil
}
