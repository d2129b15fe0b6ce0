package query

import (
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// joined is one series with what each stretch has of it.
type joined struct {
	lset  labels.Labels
	parts [][]storage.Series // by stretch, then by column; nil where there is nothing
	// unfolded are raw samples in stretches of buckets that do not have the series:
	// native histograms. Nil where there are none.
	unfolded []storage.Series
}

// raw is what the series has of stretch i as raw samples, if anything.
func (p *joined) raw(i int, st stretch) storage.Series {
	switch {
	case p.parts[i] == nil && p.unfolded != nil:
		return p.unfolded[i]
	case p.parts[i] != nil && st.src == rawSource:
		return p.parts[i][0]
	}
	return nil
}

// joiner collects joined series.
type joiner struct {
	stretches int
	found     map[uint64][]*joined
}

func newJoiner(stretches int) *joiner {
	return &joiner{stretches: stretches, found: map[uint64][]*joined{}}
}

// get finds or makes the series with these labels, and says whether it is new.
func (j *joiner) get(lset labels.Labels) (s *joined, fresh bool) {
	h := lset.Hash()
	for _, s := range j.found[h] {
		if labels.Equal(s.lset, lset) {
			return s, false
		}
	}
	s = &joined{lset: lset, parts: make([][]storage.Series, j.stretches)}
	j.found[h] = append(j.found[h], s)
	return s, true
}

// sorted are the series by their labels.
func (j *joiner) sorted() []*joined {
	var out []*joined
	for list := range maps.Values(j.found) {
		out = append(out, list...)
	}
	slices.SortFunc(out, func(a, b *joined) int { return labels.Compare(a.lset, b.lset) })
	return out
}
