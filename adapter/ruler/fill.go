package ruler

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Late tells that samples of these times, in Unix ms, were stored now. Where rules have
// looked there already, recording rules look again. It is cheap and may be called for
// every push.
func (r *Ruler) Late(from, to int64) {
	now := time.Now()
	if r.cfg.FillWindow <= 0 || from <= 0 || from >= now.Add(-r.offset()).UnixMilli() {
		return
	}
	r.late.add(span{from, min(to, now.UnixMilli())}, now)
}

// fillLongest bounds how long late samples wait for more of them.
const fillLongest = 5 * time.Minute

// fill evaluates recording rules again, over what came late and what was asked for,
// until ctx is done.
func (r *Ruler) fill(ctx context.Context) {
	r.missed()
	tick := time.NewTicker(max(r.cfg.FillDelay/4, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-r.jobs:
			r.runJob(ctx, j)
		case <-tick.C:
			if spans := r.late.take(time.Now(), r.cfg.FillDelay, fillLongest); len(spans) > 0 {
				r.runJob(ctx, &job{spans: spans})
			}
		}
	}
}

// event is one evaluation of a group's recording rules.
type event struct {
	t     int64 // of its samples
	group *rules.Group
}

// missed notes what was not evaluated before the start: evaluations at that time look
// at samples from before it.
func (r *Ruler) missed() {
	d := r.cfg.Down
	if r.cfg.FillWindow <= 0 || !d.To.After(d.From) {
		return
	}
	offset := r.offset()
	for _, g := range r.manager.RuleGroups() {
		offset = max(offset, g.QueryOffset())
	}
	r.late.add(span{d.From.Add(-offset).UnixMilli(), d.To.UnixMilli()}, time.Now())
}

// runJob evaluates what a job asks for, in the order of time, at half of one core.
func (r *Ruler) runJob(ctx context.Context, j *job) {
	events, err := r.events(ctx, j)
	if err != nil {
		r.metrics.fillFailures.Inc()
		j.end(fmt.Errorf("find what to evaluate: %w", err))
		r.cfg.Logger.Error("recording rules are not evaluated over late samples", "err", err)
		return
	}
	j.begin(len(events))
	run, began := uint64(time.Now().UnixNano()), time.Now()
	changed := 0
	for i, e := range events {
		r.metrics.fillPending.Set(float64(len(events) - i))
		start := time.Now()
		n, err := r.evaluate(ctx, e, run)
		if ctx.Err() != nil {
			j.end(ctx.Err())
			return
		}
		if err != nil {
			r.metrics.fillFailures.Inc()
			r.cfg.Logger.Warn("a recording rule cannot be evaluated over late samples", "group", e.group.Name(), "time", time.UnixMilli(e.t).UTC(), "err", err)
		}
		changed += n
		r.metrics.filled.Add(float64(n))
		r.metrics.fillSlots.Inc()
		j.step(n)
		select {
		case <-ctx.Done():
		case <-time.After(time.Since(start)):
		}
	}
	r.metrics.fillPending.Set(0)
	j.end(nil)
	if changed > 0 {
		r.cfg.Logger.Info("recording rules were evaluated again", "evaluations", len(events), "samples_changed", changed, "took", time.Since(began).Round(time.Millisecond))
	}
}

// events lists the evaluations that late samples may change. What is older than the
// window is left out.
func (r *Ruler) events(ctx context.Context, j *job) ([]event, error) {
	groups := r.manager.RuleGroups()
	reach := reaches(groups, r.cfg.Lookback)
	now := time.Now()
	oldest := now.Add(-r.cfg.FillWindow).UnixMilli()
	var out []event
	for i, g := range groups {
		if !j.wants(g) || !records(g) {
			continue
		}
		last := g.EvalTimestamp(now.UnixNano()).Add(-g.QueryOffset()).UnixMilli()
		seen := map[int64]bool{}
		for _, s := range j.spans {
			from, to := max(s.from, oldest), min(s.to+reach[i].Milliseconds(), last)
			if from > to {
				continue
			}
			times, err := r.times(ctx, g, from, to)
			if err != nil {
				return nil, err
			}
			for _, t := range times {
				if !seen[t] {
					seen[t] = true
					out = append(out, event{t, g})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b event) int { return int(min(1, max(-1, a.t-b.t))) })
	return out, nil
}

func records(g *rules.Group) bool {
	return slices.ContainsFunc(g.Rules(), func(r rules.Rule) bool { _, ok := r.(*rules.RecordingRule); return ok })
}

// times are those of a group's samples in a span: where there are some, theirs, and
// elsewhere those it would have given.
func (r *Ruler) times(ctx context.Context, g *rules.Group, from, to int64) ([]int64, error) {
	have, err := r.recordedTimes(ctx, g, from, to)
	if err != nil {
		return nil, err
	}
	step := g.Interval().Milliseconds()
	slot := g.EvalTimestamp(time.UnixMilli(from).Add(g.QueryOffset()).UnixNano()).Add(-g.QueryOffset()).UnixMilli()
	out := slices.Clone(have)
	for ; slot <= to; slot += step {
		i, _ := slices.BinarySearch(have, slot)
		near := i < len(have) && have[i]-slot <= step/2 || i > 0 && slot-have[i-1] <= step/2
		if slot >= from && !near {
			out = append(out, slot)
		}
	}
	slices.Sort(out)
	return out, nil
}

// recordedTimes are the times at which a group's rules have recorded something.
func (r *Ruler) recordedTimes(ctx context.Context, g *rules.Group, from, to int64) ([]int64, error) {
	q, err := r.cfg.Store.Querier(from, to)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	times := map[int64]struct{}{}
	var it chunkenc.Iterator
	for _, rule := range g.Rules() {
		rec, ok := rule.(*rules.RecordingRule)
		if !ok {
			continue
		}
		set := q.Select(ctx, false, nil, recordMatchers(rec)...)
		for set.Next() {
			it = set.At().Iterator(it)
			for it.Next() != chunkenc.ValNone {
				times[it.AtT()] = struct{}{}
			}
			if err := it.Err(); err != nil {
				return nil, err
			}
		}
		if err := set.Err(); err != nil {
			return nil, err
		}
	}
	out := make([]int64, 0, len(times))
	for t := range times {
		out = append(out, t)
	}
	slices.Sort(out)
	return out, nil
}

// recordMatchers select what a rule records.
func recordMatchers(r *rules.RecordingRule) []*labels.Matcher {
	out := []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, r.Name())}
	r.Labels().Range(func(l labels.Label) {
		out = append(out, labels.MustNewMatcher(labels.MatchEqual, l.Name, l.Value))
	})
	return out
}

