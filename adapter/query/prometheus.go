package query

import (
	"context"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/util/features"
	"github.com/prometheus/prometheus/util/notifications"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// This file holds what changes with every release of Prometheus: how its engine
// and its API are made.

// Limits of remote read, which are Prometheus' defaults.
const (
	readSampleLimit = 50_000_000
	readConcurrency = 10
	readFrameBytes  = 1 << 20
)

func newEngine(c Config, p parser.Parser) *Engine {
	step := func(int64) int64 { return ms(c.SubqueryStep) }
	return &Engine{
		inner: promql.NewEngine(promql.EngineOpts{
			Logger:                   c.Logger,
			Reg:                      c.Registerer,
			MaxSamples:               c.MaxSamples,
			Timeout:                  c.Timeout,
			ActiveQueryTracker:       make(slots, c.MaxConcurrency),
			LookbackDelta:            c.LookbackDelta,
			NoStepSubqueryIntervalFn: step,
			EnableAtModifier:         true,
			EnableNegativeOffset:     true,
			EnablePerStepStats:       true,
			Parser:                   p,
		}),
		subStep: step,
	}
}

func newPrometheusAPI(c Config, e *Engine, q *Queryable, p parser.Parser, ready func(http.HandlerFunc) http.HandlerFunc) *v1.API {
	gatherer := c.Gatherer
	if gatherer == nil {
		gatherer = prometheus.Gatherers{}
	}
	var rr v1.RulesRetriever = nothing{}
	if c.Rules != nil {
		rr = c.Rules
	}
	var ar v1.AlertmanagerRetriever = nothing{}
	if c.Alertmanagers != nil {
		ar = c.Alertmanagers
	}
	return v1.NewAPI(
		e,
		q,
		nil, // apV2: writes are received elsewhere
		c.Raw,
		func(context.Context) v1.ScrapePoolsRetriever { return nothing{} },
		func(context.Context) v1.TargetRetriever { return nothing{} },
		func(context.Context) v1.AlertmanagerRetriever { return ar },
		func() config.Config { return config.DefaultConfig },
		c.Flags,
		v1.GlobalURLOptions{},
		ready,
		c.TSDB,
		"",    // dbDir
		false, // enableAdmin
		false, // enableSearch
		0,     // maxSearchLimit
		c.Logger,
		func(context.Context) v1.RulesRetriever { return rr },
		readSampleLimit,
		readConcurrency,
		readFrameBytes,
		false, // isAgent
		c.cors,
		c.Runtime,
		&c.Build,
		func() []notifications.Notification { return []notifications.Notification{} },
		func() (<-chan notifications.Notification, func(), bool) { return nil, nil, false },
		gatherer,
		c.Registerer,
		renderStats,
		false, // rwEnabled
		nil,   // acceptRemoteWriteProtoMsgs
		false, // otlpEnabled
		false, // otlpDeltaToCumulative
		false, // otlpNativeDeltaIngestion
		c.LookbackDelta,
		false, // enableTypeAndUnitLabels
		false, // appendMetadata
		nil,   // overrideErrorCode
		features.NewRegistry(),
		v1.OpenAPIOptions{Version: c.Build.Version},
		p,
		false, // enableQueryCost
		c.Timeout,
	)
}

// nothing answers what an adapter has none of: it does not scrape, and has no rules
// or Alertmanagers unless told.
type nothing struct{}

func (nothing) ScrapePools() []string                       { return []string{} }
func (nothing) TargetsActive() map[string][]*scrape.Target  { return nil }
func (nothing) TargetsDropped() map[string][]*scrape.Target { return nil }
func (nothing) TargetsDroppedCounts() map[string]int        { return map[string]int{} }
func (nothing) Alertmanagers() []*url.URL                   { return nil }
func (nothing) DroppedAlertmanagers() []*url.URL            { return nil }
func (nothing) RuleGroups() []*rules.Group                  { return nil }
func (nothing) AlertingRules() []*rules.AlertingRule        { return nil }
func (nothing) ScrapePoolConfig(string) (*config.ScrapeConfig, error) {
	return nil, errNoScrapePools
}

// newParser makes the parser of every expression. Experimental functions are off,
// as they are in Prometheus unless asked for.
func newParser() parser.Parser { return parser.NewParser(parser.Options{}) }
