package store

import (
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/ticktier/ticktier/adapter/fold"
)

// memory holds the buckets that are in no block yet. Buckets guards it.
type memory struct {
	res    int64 // width of a window
	byHash map[uint64][]*memSeries
	byName map[string][]*memSeries
}

// memSeries is one series with its buckets, ends of series included.
type memSeries struct {
	lset labels.Labels
	memBuckets
}

func newMemory(res int64) *memory {
	return &memory{res: res, byHash: map[uint64][]*memSeries{}, byName: map[string][]*memSeries{}}
}

// put replaces the buckets of a series in [from, to) with bs.
func (m *memory) put(lset labels.Labels, from, to int64, bs []fold.Bucket) {
	if len(bs) > 0 {
		m.series(lset).memBuckets.put(from, to, bs, m.res)
	}
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

// sorted returns all series with a bucket in [from, to), by labels. They may be read
// while more is put.
func (m *memory) sorted(from, to int64) []memSeries {
	var out []memSeries
	for _, list := range m.byHash {
		for _, s := range list {
			if s.has(from, to, m.res) {
				out = append(out, *s)
			}
		}
	}
	slices.SortFunc(out, func(a, b memSeries) int { return labels.Compare(a.lset, b.lset) })
	return out
}

// memFeed hands the buckets of series in [from, to) on, one series at a time in full.
func memFeed(list []memSeries, from, to, res int64) seriesFeed {
	return func(yield func(labels.Labels, []fold.Bucket) error) error {
		var bs []fold.Bucket
		for _, s := range list {
			bs = s.appendTo(bs[:0], from, to, res)
			if err := yield(s.lset, bs); err != nil {
				return err
			}
		}
		return nil
	}
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
			if s.first < t {
				rest := s.appendTo(nil, t, math.MaxInt64, m.res)
				s.memBuckets = memBuckets{}
				s.memBuckets.put(t, math.MaxInt64, rest, m.res)
			}
			return s.n == 0
		})
		if m.byHash[h] = list; len(list) == 0 {
			delete(m.byHash, h)
		}
	}
	maps.DeleteFunc(m.byName, func(name string, list []*memSeries) bool {
		list = slices.DeleteFunc(list, func(s *memSeries) bool { return s.n == 0 })
		m.byName[name] = list
		return len(list) == 0
	})
}

// minTime is the start of the oldest bucket, and whether there is one.
func (m *memory) minTime() (t int64, ok bool) {
	for _, list := range m.byHash {
		for _, s := range list {
			if s.n > 0 && (!ok || s.first < t) {
				t, ok = s.first, true
			}
		}
	}
	return t, ok
}

// size counts series and buckets, and the bytes that the buckets take.
func (m *memory) size() (series, buckets, bytes int) {
	for _, list := range m.byHash {
		series += len(list)
		for _, s := range list {
			buckets += int(s.n)
			bytes += cap(s.data)
		}
	}
	return series, buckets, bytes
}
