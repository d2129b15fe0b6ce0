package store

import (
	"maps"
	"slices"
	"sort"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/ticktier/ticktier/adapter/fold"
)

// memory holds the buckets that are in no block yet. Buckets guards it.
type memory struct {
	byHash map[uint64][]*memSeries
	byName map[string][]*memSeries
}

// memSeries is one series; its buckets are in time order, ends of series
// included. The slice is replaced, never written to below its length, so a reader
// may keep what it saw.
type memSeries struct {
	lset    labels.Labels
	buckets []fold.Bucket
}

func newMemory() *memory {
	return &memory{byHash: map[uint64][]*memSeries{}, byName: map[string][]*memSeries{}}
}

// put replaces the buckets of a series in [from, to) with bs.
func (m *memory) put(lset labels.Labels, from, to int64, bs []fold.Bucket) {
	s := m.series(lset)
	i := sort.Search(len(s.buckets), func(i int) bool { return s.buckets[i].Start >= from })
	j := sort.Search(len(s.buckets), func(i int) bool { return s.buckets[i].Start >= to })
	if i == len(s.buckets) {
		s.buckets = append(s.buckets, bs...)
		return
	}
	s.buckets = slices.Concat(s.buckets[:i], fuller(s.buckets[i:j], bs), s.buckets[j:])
}

// fuller merges two runs of buckets of the same windows and keeps, of two for one
// window, the one with more samples, or the second: raw samples that are gone
// never take a bucket with them.
func fuller(old, fresh []fold.Bucket) []fold.Bucket {
	out := make([]fold.Bucket, 0, max(len(old), len(fresh)))
	for len(old) > 0 && len(fresh) > 0 {
		switch o, f := old[0], fresh[0]; {
		case o.Start < f.Start:
			out, old = append(out, o), old[1:]
		case o.Start > f.Start:
			out, fresh = append(out, f), fresh[1:]
		case o.Count > f.Count:
			out, old, fresh = append(out, o), old[1:], fresh[1:]
		default:
			out, old, fresh = append(out, f), old[1:], fresh[1:]
		}
	}
	return append(append(out, old...), fresh...)
}

// series finds or makes a series.
func (m *memory) series(lset labels.Labels) *memSeries {
	h := lset.Hash()
	for _, s := range m.byHash[h] {
		if labels.Equal(s.lset, lset) {
			return s
		}
	}
	s := &memSeries{lset: lset.Copy()}
	m.byHash[h] = append(m.byHash[h], s)
	name := s.lset.Get(model.MetricNameLabel)
	m.byName[name] = append(m.byName[name], s)
	return s
}

// match calls yield for every series that the matchers select.
func (m *memory) match(ms []*labels.Matcher, yield func(*memSeries)) {
	one := func(list []*memSeries) {
		for _, s := range list {
			if matches(s.lset, ms) {
				yield(s)
			}
		}
	}
	for _, x := range ms {
		if x.Name == model.MetricNameLabel && x.Type == labels.MatchEqual {
			one(m.byName[x.Value])
			return
		}
	}
	for _, list := range m.byName {
		one(list)
	}
}

func matches(lset labels.Labels, ms []*labels.Matcher) bool {
	for _, m := range ms {
		if !m.Matches(lset.Get(m.Name)) {
			return false
		}
	}
	return true
}

// sorted returns all series with a bucket in [from, to), by labels, with those
// buckets as copies.
func (m *memory) sorted(from, to int64) []SeriesBuckets {
	var out []SeriesBuckets
	for _, list := range m.byHash {
		for _, s := range list {
			if bs := between(s.buckets, from, to); len(bs) > 0 {
				out = append(out, SeriesBuckets{s.lset, slices.Clone(bs)})
			}
		}
	}
	slices.SortFunc(out, func(a, b SeriesBuckets) int { return labels.Compare(a.Labels, b.Labels) })
	return out
}

// between is the part of sorted buckets whose windows start in [from, to).
func between(bs []fold.Bucket, from, to int64) []fold.Bucket {
	i := sort.Search(len(bs), func(i int) bool { return bs[i].Start >= from })
	j := sort.Search(len(bs), func(i int) bool { return bs[i].Start >= to })
	if i >= j {
		return nil
	}
	return bs[i:j]
}

// dropBefore forgets the buckets whose windows start before t, and the series
// that have none left.
func (m *memory) dropBefore(t int64) {
	for h, list := range m.byHash {
		list = slices.DeleteFunc(list, func(s *memSeries) bool {
			i := sort.Search(len(s.buckets), func(i int) bool { return s.buckets[i].Start >= t })
			s.buckets = slices.Clone(s.buckets[i:])
			return len(s.buckets) == 0
		})
		if m.byHash[h] = list; len(list) == 0 {
			delete(m.byHash, h)
		}
	}
	maps.DeleteFunc(m.byName, func(name string, list []*memSeries) bool {
		list = slices.DeleteFunc(list, func(s *memSeries) bool { return len(s.buckets) == 0 })
		m.byName[name] = list
		return len(list) == 0
	})
}

// minTime is the start of the oldest bucket, and whether there is one.
func (m *memory) minTime() (t int64, ok bool) {
	for _, list := range m.byHash {
		for _, s := range list {
			if len(s.buckets) > 0 && (!ok || s.buckets[0].Start < t) {
				t, ok = s.buckets[0].Start, true
			}
		}
	}
	return t, ok
}

// size counts series and buckets.
func (m *memory) size() (series, buckets int) {
	for _, list := range m.byHash {
		series += len(list)
		for _, s := range list {
			buckets += len(s.buckets)
		}
	}
	return series, buckets
}
