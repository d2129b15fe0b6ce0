package send

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// Ticks is the ring as one sender reads it, oldest tick first. Only the sender's
// goroutine uses it.
type Ticks interface {
	// Seek makes Next return the first tick with Seq ≥ seq that is still held.
	Seek(seq uint64)
	// Next moves to the next tick; false means that there is none yet, or Err.
	Next() bool
	// Tick is the tick that Next moved to, valid until the next Next.
	Tick() *frame.Tick
	// Err is why Next stopped, nil if it only ran out of ticks.
	Err() error
	// Lost is how many ticks were evicted between the tick that Next moved to and
	// the one before, and the monotonic times in ns that they span.
	Lost() (ticks uint64, from, to int64)
}

// Mode says which protocols may be spoken.
type Mode uint8

// The modes. Auto prefers 2.0 and falls back to 1.0 where a receiver does not
// know it.
const (
	Auto Mode = iota
	Only2
	Only1
)

// Config is what a Sender needs. All of it is set before New and not changed.
type Config struct {
	URL      string
	Name     string        // of the URL in logs and labels; empty is Redact's
	Interval time.Duration // between pushes
	Timeout  time.Duration // of one request; 0 is 30 s
	Mode     Mode
	// ShutdownTimeout is how long Run goes on delivering when its context ends.
	ShutdownTimeout time.Duration
	// StaleOnStop sends a staleness marker for every live series at a clean stop.
	StaleOnStop bool

	ExternalLabels []collectors.Label
	Ticks          Ticks
	Schema         *collectors.Schema
	// Wall turns monotonic ns into Unix ms; Now is the monotonic time. Both are
	// called from any goroutine.
	Wall func(mono int64) int64
	Now  func() int64
	// Start returns the monotonic time in ns at which a counter started at zero,
	// where it is known. Nil knows of none.
	Start func(s *collectors.Series) (mono int64, ok bool)
	// NotBefore is a wall time in ms that is past, such as the build's: while the
	// clock is before it, it is not set, and nothing is sent. What is sampled
	// meanwhile gets its right time when it is.
	NotBefore int64
	// Steps is how often the clock was stepped; Doubt tells whether it may be wrong
	// although it looks right, as soon after boot: the receiver is asked for the time
	// then before anything is sent. Synced tells whether the kernel knows the clock
	// to be right. Correct, where set, takes the receiver's time: that wall − monotonic
	// time lies between two bounds in ns. All are called from any goroutine, and may
	// be nil.
	Steps         func() uint64
	Doubt, Synced func() bool
	Correct       func(lo, hi int64)
	// Delivered is told whenever the receiver has more than before. What it has needs
	// no more room for this URL. Ahead is only valid during the call, which must not
	// block. Nil is allowed.
	Delivered func(Progress)

	// Extra goes with each push; nil is nothing.
	Extra Extra

	// Earlier is what former sessions left; nil is nothing.
	Earlier Earlier
	// Order is what goes first. Live needs Behind, a second reader of the same ticks,
	// Edge, the number of the newest, Period, the time from one to the next, and
	// BacklogShare: the share of the line's time, more than 0 and at most 1, that the
	// backlog may take.
	Order        Order
	Behind       Ticks
	Edge         func() uint64
	Period       time.Duration
	BacklogShare float64

	// Every thins what is sent: of each source the first read in so many slots. 0 and
	// 1 are all.
	Every uint64
	// Flat is the time between two samples of a counter that does not move; 0 sends
	// all.
	Flat time.Duration
	// Select says whether a series is sent; nil is all.
	Select func(*collectors.Series) bool

	Version string // for the User-Agent
	Session string // id of this run of the exporter, sent as X-Ticktier-Session
	// Header holds more headers to send. Authorize, if not nil, adds the
	// credentials to each request's.
	Header    http.Header
	Authorize func(h http.Header) error
	// TLS is for https. Proxy is the proxy to go through: nil is that of the
	// environment, one without a host none. Transport is for tests, in place of all
	// that; nil is net/http with one connection.
	TLS       TLS
	Proxy     *url.URL
	Transport http.RoundTripper
	// Limits of one request; 0 are the defaults.
	MaxSamples, MaxBytes int
	Logger               *slog.Logger
}

const (
	defaultTimeout    = 30 * time.Second
	defaultMaxSamples = 200_000
	// A reverse proxy in its default configuration takes 1 MiB.
	defaultMaxBytes = 1_000_000
)

// reserved are the headers that the specifications keep for the protocol.
func reserved(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Content-Encoding", "Content-Type", "X-Prometheus-Remote-Write-Version", "User-Agent", "Content-Length", "Host":
		return true
	}
	return false
}

// setDefaults checks the configuration and fills in what was left out.
func (c *Config) setDefaults() (*url.URL, error) {
	u, err := ParseURL(c.URL)
	if err != nil {
		return nil, err
	}
	if c.Ticks == nil || c.Schema == nil || c.Wall == nil || c.Now == nil || c.Logger == nil {
		return nil, errors.New("send: Ticks, Schema, Wall, Now and Logger are needed")
	}
	if c.Interval <= 0 {
		return nil, fmt.Errorf("push interval %s is not positive", c.Interval)
	}
	for name := range c.Header {
		if reserved(name) {
			return nil, fmt.Errorf("header %s belongs to the protocol", name)
		}
	}
	if c.Order == Live && (c.BacklogShare <= 0 || c.BacklogShare > 1) {
		return nil, fmt.Errorf("share of the backlog %v is not more than 0 and at most 1", c.BacklogShare)
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.MaxSamples <= 0 {
		c.MaxSamples = defaultMaxSamples
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = defaultMaxBytes
	}
	return u, nil
}

// ParseURL parses the URL of a receiver and says what is wrong with it.
func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		// The text of a parse error holds the URL, and that may hold a password.
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err
		}
		return nil, fmt.Errorf("not a URL: %w", err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q is neither http nor https", u.Scheme)
	case u.Host == "":
		return nil, errors.New("no host in it")
	}
	u.Fragment, u.RawFragment = "", "" // nobody sends it
	return u, nil
}

// Redact is a URL without what may be secret in it: user, password, query,
// fragment.
func Redact(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
