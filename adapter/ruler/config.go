package ruler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// Store takes the results of rules and gives the state of alerts back. *store.Raw
// satisfies it.
type Store interface {
	storage.AppendableV2
	storage.Queryable
	// FillAppender is an appender whose samples replace those of the same series and
	// time; of two runs the greater one's stay.
	FillAppender(ctx context.Context, run uint64) storage.AppenderV2
}

// Span is a stretch of time.
type Span struct{ From, To time.Time }

// Config is what a Ruler needs. Zero durations mean the defaults.
type Config struct {
	// Engine evaluates rules over Queryable.
	Engine    promql.QueryEngine
	Queryable storage.Queryable
	Store     Store

	// Files are patterns as of filepath.Glob. Files whose names end in _test.yml or
	// _test.yaml are promtool's and left out.
	Files []string

	// Interval is the time between two evaluations of a group that names none; 15 s.
	Interval time.Duration
	// QueryOffset is how far behind its time a group that names none looks: samples that
	// are pushed are on their way for that long. 0 is none.
	QueryOffset time.Duration
	// Lag is how late pushed samples are; the offset follows it up to MaxQueryOffset. Nil
	// keeps the offset as it is.
	Lag            func() time.Duration
	MaxQueryOffset time.Duration
	// FillWindow is how far back recording rules are evaluated again where samples came
	// late, or nothing was evaluated; 0 is not. FillDelay is how long nothing more must
	// have come late before; 30 s.
	FillWindow time.Duration
	FillDelay  time.Duration
	// Lookback is how old the newest sample of a series may be for the engine; 5 min.
	Lookback time.Duration
	// Down is when nothing was evaluated before this start.
	Down Span
	// Silent tells whether a device has been silent for long: an alert with its instance
	// label does not end meanwhile. HeldFile is where such alerts outlast a restart. Nil
	// and "" are allowed.
	Silent   func(instance string) bool
	HeldFile string
	// OutageTolerance is how long ago an alert's state may have been written to be taken
	// up again at a start; 1 h.
	OutageTolerance time.Duration
	// ForGracePeriod is the least time after a start before an alert that was pending may
	// fire; 1 min. An alert whose whole "for" is shorter begins anew.
	ForGracePeriod time.Duration
	// ResendDelay is the time between two notifications of an alert that goes on; 1 min.
	ResendDelay time.Duration

	// Alertmanagers are the addresses that alerts are sent to, without user and password,
	// which belong into HTTPClient. A path is put before /api/v2/alerts.
	Alertmanagers []*url.URL
	// HTTPClient is how they are spoken to: TLS, authentication, proxies. Nil is
	// Prometheus' default.
	HTTPClient *promconfig.HTTPClientConfig
	// ExternalLabels are put on alerts that are sent, where they do not have them.
	ExternalLabels labels.Labels
	// ExternalURL is where people reach this adapter; alerts link to it. May be nil.
	ExternalURL *url.URL
	// StopTimeout is how long evaluations and notifications under way may go on at a
	// stop; 5 s.
	StopTimeout time.Duration

	Logger     *slog.Logger          // may be nil
	Registerer prometheus.Registerer // may be nil

	// do sends a request; tests replace it.
	do func(context.Context, *http.Client, *http.Request) (*http.Response, error)
}

const (
	defaultInterval        = 15 * time.Second
	defaultOutageTolerance = time.Hour
	// defaultForGracePeriod is short beside Prometheus' ten minutes: what is pushed is
	// here again within seconds of a start, while targets have to be found and scraped.
	defaultForGracePeriod = time.Minute
	defaultResendDelay    = time.Minute
	defaultStopTimeout    = 5 * time.Second
	defaultFillDelay      = 30 * time.Second
	defaultLookback       = 5 * time.Minute
)

// validate checks c and fills in the defaults.
func (c *Config) validate() error {
	switch {
	case c.Engine == nil:
		return errors.New("ruler: Engine is missing")
	case c.Queryable == nil:
		return errors.New("ruler: Queryable is missing")
	case c.Store == nil:
		return errors.New("ruler: Store is missing")
	case c.QueryOffset < 0:
		return fmt.Errorf("ruler: QueryOffset is %s", c.QueryOffset)
	}
	for _, p := range c.Files {
		if _, err := filepath.Match(p, ""); err != nil {
			return fmt.Errorf("ruler: pattern %q: %w", p, err)
		}
	}
	for _, u := range c.Alertmanagers {
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return fmt.Errorf("ruler: Alertmanager %q is no http or https address without a user", u.Redacted())
		}
	}
	for _, d := range []struct {
		d   *time.Duration
		def time.Duration
	}{
		{&c.Interval, defaultInterval},
		{&c.OutageTolerance, defaultOutageTolerance},
		{&c.ForGracePeriod, defaultForGracePeriod},
		{&c.ResendDelay, defaultResendDelay},
		{&c.StopTimeout, defaultStopTimeout},
		{&c.FillDelay, defaultFillDelay},
		{&c.Lookback, defaultLookback},
	} {
		if *d.d <= 0 {
			*d.d = d.def
		}
	}
	if c.ExternalURL == nil {
		c.ExternalURL = &url.URL{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.do == nil {
		c.do = func(ctx context.Context, client *http.Client, req *http.Request) (*http.Response, error) {
			return client.Do(req.WithContext(ctx))
		}
	}
	return nil
}
