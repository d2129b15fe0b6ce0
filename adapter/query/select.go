package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/ticktier/ticktier/adapter/store"
)

// querier reads all tiers for one query or one request.
type querier struct {
	q          *Queryable
	mint, maxt int64 // inclusive
	srcs       []source
	plan       *planned // nil outside of a planned query

	mu   sync.Mutex
	subs []storage.Querier // to close

	count atomic.Int64 // series selected, outside of a planned query
}

// admit counts series against the limit of the query, or of the request.
func (q *querier) admit(total *atomic.Int64, n int) error {
	if limit := int64(q.q.maxSeries); limit > 0 && total.Add(int64(n)) > limit {
		return fmt.Errorf("the query selects more than %d series: add matchers, or raise --query.max-series", limit)
	}
	return nil
}

// Close releases what was opened.
func (q *querier) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, s := range q.subs {
		errs = append(errs, s.Close())
	}
	q.subs = nil
	return errors.Join(errs...)
}

// open opens a reader that lives until Close.
func (q *querier) open(src int, mint, maxt int64, agg store.Agg, fill int64) (storage.Querier, error) {
	sub, err := q.q.open(src, mint, maxt, agg, fill)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.subs = append(q.subs, sub)
	return sub, nil
}

// Select implements storage.Querier. Nothing is read before the set's first Next.
func (q *querier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	return &lazySet{init: func() ([]storage.Series, annotations.Annotations, error) {
		if q.plan == nil && hasReserved(ms) {
			return nil, nil, errReserved
		}
		if q.plan != nil {
			if s, rest := q.plan.lookup(ms); s != nil {
				return q.selectPlanned(ctx, s, rest)
			}
		}
		return q.selectPlain(ctx, hints, ms)
	}}
}

var errReserved = errors.New("the label \"" + reservedLabel + "\" is reserved")

// pull reads one column of stretch number i into j.
func (q *querier) pull(ctx context.Context, t *tally, j *joiner, i, col, cols int, st stretch, agg store.Agg, fill int64, hints storage.SelectHints, ms []*labels.Matcher) (annotations.Annotations, error) {
	sub, err := q.open(st.src, st.from, st.to-1, agg, fill)
	if err != nil {
		return nil, err
	}
	hints.Start, hints.End = st.from, st.to-1
	set := sub.Select(ctx, true, &hints, ms...)
	n := 0
	defer func() { t.series(i, n) }()
	for ; set.Next(); n++ {
		if n%128 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		s := set.At()
		p, fresh := j.get(s.Labels())
		if fresh {
			if err := q.admit(q.selected(), 1); err != nil {
				return nil, err
			}
		}
		if p.parts[i] == nil {
			p.parts[i] = make([]storage.Series, cols)
		}
		p.parts[i][col] = s
	}
	return set.Warnings(), set.Err()
}

// selectPlanned reads what the plan for s says.
func (q *querier) selectPlanned(ctx context.Context, s *selector, ms []*labels.Matcher) ([]storage.Series, annotations.Annotations, error) {
	var warns annotations.Annotations
	j := newJoiner(len(s.stretches))
	t := q.tally(q.plan.opts, s.fn, s.rng, s.stretches, ms)
	for i, st := range s.stretches {
		cols := s.cols
		if st.src == rawSource {
			cols = cols[:1] // there is one column of raw samples, whatever it is called
		}
		for c, agg := range cols {
			w, err := q.pull(ctx, t, j, i, c, len(s.cols), st, agg, 0, storage.SelectHints{Func: s.fn, Range: s.rng, Step: s.grid.step}, ms)
			warns.Merge(w)
			if err != nil {
				return nil, warns, err
			}
		}
	}
	w, err := q.pullUnfolded(ctx, j, s, ms)
	warns.Merge(w)
	if err != nil {
		return nil, warns, err
	}
	list := j.sorted()
	for i, st := range s.stretches {
		if slices.ContainsFunc(list, func(p *joined) bool { return p.parts[i] != nil }) {
			q.plan.read(s, st)
		}
	}
	out := make([]storage.Series, len(list))
	for i, p := range list {
		out[i] = &plannedSeries{joined: p, ctx: ctx, sel: s, plan: q.plan, q: q, tally: t}
	}
	return out, warns, nil
}

