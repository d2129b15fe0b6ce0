package store

import (
	"cmp"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// runs are the versions of one series, the latest first.
type runs struct {
	labels labels.Labels // without FillLabel
	series []storage.Series
}

// groupRuns collects marked series by what they replace, in the order of their labels.
func groupRuns(set storage.SeriesSet) ([]runs, error) {
	type version struct {
		run    string
		labels labels.Labels
		series storage.Series
	}
	var all []version
	for set.Next() {
		s := set.At()
		l := s.Labels()
		all = append(all, version{l.Get(FillLabel), labels.NewBuilder(l).Del(FillLabel).Labels(), s})
	}
	if err := set.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b version) int {
		return cmp.Or(labels.Compare(a.labels, b.labels), cmp.Compare(b.run, a.run))
	})
	var out []runs
	for _, v := range all {
		if n := len(out); n > 0 && labels.Equal(out[n-1].labels, v.labels) {
			out[n-1].series = append(out[n-1].series, v.series)
			continue
		}
		out = append(out, runs{v.labels, []storage.Series{v.series}})
	}
	return out, nil
}

// filledSet joins series, in the order of their labels, with what replaces parts of
// them.
type filledSet struct {
	storage.SeriesSet
	rest []runs // not shown yet
	have bool   // the series at hand is not shown yet
	done bool   // there are no more
	at   storage.Series
}

func (s *filledSet) Next() bool {
	if !s.have && !s.done {
		s.have = s.SeriesSet.Next()
		s.done = !s.have
	}
	if s.done && s.SeriesSet.Err() != nil {
		return false
	}
	switch order := s.order(); {
	case s.done && len(s.rest) == 0:
		return false
	case order < 0:
		s.at, s.have = s.SeriesSet.At(), false
	default:
		r := s.rest[0]
		s.rest = s.rest[1:]
		if order == 0 {
			r.series = append(r.series, s.SeriesSet.At())
			s.have = false
		}
		s.at = &filledSeries{r}
	}
	return true
}

// order compares the series at hand with the first that is replaced.
func (s *filledSet) order() int {
	switch {
	case s.done:
		return 1
	case len(s.rest) == 0:
		return -1
	}
	return labels.Compare(s.SeriesSet.At().Labels(), s.rest[0].labels)
}

func (s *filledSet) At() storage.Series { return s.at }

// filledSeries is a series in several versions.
type filledSeries struct{ runs runs }

func (s *filledSeries) Labels() labels.Labels { return s.runs.labels }

func (s *filledSeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	it := &filledIterator{at: -1}
	for _, v := range s.runs.series {
		it.versions = append(it.versions, v.Iterator(nil))
	}
	it.kinds = make([]chunkenc.ValueType, len(it.versions))
	return it
}

// filledIterator gives each time's sample of the first version that has one.
type filledIterator struct {
	versions []chunkenc.Iterator
	kinds    []chunkenc.ValueType // of each version's next sample
	at       int                  // the version that is shown; -1 before the start
	err      error
}

func (it *filledIterator) Next() chunkenc.ValueType {
	t := int64(math.MinInt64)
	started := it.at >= 0
	if started {
		if it.kinds[it.at] == chunkenc.ValNone {
			return chunkenc.ValNone
		}
		t = it.AtT()
	}
	for i, v := range it.versions {
		if !started || it.kinds[i] != chunkenc.ValNone && v.AtT() == t {
			it.kinds[i] = v.Next()
		}
	}
	return it.choose()
}

func (it *filledIterator) Seek(t int64) chunkenc.ValueType {
	if it.at >= 0 && (it.kinds[it.at] == chunkenc.ValNone || it.AtT() >= t) {
		return it.kinds[it.at]
	}
	for i, v := range it.versions {
		if it.at < 0 || it.kinds[i] != chunkenc.ValNone {
			it.kinds[i] = v.Seek(t)
		}
	}
	return it.choose()
}

// choose shows the earliest sample, of the first version that has it.
func (it *filledIterator) choose() chunkenc.ValueType {
	it.at = 0
	for i, v := range it.versions {
		if err := v.Err(); err != nil && it.kinds[i] == chunkenc.ValNone {
			it.err = err
		}
		if it.kinds[i] != chunkenc.ValNone && (it.kinds[it.at] == chunkenc.ValNone || v.AtT() < it.versions[it.at].AtT()) {
			it.at = i
		}
	}
	if it.err != nil {
		it.kinds[it.at] = chunkenc.ValNone
	}
	return it.kinds[it.at]
}

func (it *filledIterator) At() (int64, float64) { return it.versions[it.at].At() }
func (it *filledIterator) AtT() int64           { return it.versions[it.at].AtT() }
func (it *filledIterator) AtST() int64          { return it.versions[it.at].AtST() }
func (it *filledIterator) Err() error           { return it.err }

func (it *filledIterator) AtHistogram(h *histogram.Histogram) (int64, *histogram.Histogram) {
	return it.versions[it.at].AtHistogram(h)
}

func (it *filledIterator) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return it.versions[it.at].AtFloatHistogram(h)
}
