package ruler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// Ruler evaluates rules. Its methods are safe for concurrent use.
type Ruler struct {
	cfg      Config
	manager  *rules.Manager
	notifier *notifier.Manager
	targets  map[string][]*targetgroup.Group
	abort    context.CancelFunc // cuts off what is under way
	metrics  *metrics

	query  rules.QueryFunc
	follow follower
	late   late
	held   held
	jobs   chan *job // evaluations that clients asked for

	jobsMu sync.Mutex
	jobID  int    // guarded by jobsMu
	known  []*job // guarded by jobsMu

	mu      sync.Mutex
	loader  *loader // its set is guarded by mu
	stopped bool    // guarded by mu
}

// New makes a Ruler. It reads no file and starts no evaluation before Run.
func New(c Config) (*Ruler, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	abort, cancel := context.WithCancel(context.Background())
	r := &Ruler{cfg: c, abort: cancel, loader: &loader{parser: parser.NewParser(parser.Options{})}}
	r.query, r.jobs = rules.EngineQueryFunc(c.Engine, c.Queryable), make(chan *job, maxWaiting)
	r.follow = follower{least: r.cfg.QueryOffset, most: r.cfg.MaxQueryOffset, lag: r.cfg.Lag}
	r.held = held{silent: r.cfg.Silent, resend: r.cfg.ResendDelay, path: r.cfg.HeldFile, logger: r.cfg.Logger}
	r.held.load()
	r.metrics = newMetrics(c.Registerer, r)
	var err error
	if r.notifier, r.targets, err = newNotifier(&r.cfg, abort); err != nil {
		cancel()
		return nil, fmt.Errorf("set up notifications: %w", err)
	}
	r.manager = rules.NewManager(&rules.ManagerOptions{
		NameValidationScheme:   model.UTF8Validation,
		ExternalURL:            c.ExternalURL,
		QueryFunc:              r.query,
		NotifyFunc:             notify(r.notifier, r.cfg.ExternalURL, &r.held),
		Context:                abort,
		AppendableV2:           c.Store,
		Queryable:              c.Store,
		Logger:                 r.cfg.Logger,
		Registerer:             c.Registerer,
		OutageTolerance:        r.cfg.OutageTolerance,
		ForGracePeriod:         r.cfg.ForGracePeriod,
		ResendDelay:            r.cfg.ResendDelay,
		GroupLoader:            r.loader,
		DefaultRuleQueryOffset: r.offset,
		Parser:                 r.loader.parser,
	})
	return r, nil
}

// Run loads the rules and evaluates them until ctx is done. A file that is bad at the
// start is left out and reported; the others are evaluated. Evaluations and
// notifications under way are given StopTimeout. Run may be called once.
func (r *Ruler) Run(ctx context.Context) error {
	defer r.abort()
	var wg sync.WaitGroup
	targets := make(chan map[string][]*targetgroup.Group, 1)
	targets <- r.targets
	wg.Go(func() { r.notifier.Run(targets) })

	r.mu.Lock()
	set, err := read(r.cfg.Files, r.loader.parser)
	if err != nil {
		r.cfg.Logger.Error("bad rule files are left out", "err", err)
	}
	err = errors.Join(err, r.apply(set))
	r.metrics.loaded(err)
	r.mu.Unlock()
	wg.Go(r.manager.Run)
	wg.Go(func() { r.fill(ctx) })
	wg.Go(func() { r.held.run(ctx, r.notifier) })

	<-ctx.Done()
	cut := time.AfterFunc(r.cfg.StopTimeout, r.abort)
	defer cut.Stop()
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.manager.Stop()
	r.notifier.Stop()
	wg.Wait()
	return nil
}

// offset is how far behind its time a group looks that says nothing itself.
func (r *Ruler) offset() time.Duration { return r.follow.offset(time.Now()) }

// errStopped answers a reload that comes after the stop.
var errStopped = errors.New("the ruler is stopping")