// pullUnfolded adds the raw samples of series that the buckets of a stretch do not
// have.
func (q *querier) pullUnfolded(ctx context.Context, j *joiner, s *selector, ms []*labels.Matcher) (annotations.Annotations, error) {
	var warns annotations.Annotations
	if !q.plan.opts.allowed(q.srcs)(rawSource) || !q.q.histograms() {
		return nil, nil
	}
	for i, st := range s.stretches {
		from := max(st.from, q.srcs[rawSource].from)
		if st.src == rawSource || from >= st.to {
			continue
		}
		sub, err := q.open(rawSource, from, st.to-1, store.Value, 0)
		if err != nil {
			return warns, err
		}
		set := sub.Select(ctx, true, &storage.SelectHints{Start: from, End: st.to - 1, Func: s.fn, Range: s.rng, Step: s.grid.step}, ms...)
		used := false
		for set.Next() {
			p, _ := j.get(set.At().Labels())
			if p.parts[i] != nil {
				continue
			}
			if p.unfolded == nil {
				p.unfolded = make([]storage.Series, len(p.parts))
			}
			p.unfolded[i] = set.At()
			used = true
		}
		warns.Merge(set.Warnings())
		if set.Err() != nil {
			return warns, set.Err()
		}
		if used {
			q.plan.read(s, stretch{src: rawSource})
		}
	}
	return warns, nil
}

// selectPlain reads for those who are not planned: the series API, remote read,
// federation and info(). Hints say which tier and which aggregate they want.
func (q *querier) selectPlain(ctx context.Context, hints *storage.SelectHints, ms []*labels.Matcher) ([]storage.Series, annotations.Annotations, error) {
	h := storage.SelectHints{Start: q.mint, End: q.maxt}
	if hints != nil {
		h = *hints
	}
	list := q.plainStretches(ctx, h)
	agg, fill := store.Value, q.q.lookback
	if h.Func != "series" && h.Range > 0 {
		agg, fill = plainAgg(h.Func), 0
	}
	var warns annotations.Annotations
	j := newJoiner(len(list))
	t := q.tally(q.options(ctx), h.Func, h.Range, list, ms)
	for i, st := range list {
		w, err := q.pull(ctx, t, j, i, 0, 1, st, agg, fill, h, ms)
		warns.Merge(w)
		if err != nil {
			return nil, warns, err
		}
	}
	var out []storage.Series
	for _, p := range j.sorted() {
		out = append(out, &plainSeries{joined: p, stretches: list, tally: t})
	}
	q.noteUse(ctx, list, j)
	if q.plan != nil && len(out) > 0 {
		q.plan.readPlain(list, h.Func)
	}
	return out, warns, nil
}

// options are those of the query's plan, or else of the request.
func (q *querier) options(ctx context.Context) *options {
	if q.plan != nil {
		return q.plan.opts
	}
	return optionsFrom(ctx)
}

// selected is where the series that are selected are counted.
func (q *querier) selected() *atomic.Int64 {
	if q.plan != nil {
		return &q.plan.selected
	}
	return &q.count
}

// noteUse notes the sources that gave series.
func (q *querier) noteUse(ctx context.Context, list []stretch, j *joiner) {
	opts := q.options(ctx)
	for _, group := range j.found {
		for _, p := range group {
			for i, st := range list {
				if p.parts[i] != nil {
					opts.use(st.src)
				}
			}
		}
	}
}

// plainStretches are what a reader that is not planned reads.
func (q *querier) plainStretches(ctx context.Context, h storage.SelectHints) []stretch {
	opts := q.options(ctx)
	c := choice{allowed: opts.allowed(q.srcs), holes: q.q.holes(q.srcs)}
	if h.Func == "series" {
		return q.every(c, h.Start, h.End)
	}
	for i := len(q.srcs) - 1; i > rawSource && q.plan == nil && h.Step > 0; i-- {
		res := q.srcs[i].res
		if res <= h.Step && (h.Range == 0 || 2*res <= h.Range) && c.allowed(i) {
			c.wanted = i
			break
		}
	}
	return clip(q.srcs, timeline(q.srcs, c), h.Start, h.End)
}

// every is all that any source has in [lo, hi], overlapping: for readers that look
// at labels only.
func (q *querier) every(c choice, lo, hi int64) []stretch {
	var out []stretch
	for i, s := range q.srcs {
		from, to := max(s.from, lo), min(s.to-1, hi)+1
		if c.allowed(i) && from < to {
			out = append(out, stretch{i, from, to})
		}
	}
	return out
}

// plainAgg is the aggregate that gives a remote engine the most of what fn asks.
func plainAgg(fn string) store.Agg {
	switch fn {
	case "rate", "increase", "irate", "resets":
		return store.Counter
	case "min_over_time":
		return store.Min
	case "max_over_time":
		return store.Max
	case "sum_over_time":
		return store.Sum
	case "last_over_time":
		return store.Last
	}
	return store.Value
}

// lazySet is a storage.SeriesSet that is made at the first Next.
type lazySet struct {
	init  func() ([]storage.Series, annotations.Annotations, error)
	list  []storage.Series
	i     int
	warns annotations.Annotations
	err   error
}

func (s *lazySet) Next() bool {
	if s.init != nil {
		s.list, s.warns, s.err = s.init()
		s.init, s.i = nil, -1
	}
	s.i++
	return s.err == nil && s.i < len(s.list)
}

func (s *lazySet) At() storage.Series                { return s.list[s.i] }
func (s *lazySet) Err() error                        { return s.err }
func (s *lazySet) Warnings() annotations.Annotations { return s.warns }
