package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"

	"github.com/ticktier/ticktier/adapter/config"
	"github.com/ticktier/ticktier/adapter/query"
	"github.com/ticktier/ticktier/adapter/ruler"
	"github.com/ticktier/ticktier/adapter/self"
	"github.com/ticktier/ticktier/adapter/store"
)

// ruleQueries is how many rules are evaluated at a time. They have places of their own,
// so that dashboards cannot delay an alert; the rules of a group take turns anyway.
const ruleQueries = 4

// heldFile is where alerts of silent devices outlast a restart, in the data directory.
const heldFile = "alerts-held.json"

// newRuler makes the ruler that evaluates over api's tiers and stores in raw. The
// configuration was found valid before.
func newRuler(cfg *config.Config, addr net.Addr, api *query.API, a *adapter, logger *slog.Logger, reg prometheus.Registerer) (*ruler.Ruler, error) {
	alertmanagers, err := cfg.Alertmanagers()
	if err != nil {
		return nil, err
	}
	client, err := cfg.AlertmanagerClient()
	if err != nil {
		return nil, err
	}
	external, err := cfg.ExternalLabels()
	if err != nil {
		return nil, err
	}
	link, err := externalURL(cfg, addr)
	if err != nil {
		return nil, err
	}
	if cfg.ExternalURL == "" && a.access.TLS() != nil {
		link.Scheme = "https"
	}
	return ruler.New(ruler.Config{
		Engine: api.NewEngine(ruleQueries), Queryable: api.Queryable(), Store: a.raw, Files: cfg.RuleFiles,
		Interval: time.Duration(cfg.RulesInterval), QueryOffset: time.Duration(cfg.RulesQueryOffset),
		Lag: a.fleet.Lag, MaxQueryOffset: time.Duration(cfg.RulesMaxOffset), Lookback: time.Duration(cfg.QueryLookback),
		FillWindow: time.Duration(min(cfg.RulesFillWindow, cfg.OutOfOrderWindow)), FillDelay: time.Duration(cfg.RulesFillDelay), Down: ruler.Span(a.fleet.Down()),
		Silent: a.fleet.Silent, HeldFile: filepath.Join(cfg.DataDir, heldFile),
		OutageTolerance: time.Duration(cfg.RulesOutage), ForGracePeriod: time.Duration(cfg.RulesGrace), ResendDelay: time.Duration(cfg.RulesResend),
		Alertmanagers: alertmanagers, HTTPClient: client, ExternalLabels: labels.FromMap(external), ExternalURL: link,
		StopTimeout: time.Duration(cfg.ShutdownTimeout), Logger: logger.With("part", "rules"), Registerer: reg,
	})
}

// externalURL is where people reach the adapter: as told, or the host's name with the
// port it listens on.
func externalURL(cfg *config.Config, addr net.Addr) (*url.URL, error) {
	if cfg.ExternalURL != "" {
		return url.Parse(cfg.ExternalURL)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}, nil
}

// newSelf makes what stores the adapter's own metrics: what the rules of rules/ are
// about, not every detail of the Go runtime.
func newSelf(cfg *config.Config, addr net.Addr, raw *store.Raw, logger *slog.Logger, reg *prometheus.Registry) (*self.Recorder, error) {
	link, err := externalURL(cfg, addr)
	if err != nil {
		return nil, err
	}
	return self.New(self.Config{
		Gatherer: reg, Store: raw, Registerer: reg, Logger: logger.With("part", "self"),
		Prefixes: []string{"ticktier_", "prometheus_rule_", "prometheus_notifications_", "process_"},
		Devices:  "ticktier_device_",
		Labels:   labels.FromStrings("job", "ticktier-adapter", "instance", link.Host),
	})
}

// reloadOnHangup reads the files with rules, tokens and users again at each SIGHUP. Who
// reads them logs how it went.
func (a *adapter) reloadOnHangup(ctx context.Context) error {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	defer signal.Stop(c)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c:
			_ = errors.Join(a.access.Reload(), a.ruler.Reload())
		}
	}
}

// ruling answers the query API's questions about rules and Alertmanagers. The ruler is
// made after the API, with its engine.
type ruling struct{ a *adapter }

func (r ruling) RuleGroups() []*rules.Group           { return r.a.ruler.RuleGroups() }
func (r ruling) AlertingRules() []*rules.AlertingRule { return r.a.ruler.AlertingRules() }
func (r ruling) Alertmanagers() []*url.URL            { return r.a.ruler.Alertmanagers() }
func (r ruling) DroppedAlertmanagers() []*url.URL     { return r.a.ruler.DroppedAlertmanagers() }