// Reload reads the rule files again. If any is bad, the rules stay as they are and the
// error says what is wrong with each.
func (r *Ruler) Reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return errStopped
	}
	set, err := read(r.cfg.Files, r.loader.parser)
	if err == nil && len(set) == 0 && len(r.loader.set) > 0 {
		err = fmt.Errorf("no rule file is there any more (%s): to have no rules, leave one with `groups: []`", strings.Join(r.cfg.Files, ", "))
	}
	if err == nil {
		err = r.apply(set)
	}
	r.metrics.loaded(err)
	if err != nil {
		r.cfg.Logger.Error("rules stay as they were", "err", err)
		return fmt.Errorf("the rules stay as they were: %w", err)
	}
	return nil
}

// apply makes set the rules that are evaluated; mu is held. Groups that did not change
// go on undisturbed, series of those that are gone end with staleness markers.
func (r *Ruler) apply(set ruleSet) error {
	old := r.loader.set
	r.loader.set = set
	if err := r.manager.Update(r.cfg.Interval, set.files(), r.cfg.ExternalLabels, r.cfg.ExternalURL.String(), nil); err != nil {
		r.loader.set = old
		return fmt.Errorf("apply rules: %w", err)
	}
	groups, n := set.size()
	r.cfg.Logger.Info("rules loaded", "files", len(set), "groups", groups, "rules", n)
	for _, p := range Unmatched(r.cfg.Files) {
		r.cfg.Logger.Warn("no rule file matches", "pattern", p)
	}
	return nil
}

// ServeHTTP answers POST /-/reload.
func (r *Ruler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if err := r.Reload(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r.mu.Lock()
	groups, n := r.loader.set.size()
	r.mu.Unlock()
	fmt.Fprintf(w, "%d rules in %d groups are loaded.\n", n, groups)
}

// RuleGroups and AlertingRules are what is evaluated, for /api/v1/rules and
// /api/v1/alerts.
func (r *Ruler) RuleGroups() []*rules.Group { return r.manager.RuleGroups() }

// AlertingRules implements the same interface as RuleGroups.
func (r *Ruler) AlertingRules() []*rules.AlertingRule { return r.manager.AlertingRules() }

// Alertmanagers are the addresses that alerts are sent to.
func (r *Ruler) Alertmanagers() []*url.URL { return r.notifier.Alertmanagers() }

// DroppedAlertmanagers implements the same interface as Alertmanagers; there are none.
func (r *Ruler) DroppedAlertmanagers() []*url.URL { return r.notifier.DroppedAlertmanagers() }

type metrics struct {
	good, at                        prometheus.Gauge
	filled, fillSlots, fillFailures prometheus.Counter
	fillPending                     prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, r *Ruler) *metrics {
	m := &metrics{
		good: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ticktier_adapter_rules_load_successful",
			Help: "Whether every rule file was good when they were read last."}),
		at: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ticktier_adapter_rules_load_success_timestamp_seconds",
			Help: "When every rule file was good last."}),
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "ticktier_adapter_rules_" + name, Help: help})
	}
	m.filled = counter("filled_samples_total", "Results of recording rules that were stored or changed after their time, because samples came late.")
	m.fillSlots = counter("fill_evaluations_total", "Evaluations of groups after their time, because samples came late or nothing was evaluated.")
	m.fillFailures = counter("fill_failures_total", "Evaluations after their time that failed.")
	m.fillPending = prometheus.NewGauge(prometheus.GaugeOpts{Name: "ticktier_adapter_rules_fill_pending_evaluations",
		Help: "Evaluations after their time that are still to be made."})
	if reg != nil {
		reg.MustRegister(m.good, m.at, m.filled, m.fillSlots, m.fillFailures, m.fillPending,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ticktier_adapter_rules_query_offset_seconds",
				Help: "How far behind its time a group looks that says nothing itself."}, func() float64 { return r.offset().Seconds() }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ticktier_adapter_rules_held_alerts",
				Help: "Alerts that are told as firing because their device is silent."}, func() float64 { return float64(r.held.len()) }))
	}
	return m
}

// loaded notes how a load went.
func (m *metrics) loaded(err error) {
	if err != nil {
		m.good.Set(0)
		return
	}
	m.good.Set(1)
	m.at.SetToCurrentTime()
}
