package query

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/storage"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/ticktier/ticktier/adapter/store"
)

// Raw is what a query needs of the store of raw samples. *store.Raw satisfies it.
// Native histograms are not folded, so that where buckets are read, raw samples are
// searched for series that have none too. A Raw that also has a method
// NativeHistograms() bool spares that while it says false.
type Raw interface {
	storage.Queryable
	storage.ChunkQueryable
	storage.ExemplarQueryable
	// MinTime is the time of the oldest raw sample in Unix milliseconds,
	// math.MaxInt64 when there is none.
	MinTime() int64
}

// Tier is what a query needs of one folded tier. *store.Buckets satisfies it.
type Tier interface {
	// Resolution is the width of a window in milliseconds.
	Resolution() int64
	// MinTime is the start of the oldest window held, math.MaxInt64 when none.
	MinTime() int64
	// Watermark is the time up to which every window is folded.
	Watermark() int64
	// Querier reads one aggregate, one sample per bucket at the last millisecond of
	// its window; see store.Agg. A query passes fill only for the Value aggregate.
	Querier(mint, maxt int64, agg store.Agg, fill int64) (storage.Querier, error)
}

// Metadata describes one metric, in the shape of the HTTP API.
type Metadata struct {
	Type string `json:"type"`
	Help string `json:"help"`
	Unit string `json:"unit"`
}

// Config says what an API answers from and how much a query may use. Zero limits
// mean Prometheus' defaults.
type Config struct {
	Raw   Raw
	Tiers []Tier // finest first

	// Metadata lists what is known of one metric or, with an empty name, of all.
	// May be nil.
	Metadata func(metric string) map[string][]Metadata

	LookbackDelta  time.Duration // 5 min
	Timeout        time.Duration // 2 min
	MaxSamples     int           // 50 million
	MaxConcurrency int           // 20
	// MaxSeries is how many series all selectors of a query, or a request, may select.
	// 200,000.
	MaxSeries int
	// MaxResponseBytes is about how large the answer to a query may be. 128 MiB.
	MaxResponseBytes int64
	// Clients bound what one client may use.
	Clients ClientLimits
	// LogSlowerThan is how long a request may take before it is logged; 0 for never.
	LogSlowerThan time.Duration
	// SubqueryStep is the step of a subquery that names none. 1 min.
	SubqueryStep time.Duration

	// CORSOrigin is a regular expression that all of a request's Origin must match.
	// Any origin when empty.
	CORSOrigin string
	cors       *regexp.Regexp

	Build   v1.PrometheusVersion
	Flags   map[string]string
	Runtime func() (v1.RuntimeInfo, error) // may be nil
	// TSDB answers /api/v1/status/tsdb, tsdb/blocks and walreplay. They are
	// unavailable when it is nil.
	TSDB v1.TSDBAdminStats
	// Rules answers /api/v1/rules and /api/v1/alerts. There are none when it is nil.
	Rules v1.RulesRetriever
	// Alertmanagers answers /api/v1/alertmanagers. There are none when it is nil.
	Alertmanagers v1.AlertmanagerRetriever

	Logger     *slog.Logger
	Registerer prometheus.Registerer // may be nil
	Gatherer   prometheus.Gatherer   // may be nil
}

// validate checks c and fills in the defaults.
func (c *Config) validate() error {
	switch {
	case c.Raw == nil:
		return errors.New("query: Raw is missing")
	case c.Logger == nil:
		return errors.New("query: Logger is missing")
	}
	prev := int64(0)
	for i, t := range c.Tiers {
		if t.Resolution() <= prev {
			return fmt.Errorf("query: Tiers[%d] has resolution %d ms; want the finest tier first", i, t.Resolution())
		}
		if prev > 0 && t.Resolution()%prev != 0 {
			return fmt.Errorf("query: Tiers[%d] has resolution %d ms, which is no multiple of the finer tier's %d ms", i, t.Resolution(), prev)
		}
		prev = t.Resolution()
	}
	c.defaults()
	var err error
	if c.cors, err = regexp.Compile("^(?:" + c.CORSOrigin + ")$"); err != nil {
		return fmt.Errorf("query: CORSOrigin: %w", err)
	}
	return nil
}

func (c *Config) defaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.LookbackDelta, 5*time.Minute)
	def(&c.Timeout, 2*time.Minute)
	def(&c.SubqueryStep, time.Minute)
	if c.MaxSamples <= 0 {
		c.MaxSamples = 50_000_000
	}
	if c.MaxConcurrency <= 0 {
		c.MaxConcurrency = 20
	}
	if c.MaxSeries <= 0 {
		c.MaxSeries = 200_000
	}
	if c.MaxResponseBytes <= 0 {
		c.MaxResponseBytes = 128 << 20
	}
	if c.CORSOrigin == "" {
		c.CORSOrigin = ".*"
	}
	if c.Metadata == nil {
		c.Metadata = func(string) map[string][]Metadata { return nil }
	}
	if c.Runtime == nil {
		c.Runtime = func() (v1.RuntimeInfo, error) { return v1.RuntimeInfo{ServerTime: time.Now().UTC()}, nil }
	}
	if c.Flags == nil {
		c.Flags = map[string]string{}
	}
}
