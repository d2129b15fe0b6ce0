package send

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxMessage is how much of a receiver's error is kept for the log.
	maxMessage = 1024
	// maxDrain and drainTimeout bound what is read of a reply in order to keep the
	// connection. The verdict is in the headers, so nothing waits for more.
	maxDrain     = 64 << 10
	drainTimeout = time.Second

	headerVersion    = "X-Prometheus-Remote-Write-Version"
	headerSamples    = "X-Prometheus-Remote-Write-Samples-Written"
	headerHistograms = "X-Prometheus-Remote-Write-Histograms-Written"
	headerExemplars  = "X-Prometheus-Remote-Write-Exemplars-Written"
	headerSession    = "X-Ticktier-Session"
	headerSeq        = "X-Ticktier-Seq"
)

// client posts bodies to one URL over one connection.
type client struct {
	http      *http.Client
	files     *tlsFiles // nil where a transport was given
	url       *url.URL
	header    http.Header // common to all requests
	authorize func(http.Header) error
	timeout   time.Duration
}

// reply is what came of one request.
type reply struct {
	err  error // there was no reply; nothing else is set
	code int
	// confirmed says whether any Written header came, samples what the one of
	// samples said, 0 if it did not come or was no number.
	confirmed  bool
	samples    int64
	retryAfter time.Duration // 0 is none
	message    string        // of an error
	location   string        // of a redirect
	date       time.Time     // by the receiver's clock, to a second; zero is unknown
}

// newClient makes a client. Trust tells what time it is, for certificates.
func newClient(c *Config, u *url.URL, trust *trust) (*client, error) {
	h := http.Header{}
	for name, values := range c.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	h.Set("User-Agent", "ticktier-exporter/"+c.Version)
	cl := &client{
		http: &http.Client{
			Transport: c.Transport,
			// A redirect followed turns into a GET, whose 200 would be taken for
			// success.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url:       u,
		header:    h,
		authorize: c.Authorize,
		timeout:   c.Timeout,
	}
	if c.Transport != nil {
		return cl, nil
	}
	cl.files = &tlsFiles{cfg: c.TLS, host: u.Hostname(), trust: trust, log: c.Logger.With("url", cmp.Or(c.Name, Redact(u)))}
	conf, err := cl.files.load()
	if err != nil {
		return nil, err
	}
	cl.http.Transport = transport(c, conf)
	return cl, nil
}

// transport is plain net/http with one connection.
func transport(c *Config, conf *tls.Config) *http.Transport {
	proxy := http.ProxyFromEnvironment
	switch {
	case c.Proxy == nil:
	case c.Proxy.Host == "":
		proxy = nil
	default:
		proxy = http.ProxyURL(c.Proxy)
	}
	return &http.Transport{
		Proxy:               proxy,
		TLSClientConfig:     conf,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxConnsPerHost:     1,
		MaxIdleConnsPerHost: 1,
		// Kept over one missed push.
		IdleConnTimeout:        max(90*time.Second, 2*c.Interval+10*time.Second),
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// refresh takes new certificates where their files changed.
func (c *client) refresh() {
	if c.files == nil || !c.files.changed() {
		return
	}
	conf, err := c.files.load()
	if err != nil {
		c.files.log.Error("new certificates cannot be used, the old ones stay", "err", err)
		return
	}
	old, ok := c.http.Transport.(*http.Transport)
	if !ok {
		return
	}
	t := old.Clone()
	t.TLSClientConfig = conf
	c.http.Transport = t
	old.CloseIdleConnections()
	c.files.log.Info("certificates are read again")
}

// protocolHeaders sets the headers that tell the receiver what the body is.
func protocolHeaders(h http.Header, p Protocol) {
	if p == V2 {
		h.Set("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
		h.Set(headerVersion, "2.0.0")
		return
	}
	// Receivers of 1.0 compare the type as a whole.
	h.Set("Content-Type", "application/x-protobuf")
	h.Set(headerVersion, "0.1.0")
}

// post sends one body and waits for the reply's headers.
func (c *client) post(ctx context.Context, p Protocol, body []byte, from origin) reply {
	return c.do(ctx, http.MethodPost, bytes.NewReader(body), func(h http.Header) {
		h.Set("Content-Encoding", "snappy")
		protocolHeaders(h, p)
		for name, value := range map[string]string{headerSeq: from.seqs, headerSession: from.session, headerSender: from.sender} {
			if value != "" {
				h.Set(name, value)
			}
		}
	})
}

// ask sends a request that changes nothing, for the time in the reply.
func (c *client) ask(ctx context.Context) reply {
	return c.do(ctx, http.MethodOptions, nil, func(http.Header) {})
}

func (c *client) do(ctx context.Context, method string, body io.Reader, headers func(http.Header)) reply {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.url.String(), body)
	if err != nil {
		return reply{err: err}
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	headers(req.Header)
	if c.authorize != nil {
		if err := c.authorize(req.Header); err != nil {
			return reply{err: err}
		}
	}
	c.refresh()
	resp, err := c.http.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errTimeout) {
			err = cause
		}
		// The text of a url.Error holds the URL, and that may hold a token.
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err
		}
		return reply{err: err}
	}
	// A body that trickles in must not hold the next push up.
	defer time.AfterFunc(drainTimeout, cancel).Stop()
	return readReply(resp, time.Now())
}

var errTimeout = errors.New("no reply within the request timeout")

// readReply reads what matters of a response and closes its body.
func readReply(resp *http.Response, now time.Time) reply {
	defer func() {
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
		_ = resp.Body.Close()
	}()
	r := reply{code: resp.StatusCode, location: resp.Header.Get("Location")}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		r.date = date
		now = date // a Retry-After date is on the receiver's clock
	}
	r.retryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), now)
	for _, name := range []string{headerSamples, headerHistograms, headerExemplars} {
		if resp.Header.Get(name) != "" {
			r.confirmed = true
		}
	}
	if n, err := strconv.ParseInt(resp.Header.Get(headerSamples), 10, 64); err == nil && n > 0 {
		r.samples = n
	}
	if r.code/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
		r.message = message(text)
	}
	return r
}

// message makes a receiver's error text fit for a log.
func message(text []byte) string {
	for len(text) > 0 && !utf8.Valid(text) && len(text) == maxMessage {
		text = text[:len(text)-1] // cut inside a character
		if maxMessage-len(text) > utf8.UTFMax {
			break
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD"))
}
