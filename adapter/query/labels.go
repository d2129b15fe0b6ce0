package query

import (
	"context"
	"errors"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/ticktier/ticktier/adapter/store"
)

// LabelValues implements storage.LabelQuerier over every tier.
func (q *querier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return q.union(ctx, hints, ms, func(sub storage.Querier) ([]string, annotations.Annotations, error) {
		return sub.LabelValues(ctx, name, hints, ms...)
	})
}

// LabelNames implements storage.LabelQuerier over every tier.
func (q *querier) LabelNames(ctx context.Context, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return q.union(ctx, hints, ms, func(sub storage.Querier) ([]string, annotations.Annotations, error) {
		return sub.LabelNames(ctx, hints, ms...)
	})
}

// union asks every source that has something in the range.
func (q *querier) union(ctx context.Context, hints *storage.LabelHints, ms []*labels.Matcher, ask func(storage.Querier) ([]string, annotations.Annotations, error)) ([]string, annotations.Annotations, error) {
	if hasReserved(ms) {
		return nil, nil, errReserved
	}
	var (
		out   []string
		warns annotations.Annotations
		opts  = optionsFrom(ctx)
	)
	for _, st := range q.every(choice{allowed: opts.allowed(q.srcs)}, q.mint, q.maxt) {
		// The strings are copied by none; the reader lives until Close.
		sub, err := q.open(st.src, st.from, st.to-1, store.Value, 0)
		if err != nil {
			return nil, warns, err
		}
		list, w, err := ask(sub)
		warns.Merge(w)
		if err != nil {
			return nil, warns, err
		}
		if len(list) > 0 {
			opts.use(st.src)
		}
		out = append(out, list...)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	out, _ = hints.ApplyLimit(out)
	return out, warns, nil
}

// chunkQuerier gives what querier reads as chunks, for streamed remote read. Where
// that is raw samples only, the chunks are the store's own.
type chunkQuerier struct{ querier }

// Select implements storage.ChunkQuerier.
func (q *chunkQuerier) Select(ctx context.Context, sortSeries bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.ChunkSeriesSet {
	h := storage.SelectHints{Start: q.mint, End: q.maxt}
	if hints != nil {
		h = *hints
	}
	list := q.plainStretches(ctx, h)
	if len(list) != 1 || list[0].src != rawSource || hasReserved(ms) {
		return storage.NewSeriesSetToChunkSet(q.querier.Select(ctx, sortSeries, hints, ms...))
	}
	sub, err := q.q.raw.ChunkQuerier(max(q.mint, list[0].from), q.maxt)
	if err != nil {
		return storage.ErrChunkSeriesSet(err)
	}
	optionsFrom(ctx).use(rawSource)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.subs = append(q.subs, closeOnly{sub})
	return sub.Select(ctx, sortSeries, hints, ms...)
}

// closeOnly lets a chunk querier be closed with the others.
type closeOnly struct{ storage.ChunkQuerier }

func (closeOnly) Select(context.Context, bool, *storage.SelectHints, ...*labels.Matcher) storage.SeriesSet {
	return storage.ErrSeriesSet(errors.New("BUG: chunk querier read as samples"))
}
