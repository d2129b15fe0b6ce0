package self

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Store takes the samples, and tells what was stored before. *store.Raw satisfies it.
type Store interface {
	storage.AppendableV2
	storage.Queryable
}

// Config is what a Recorder needs.
type Config struct {
	Gatherer prometheus.Gatherer
	Store    Store
	// Prefixes are the beginnings of the names that are kept.
	Prefixes []string
	// Labels are put on every series, where it has no label of that name.
	Labels labels.Labels
	// Devices is the beginning of the names of metrics about devices, which get no Labels:
	// they are not of this adapter.
	Devices string
	// Interval is the time between two samples of a series; 15 s.
	Interval   time.Duration
	Logger     *slog.Logger          // may be nil
	Registerer prometheus.Registerer // may be nil
}

const defaultInterval = 15 * time.Second

// Recorder stores metrics as samples.
type Recorder struct {
	cfg      Config
	last     map[string]labels.Labels // series of the last round, by their text
	failures prometheus.Counter
}

// New returns a Recorder that does nothing before Run.
func New(c Config) (*Recorder, error) {
	if c.Gatherer == nil || c.Store == nil {
		return nil, errors.New("self: Gatherer or Store is missing")
	}
	if c.Interval <= 0 {
		c.Interval = defaultInterval
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{cfg: c, failures: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ticktier_adapter_self_failures_total", Help: "Rounds in which the adapter could not store its own metrics.",
	})}
	if c.Registerer != nil {
		c.Registerer.MustRegister(r.failures)
	}
	return r, nil
}

// Run stores a sample of each series at every multiple of Interval until ctx is done.
// A round that fails is counted, and reported when it is the first.
func (r *Recorder) Run(ctx context.Context) error {
	if err := r.recall(ctx, time.Now()); err != nil {
		r.cfg.Logger.Error("series of devices that were retired meanwhile do not end", "err", err)
	}
	failed := 0
	for {
		next := time.Now().Truncate(r.cfg.Interval).Add(r.cfg.Interval)
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		err := r.round(ctx, next.UnixMilli())
		switch {
		case err != nil && ctx.Err() == nil:
			r.failures.Inc()
			if failed++; failed == 1 {
				r.cfg.Logger.Error("the adapter's own metrics are not stored", "err", err)
			}
		case err == nil && failed > 0:
			r.cfg.Logger.Info("the adapter's own metrics are stored again", "failures", failed)
			failed = 0
		}
	}
}

// memory is how far back a series is looked for that may have to end: one that is older
// has ended by itself for every query with the usual look-back.
const memory = 10 * time.Minute

// recall makes the series about devices that were stored lately those of the last
// round, so that those of a device that is gone end after a restart too.
func (r *Recorder) recall(ctx context.Context, now time.Time) error {
	if r.cfg.Devices == "" {
		return nil
	}
	q, err := r.cfg.Store.Querier(now.Add(-memory).UnixMilli(), now.UnixMilli())
	if err != nil {
		return fmt.Errorf("look for the series of devices: %w", err)
	}
	defer q.Close()
	m, err := labels.NewMatcher(labels.MatchRegexp, model.MetricNameLabel, regexp.QuoteMeta(r.cfg.Devices)+".*")
	if err != nil {
		return err
	}
	r.last = map[string]labels.Labels{}
	set := q.Select(ctx, false, nil, m)
	var it chunkenc.Iterator
	for set.Next() {
		it = set.At().Iterator(it)
		ended := true
		for it.Next() == chunkenc.ValFloat {
			_, v := it.At()
			ended = value.IsStaleNaN(v)
		}
		if l := set.At().Labels(); !ended && it.Err() == nil {
			r.last[l.String()] = l.Copy()
		}
	}
	return set.Err()
}

// round stores what is gathered now as of t. What could be gathered and stored is,
// even where something could not.
func (r *Recorder) round(ctx context.Context, t int64) error {
	families, gatherErr := r.cfg.Gatherer.Gather()
	app := r.cfg.Store.AppenderV2(ctx)
	now := make(map[string]labels.Labels, len(r.last))
	var errs []error
	put := func(l labels.Labels, v float64) {
		if _, err := app.Append(0, l, 0, t, v, nil, nil, storage.AOptions{}); err != nil {
			errs = append(errs, fmt.Errorf("store %s: %w", l, err))
		}
	}
	for _, f := range families {
		if !r.keeps(f.GetName()) {
			continue
		}
		own := r.cfg.Labels
		if r.cfg.Devices != "" && strings.HasPrefix(f.GetName(), r.cfg.Devices) {
			own = labels.EmptyLabels()
		}
		for _, s := range samples(f, own) {
			now[s.labels.String()] = s.labels
			put(s.labels, s.v)
		}
	}
	// A family that could not be gathered may come back: nothing ends in such a round.
	for key, l := range r.last {
		if _, ok := now[key]; ok {
			continue
		}
		if gatherErr != nil {
			now[key] = l
			continue
		}
		put(l, math.Float64frombits(value.StaleNaN))
	}
	if err := app.Commit(); err != nil {
		return errors.Join(gatherErr, fmt.Errorf("store the adapter's own metrics: %w", err))
	}
	r.last = now
	if len(errs) > 1 {
		errs[0] = fmt.Errorf("%w, and %d more", errs[0], len(errs)-1)
		errs = errs[:1]
	}
	return errors.Join(gatherErr, errors.Join(errs...))
}

func (r *Recorder) keeps(name string) bool {
	for _, p := range r.cfg.Prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