// evaluate evaluates a group's recording rules at one time, and stores what differs
// from what is stored. It returns how many samples that are.
func (r *Ruler) evaluate(ctx context.Context, e event, run uint64) (changed int, err error) {
	offset := e.group.QueryOffset()
	ts := time.UnixMilli(e.t).Add(offset)
	for _, rule := range e.group.Rules() {
		rec, ok := rule.(*rules.RecordingRule)
		if !ok {
			continue
		}
		v, evalErr := rec.Eval(ctx, offset, ts, r.query, r.cfg.ExternalURL, e.group.Limit())
		if evalErr != nil {
			err = fmt.Errorf("%s: %w", rec.Name(), evalErr)
			continue
		}
		n, storeErr := r.replace(ctx, rec, e.t, v, run)
		if storeErr != nil {
			err = fmt.Errorf("store %s: %w", rec.Name(), storeErr)
		}
		changed += n
	}
	return changed, err
}

// replace stores the samples of v that are not stored, and ends the series that have a
// sample at t and are not in v.
func (r *Ruler) replace(ctx context.Context, rec *rules.RecordingRule, t int64, v promql.Vector, run uint64) (n int, err error) {
	stored, err := r.storedAt(ctx, rec, t)
	if err != nil {
		return 0, err
	}
	app := r.cfg.Store.FillAppender(ctx, run)
	defer func() {
		if err != nil || n == 0 {
			_ = app.Rollback()
		}
	}()
	put := func(s promql.Sample) error {
		n++
		_, err := app.Append(0, s.Metric, 0, t, s.F, nil, s.H, storage.AOptions{})
		return err
	}
	for _, s := range v {
		key := s.Metric.String()
		old, ok := stored[key]
		delete(stored, key)
		if ok && same(old, s) {
			continue
		}
		if err := put(s); err != nil {
			return 0, err
		}
	}
	if !r.recordedOnce(rec) {
		clear(stored)
	}
	for _, old := range stored {
		if old.H == nil && value.IsStaleNaN(old.F) {
			continue
		}
		if err := put(promql.Sample{Metric: old.Metric, F: math.Float64frombits(value.StaleNaN)}); err != nil {
			return 0, err
		}
	}
	if n == 0 {
		return 0, nil
	}
	return n, app.Commit()
}

// storedAt are the samples of what a rule records at a time.
func (r *Ruler) storedAt(ctx context.Context, rec *rules.RecordingRule, t int64) (map[string]promql.Sample, error) {
	q, err := r.cfg.Store.Querier(t, t)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	out := map[string]promql.Sample{}
	set := q.Select(ctx, false, nil, recordMatchers(rec)...)
	for set.Next() {
		s := promql.Sample{Metric: set.At().Labels().Copy(), T: t}
		it := set.At().Iterator(nil)
		switch it.Next() {
		case chunkenc.ValFloat:
			_, s.F = it.At()
		case chunkenc.ValHistogram, chunkenc.ValFloatHistogram:
			_, s.H = it.AtFloatHistogram(nil)
		default:
			continue
		}
		out[s.Metric.String()] = s
	}
	return out, set.Err()
}

func same(a, b promql.Sample) bool {
	if a.H != nil || b.H != nil {
		return a.H != nil && b.H != nil && a.H.Equals(b.H)
	}
	return math.Float64bits(a.F) == math.Float64bits(b.F)
}

// recordedOnce tells that no other rule records the same series: then one that is
// missing in its result is gone.
func (r *Ruler) recordedOnce(rec *rules.RecordingRule) bool {
	n := 0
	for _, g := range r.manager.RuleGroups() {
		for _, rule := range g.Rules() {
			if other, ok := rule.(*rules.RecordingRule); ok && other.Name() == rec.Name() && labels.Equal(other.Labels(), rec.Labels()) {
				n++
			}
		}
	}
	return n == 1
}
