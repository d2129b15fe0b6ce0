package query

import (
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/ticktier/ticktier/adapter/store"
)

// estimateSums fills in the sums that a store does not keep, which are those of a
// counter: the mean of the first and the last sample of a bucket, times their
// number.
func (s *plannedSeries) estimateSums(bs []bucket, st stretch, res int64) error {
	lacks := func(b bucket) bool { return !b.hasSum && b.hists == nil }
	if !slices.ContainsFunc(bs, lacks) {
		return nil
	}
	col, err := s.column(st, store.Counter)
	if err != nil || col == nil {
		return err
	}
	ends, _, err := s.plan.q.readBuckets(nil, []store.Agg{store.Counter}, []storage.Series{col}, res)
	if err != nil {
		return err
	}
	k := 0
	for i := range bs {
		b := &bs[i]
		for k < len(ends) && ends[k].start < b.start {
			k++
		}
		if lacks(*b) && k < len(ends) && ends[k].start == b.start {
			b.sum = (ends[k].first + ends[k].last) / 2 * b.count
		}
	}
	s.plan.warn(lackWarning(s.sel.fn, s.plan.q.names[st.src]))
	return nil
}

// column reads one more aggregate of this series in a stretch.
func (s *plannedSeries) column(st stretch, agg store.Agg) (storage.Series, error) {
	sub, err := s.q.open(st.src, st.from, st.to-1, agg, 0)
	if err != nil {
		return nil, err
	}
	var ms []*labels.Matcher
	s.lset.Range(func(l labels.Label) {
		ms = append(ms, labels.MustNewMatcher(labels.MatchEqual, l.Name, l.Value))
	})
	set := sub.Select(s.ctx, true, &storage.SelectHints{Start: st.from, End: st.to - 1}, ms...)
	for set.Next() {
		if found := set.At(); labels.Equal(found.Labels(), s.lset) {
			return found, nil
		}
	}
	return nil, set.Err()
}
