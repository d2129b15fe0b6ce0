package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// FillLabel marks series of samples that replace others: what a rule gave when it was
// evaluated again. Its value is the run that replaced them, in hexadecimal with all 16
// digits, so that a later run is greater. Queries see the series without it, each
// sample as the latest run left it; one that asks for the label itself sees what is
// stored.
const FillLabel = "__filled__"

// fills are the names of metrics that have such series, so that reading any other
// costs nothing.
type fills struct {
	mu    sync.Mutex // held to change names
	names atomic.Pointer[map[string]struct{}]
}

func (f *fills) has() bool {
	m := f.names.Load()
	return m != nil && len(*m) > 0
}

// add makes names known. It must be called before their samples are committed.
func (f *fills) add(names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.names.Load()
	next := make(map[string]struct{}, len(names))
	if old != nil {
		for n := range *old {
			next[n] = struct{}{}
		}
	}
	for _, n := range names {
		next[n] = struct{}{}
	}
	f.names.Store(&next)
}

// match tells whether a selector may match a series that is marked.
func (f *fills) match(ms []*labels.Matcher) bool {
	m := f.names.Load()
	if m == nil || len(*m) == 0 || slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return m.Name == FillLabel }) {
		return false
	}
	for name := range *m {
		if matchesName(ms, name) {
			return true
		}
	}
	return false
}

func matchesName(ms []*labels.Matcher, name string) bool {
	for _, m := range ms {
		if m.Name == model.MetricNameLabel && !m.Matches(name) {
			return false
		}
	}
	return true
}

// loadFills finds the names that have marked series.
func (r *Raw) loadFills(ctx context.Context) error {
	q, err := r.db.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		return fmt.Errorf("look for what rules replaced: %w", err)
	}
	defer q.Close()
	names, _, err := q.LabelValues(ctx, model.MetricNameLabel, nil, labels.MustNewMatcher(labels.MatchNotEqual, FillLabel, ""))
	if err != nil {
		return fmt.Errorf("look for what rules replaced: %w", err)
	}
	if len(names) > 0 {
		for i, n := range names {
			names[i] = string([]byte(n)) // the querier's own until it is closed
		}
		r.fills.add(names)
	}
	return nil
}

// FillAppender is an appender whose samples replace those of the same series and time,
// also where they are older than the newest. run must be greater than that of any
// samples that are to be replaced. Like AppenderV2's, its samples mark windows that are
// folded already.
func (r *Raw) FillAppender(ctx context.Context, run uint64) storage.AppenderV2 {
	return &fillAppender{AppenderV2: r.AppenderV2(ctx), fills: &r.fills, run: fmt.Sprintf("%016x", run)}
}

type fillAppender struct {
	storage.AppenderV2
	fills   *fills
	run     string
	builder labels.Builder
	names   []string
}

func (a *fillAppender) Append(_ storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options) (storage.SeriesRef, error) {
	a.builder.Reset(ls)
	a.builder.Set(FillLabel, a.run)
	if name := ls.Get(model.MetricNameLabel); !slices.Contains(a.names, name) {
		a.names = append(a.names, name)
	}
	return a.AppenderV2.Append(0, a.builder.Labels(), st, t, v, h, fh, opts)
}

// Commit makes the names known first: a query that sees the samples sees the names.
func (a *fillAppender) Commit() error {
	a.fills.add(a.names)
	return a.AppenderV2.Commit()
}

// filledQuerier shows series as the latest runs left them.
type filledQuerier struct {
	storage.Querier
	fills *fills
}

func (q filledQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	if !q.fills.match(ms) {
		return q.Querier.Select(ctx, sorted, hints, ms...)
	}
	with := func(t labels.MatchType) []*labels.Matcher {
		own := labels.MustNewMatcher(t, FillLabel, "")
		if isAll(ms) {
			return []*labels.Matcher{own}
		}
		return append(slices.Clip(ms), own)
	}
	replaced, err := groupRuns(q.Querier.Select(ctx, true, hints, with(labels.MatchNotEqual)...))
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	return &filledSet{SeriesSet: q.Querier.Select(ctx, true, hints, with(labels.MatchEqual)...), rest: replaced}
}

// isAll tells that a selector is the one for every series, ""="", beside which the TSDB
// takes no other matcher.
func isAll(ms []*labels.Matcher) bool {
	return len(ms) == 1 && ms[0].Name == "" && ms[0].Value == "" && ms[0].Type == labels.MatchEqual
}

func (q filledQuerier) LabelNames(ctx context.Context, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	names, w, err := q.Querier.LabelNames(ctx, hints, ms...)
	return slices.DeleteFunc(names, func(n string) bool { return n == FillLabel }), w, err
}

// filledChunkQuerier is the same for chunks, which are made anew where anything is
// replaced.
type filledChunkQuerier struct {
	storage.ChunkQuerier
	samples func() (storage.Querier, error)
	fills   *fills
	opened  []storage.Querier
}

func (q *filledChunkQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.ChunkSeriesSet {
	if !q.fills.match(ms) {
		return q.ChunkQuerier.Select(ctx, sorted, hints, ms...)
	}
	s, err := q.samples()
	if err != nil {
		return storage.ErrChunkSeriesSet(err)
	}
	q.opened = append(q.opened, s)
	return storage.NewSeriesSetToChunkSet(s.Select(ctx, sorted, hints, ms...))
}

func (q *filledChunkQuerier) LabelNames(ctx context.Context, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	names, w, err := q.ChunkQuerier.LabelNames(ctx, hints, ms...)
	return slices.DeleteFunc(names, func(n string) bool { return n == FillLabel }), w, err
}

func (q *filledChunkQuerier) Close() error {
	err := q.ChunkQuerier.Close()
	for _, s := range q.opened {
		if e := s.Close(); err == nil {
			err = e
		}
	}
	return err
}
