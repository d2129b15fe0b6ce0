package receive

import (
	"cmp"
	"errors"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// addHistograms appends the native histograms of the series at hand in the order in
// which they came.
func (b *batch) addHistograms(q *request, r *resolved) error {
	prev := b.seen.of(r)
	b.seen.rich = true
	for _, at := range b.series.histograms {
		h := &b.hist
		if err := h.decode(q.bytes(at), q.proto); err != nil {
			return malformed(b.index, err)
		}
		if b.room -= h.size() / 4; b.room < 0 {
			return limitError{"the request has more histogram buckets than one request may have"}
		}
		if why := b.timely(h.t); why != reasonNone {
			b.refuse(why, 1, h.t)
			continue
		}
		ih, fh, err := h.model()
		if err != nil {
			b.refused.add(reasonHistogram, 1, func() string {
				return place(b.index, b.pairs, h.t) + ": " + clip(err.Error(), maxExampleBytes)
			})
			continue
		}
		if prev.kind != kindNone && h.t <= prev.t {
			if h.t == prev.t && (ih != nil && ih.Equals(prev.h) || fh != nil && fh.Equals(prev.fh)) {
				b.histograms++
				continue
			}
			if h.t == prev.t || b.inOrder {
				b.refuse(contradiction(h.t == prev.t), 1, h.t)
				continue
			}
		}
		ref, err := b.app.Append(r.seriesRef(), r.ls, start(h.st, h.t), h.t, 0, ih, fh, storage.AOptions{})
		if err != nil && !errors.Is(err, (*storage.AppendPartialError)(nil)) {
			why, ok := refusalOf(err)
			if !ok {
				return storeError{err}
			}
			b.refuse(why, 1, h.t)
			continue
		}
		r.setRef(ref)
		if prev.kind == kindNone || h.t > prev.t {
			prev.kind, prev.t, prev.h, prev.fh = kindHistogram, h.t, ih, fh
		}
		b.histograms++
		b.stored(h.t)
	}
	return nil
}

// addExemplars appends the exemplars of the series at hand, oldest first.
func (b *batch) addExemplars(q *request, r *resolved) error {
	list := b.ordered[:0]
	for _, at := range b.series.exemplars {
		e := &b.raw
		if err := e.decode(q.bytes(at), q.proto); err != nil {
			return malformed(b.index, err)
		}
		ls, why := b.exemplarLabels(q, e)
		if why == reasonNone {
			why = b.timely(e.t)
		}
		if why != reasonNone {
			b.refuse(why, 1, e.t)
			continue
		}
		list = append(list, exemplar.Exemplar{Labels: ls, Value: e.v, Ts: e.t, HasTs: true})
	}
	b.ordered = list
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b exemplar.Exemplar) int { return cmp.Compare(a.Ts, b.Ts) })
	app, ok := b.app.(storage.ExemplarAppenderV2)
	if !ok {
		b.refuse(reasonExemplar, len(list), 0)
		return nil
	}
	_, err := app.AppendExemplars(r.seriesRef(), r.ls, list)
	bad := badExemplars(err, len(list))
	if bad > 0 {
		b.refused.add(reasonExemplar, bad, func() string {
			return place(b.index, b.pairs, 0) + ": " + clip(err.Error(), maxExampleBytes)
		})
	}
	b.exemplars += len(list) - bad
	return nil
}

// exemplarLabels returns the labels of an exemplar, sorted. They overwrite b.pairs
// only for as long as they are looked at.
func (b *batch) exemplarLabels(q *request, e *rawExemplar) (labels.Labels, reason) {
	own := b.pairs
	b.pairs = b.spare
	defer func() { b.pairs, b.spare = own, b.pairs }()
	if _, why := b.collect(q, e.refs, e.pairs); why != reasonNone {
		return labels.EmptyLabels(), why
	}
	b.canonical()
	if _, why := checkLabels(b.pairs); why != reasonNone {
		return labels.EmptyLabels(), why
	}
	return b.build(), reasonNone
}

// badExemplars tells how many of n exemplars an error is about.
func badExemplars(err error, n int) int {
	if err == nil {
		return 0
	}
	var partial *storage.AppendPartialError
	if !errors.As(err, &partial) {
		return n
	}
	indices := make(map[int]struct{}, len(partial.ExemplarErrors))
	for _, e := range partial.ExemplarErrors {
		indices[e.Index] = struct{}{}
	}
	return min(n, len(indices))
}
