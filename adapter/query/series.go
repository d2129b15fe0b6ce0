package query

import (
	"context"
	"slices"
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/store"
)

// plainSeries is a series of a reader that is not planned: the samples of its
// stretches one after the other.
type plainSeries struct {
	*joined
	stretches []stretch
	tally     *tally
}

func (s *plainSeries) Labels() labels.Labels { return s.lset }

func (s *plainSeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	var parts []chunkenc.Iterator
	for i, cols := range s.parts {
		if cols != nil {
			parts = append(parts, bound(s.tally.count(i, cols[0], nil), s.stretches[i]))
		}
	}
	return newConcat(parts)
}

// plannedSeries is a series of a planned selector.
type plannedSeries struct {
	*joined
	ctx  context.Context
	sel  *selector
	plan *planned
	q    *querier

	tally *tally
}

func (s *plannedSeries) Labels() labels.Labels { return s.lset }

func (s *plannedSeries) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	if s.sel.shape == asWindows {
		return newWindows(s, it)
	}
	var parts []chunkenc.Iterator
	for i, cols := range s.parts {
		st := s.sel.stretches[i]
		if raw := s.raw(i, st); raw != nil {
			parts = append(parts, bound(s.tally.count(i, raw, nil), st))
		} else if cols != nil {
			parts = append(parts, s.bucketIterator(cols, st, i))
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return newConcat(parts)
}

// bucketIterator gives the samples that stand for the buckets of a stretch.
func (s *plannedSeries) bucketIterator(cols []storage.Series, st stretch, i int) chunkenc.Iterator {
	res := s.plan.srcs[st.src].res
	// Evaluation times that lie in buckets each cost a sample.
	if s.sel.grid.n() > int64(s.plan.q.maxSamples) {
		return &listIterator{err: promql.ErrTooManySamples("selector over " + s.plan.q.names[st.src] + " buckets"), i: -1}
	}
	list, n, err := s.bucketSamples(cols, st, res)
	s.tally.samples(i, n)
	return &listIterator{list: list, err: err, i: -1}
}

// bucketSamples also says how many samples were read for them.
func (s *plannedSeries) bucketSamples(cols []storage.Series, st stretch, res int64) (list []point, n int, err error) {
	if len(s.sel.cols) > 1 {
		bs, n, err := s.plan.q.readBuckets(nil, s.sel.cols, cols, res)
		if err != nil {
			return nil, n, err
		}
		switch {
		case s.sel.linear:
			return lines(bs, s.sel, res), n, nil
		case s.sel.last && (s.sel.rng >= 2*res || s.sel.exactAt(res)):
			return lasts(bs, res), n, nil
		case s.sel.last:
			ends := make([]point, len(bs))
			for i := range bs {
				ends[i] = bs[i].lastPoint(bs[i].start + res - 1)
			}
			return repeat(ends, s.sel, res), n, nil
		}
		return spread(s.firsts(bs, st, res), s.sel, res), n, nil
	}
	points, err := s.plan.q.readColumn(cols[0], st, res)
	if err != nil {
		return nil, 0, err
	}
	if s.sel.shape == asInstants {
		return instants(points, s.sel, st, res), len(points), nil
	}
	return spread(points, s.sel, res), len(points), nil
}

// point is one sample: a float, or a histogram where h is set.
type point struct {
	t int64
	v float64
	h *histogram.FloatHistogram
}

// maxRoom is how many samples are made room for before there is one.
const maxRoom = 4096

// readColumn reads one aggregate: the first sample of every bucket, at the start
// of its window, and staleness markers, which stand at the start of the window
// after the one that they end.
func (q *Queryable) readColumn(s storage.Series, st stretch, res int64) ([]point, error) {
	out := make([]point, 0, min((st.to-st.from)/res+8, maxRoom))
	it := s.Iterator(q.iterator())
	defer q.iterators.Put(it)
	for vt := it.Next(); vt != chunkenc.ValNone; vt = it.Next() {
		var p point
		if vt == chunkenc.ValFloat {
			p.t, p.v = it.At()
		} else {
			p.t, p.h = it.AtFloatHistogram(nil)
		}
		p.t = floorTo(p.t, res)
		if len(out) == 0 || out[len(out)-1].t != p.t || value.IsStaleNaN(out[len(out)-1].v) {
			out = append(out, p)
		}
	}
	return out, it.Err()
}

// instants makes the samples of a selector without a range: a bucket's value holds
// for the evaluation times within its window, and for those that follow within the
// look-back unless the series ended.
func instants(points []point, s *selector, st stretch, res int64) []point {
	out := make([]point, 0, 8+int(min(s.grid.n(), maxRoom)))
	k := int64(0)
	for i, p := range points {
		if value.IsStaleNaN(p.v) {
			out = endAt(out, min(p.t, st.to-1), p.v)
			continue
		}
		last := p.t + res - 1
		for k = s.grid.next(k, p.t); k < s.grid.n() && s.grid.at(k) < last; k++ {
			out = append(out, point{s.grid.at(k), p.v, p.h})
		}
		// It is looked back at from the time at which the next one starts and, where
		// there is a gap, from later.
		if i+1 == len(points) || points[i+1].t != last+1 || k < s.grid.n() && s.grid.at(k) <= last+1 {
			out = append(out, point{last, p.v, p.h})
		}
	}
	return out
}

// endAt appends a staleness marker at t; a sample at that very time is moved a
// millisecond back to make room.
func endAt(out []point, t int64, stale float64) []point {
	if n := len(out); n > 0 && out[n-1].t == t {
		out[n-1].t--
		if n > 1 && out[n-2].t >= out[n-1].t {
			out = slices.Delete(out, n-2, n-1)
		}
	}
	return append(out, point{t: t, v: stale})
}

// spread makes the samples of a selector whose function the engine computes: one
// for each bucket, at the last millisecond of its window, and where that is too
// few for the range, more in between.
func spread(points []point, s *selector, res int64) []point {
	points = slices.DeleteFunc(points, func(p point) bool { return value.IsStaleNaN(p.v) })
	ends := make([]point, len(points))
	for i, p := range points {
		ends[i] = point{p.t + res - 1, p.v, p.h}
	}
	switch {
	case s.rng < res:
		return repeat(ends, s, res)
	case s.cols[0] == store.Count:
		// Presence: a range that holds only the head of a window has samples too.
		both := make([]point, 0, 2*len(ends))
		for _, e := range ends {
			both = append(both, point{e.t - res + 2, e.v, e.h}, e)
		}
		return both
	}
	return ends
}

// repeat adds to each bucket its value at the evaluation times within its window.
func repeat(ends []point, s *selector, res int64) []point {
	var out []point
	for _, e := range ends {
		for k := s.grid.after(e.t - res); k < s.grid.n() && s.grid.at(k) < e.t; k++ {
			out = append(out, point{s.grid.at(k), e.v, e.h})
		}
		out = append(out, e)
	}
	return out
}

// lasts are the last samples of buckets and, after a gap, the first one too, so that
// a range which holds only the head of that window is not empty.
func lasts(bs []bucket, res int64) []point {
	out := make([]point, 0, len(bs)+8)
	for i := range bs {
		b := &bs[i]
		// A range does not contain its start, which is in the window.
		last := b.lastPoint(max(b.lastT, b.start+1))
		if i == 0 || bs[i-1].start+res != b.start {
			first := point{max(b.firstT, b.start+1), b.first, b.firstHist()}
			if b.lacksFirst() {
				first.t = b.start + 1
			}
			if first.t < last.t {
				out = append(out, first)
			}
		}
		out = append(out, last)
	}
	return out
}

// firsts are the first samples of buckets. Where a bucket does not know its own,
// the last one of the window before is the nearest.
func (s *plannedSeries) firsts(bs []bucket, st stretch, res int64) []point {
	var out []point
	for i := range bs {
		b := &bs[i]
		v := b.first
		if b.lacksFirst() {
			if i > 0 && bs[i-1].start+res == b.start {
				v = bs[i-1].last
			}
			s.plan.warn(lackWarning(s.sel.fn, s.plan.q.names[st.src]))
		}
		out = append(out, point{b.start, v, b.firstHist()})
	}
	return out
}

// lines makes the samples of a selector that wants straight lines.
func lines(bs []bucket, s *selector, res int64) []point {
	var times []int64 // both ends of every range, where more points are needed
	if s.rng < 2*res {
		for k := range s.grid.n() {
			times = append(times, s.grid.at(k), s.grid.at(k)-s.rng+1)
		}
		slices.Sort(times)
		times = slices.Compact(times)
	}
	var out []point
	line := func(e point, joined bool) {
		if n := len(out); n > 0 && joined {
			a := out[n-1]
			from := sort.Search(len(times), func(k int) bool { return times[k] > a.t })
			for _, t := range times[from:] {
				if t >= e.t {
					break
				}
				out = append(out, point{t: t, v: a.v + (e.v-a.v)*float64(t-a.t)/float64(e.t-a.t)})
			}
		}
		out = append(out, e)
	}
	for i := range bs {
		b := &bs[i]
		if b.hists != nil {
			continue // a histogram has no slope
		}
		joined := i > 0 && bs[i-1].start+res == b.start
		if b.lastT > b.firstT {
			line(point{t: b.firstT, v: b.first}, joined)
			joined = true
		}
		line(point{t: b.lastT, v: b.last}, joined)
	}
	return out
}
