package store

import (
	"math"
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/fold"
)

// samples is what a series of buckets looks like to a reader of one aggregate.
type samples struct {
	ts []int64
	vs []float64
	// hs has the histograms, nil where a sample is a float; it may be shorter than ts.
	hs []*histogram.FloatHistogram
}

// hist is sample i as a histogram, nil where it is a float.
func (s *samples) hist(i int) *histogram.FloatHistogram {
	if i >= len(s.hs) {
		return nil
	}
	return s.hs[i]
}

// addHist adds a histogram, nil being none.
func (s *samples) addHist(t int64, h *histogram.FloatHistogram) {
	if h == nil {
		return
	}
	s.pad()
	s.ts, s.vs, s.hs = append(s.ts, t), append(s.vs, 0), append(s.hs, h)
}

// pad makes hs as long as the rest.
func (s *samples) pad() {
	for len(s.hs) < len(s.ts) {
		s.hs = append(s.hs, nil)
	}
}

func (s *samples) add(t int64, v float64) {
	s.ts, s.vs = append(s.ts, t), append(s.vs, v)
}

// sampler turns buckets into samples.
type sampler struct {
	agg     Agg
	res     int64
	fill    int64 // for Value: the longest time between two samples; 0 is the window
	counter bool  // for Value: the last value instead of the average
}

// columns says what sampler needs decoded.
func (s sampler) columns() columns {
	switch s.agg {
	case Count:
		return colCount
	case Sum:
		return colSum
	case Min:
		return colMin
	case Max:
		return colMax
	case Counter:
		return colEnds | colSpecial
	case Resets:
		return colSpecial
	case Last:
		return colLast
	}
	if s.counter {
		return colLast | colSpecial
	}
	return colSum | colSpecial
}

// add appends the samples of one bucket. A bucket without samples ends a series.
func (s sampler) add(dst *samples, b *fold.Bucket) {
	end := b.Start + s.res - 1
	if b.Count == 0 {
		if s.agg == Value {
			dst.add(b.Start, math.Float64frombits(value.StaleNaN))
		}
		return
	}
	if b.Hist != nil {
		s.addHist(dst, b)
		return
	}
	switch s.agg {
	case Count:
		dst.add(end, float64(b.Count))
	case Sum:
		if b.Lacks&fold.PartSum == 0 {
			dst.add(end, b.Sum)
		}
	case Min:
		dst.add(end, b.Min)
	case Max:
		dst.add(end, b.Max)
	case Resets:
		if b.Lacks&fold.PartCounter == 0 {
			dst.add(end, float64(b.Resets))
		}
	case Last:
		dst.add(end, b.Last)
	case Counter:
		s.addCounter(dst, b)
	case Value:
		s.addValue(dst, b)
	}
}

// addCounter gives the first and the last raw sample and, where there was a reset
// between them, what had been counted until the last reset, just before the last
// sample: the increase over these is that over the raw samples. Where the counter
// has since passed what it had counted before, a zero in between shows the reset.
// A first sample on the very edge of its window is moved into it by a millisecond,
// because a PromQL range does not contain its start.
func (s sampler) addCounter(dst *samples, b *fold.Bucket) {
	first := b.FirstT
	if first == b.Start && b.LastT > first+1 {
		first++
	}
	before := b.LastT - 1
	hidden := b.Last >= b.Corr
	if hidden {
		before--
	}
	switch {
	case b.Lacks&fold.PartCounter != 0: // a gauge: the last sample is all there is
	case b.Count == 1:
		dst.add(first, b.First)
		return
	case b.Resets == 0:
		dst.add(first, b.First)
	case before > first:
		dst.add(first, b.First)
		dst.add(before, b.Corr)
	default:
		dst.add(first, b.Corr)
	}
	if b.Resets > 0 && hidden && b.LastT-1 > first {
		dst.add(b.LastT-1, min(0, b.Corr-1, b.Last))
	}
	dst.add(b.LastT, b.Last)
}

// addValue gives the bucket's value at the end of its window and, with fill, in
// between; after the window in which the series ended, a staleness marker.
func (s sampler) addValue(dst *samples, b *fold.Bucket) {
	v := b.Last
	if !s.counter && b.Lacks&fold.PartSum == 0 {
		v = b.Avg()
	}
	step := s.res
	if s.fill > 0 && s.fill < s.res {
		step = s.fill
	}
	end := b.Start + s.res
	for t := b.Start + step; t < end; t += step {
		dst.add(t-1, v)
	}
	dst.add(end-1, v)
	if b.Ended {
		dst.add(end, math.Float64frombits(value.StaleNaN))
	}
}

// settle drops the staleness marker that a sample follows at the same time: the
// series came back.
func (s *samples) settle() {
	if len(s.hs) > 0 {
		s.pad()
	}
	n := 0
	for i := range s.ts {
		if i+1 < len(s.ts) && s.ts[i+1] <= s.ts[i] && value.IsStaleNaN(s.vs[i]) {
			continue
		}
		s.ts[n], s.vs[n] = s.ts[i], s.vs[i]
		if len(s.hs) > 0 {
			s.hs[n] = s.hs[i]
		}
		n++
	}
	s.ts, s.vs, s.hs = s.ts[:n], s.vs[:n], s.hs[:min(n, len(s.hs))]
}

// clip keeps the samples in [mint, maxt].
func (s *samples) clip(mint, maxt int64) {
	i := sort.Search(len(s.ts), func(i int) bool { return s.ts[i] >= mint })
	j := sort.Search(len(s.ts), func(i int) bool { return s.ts[i] > maxt })
	if i > j {
		i = j
	}
	s.ts, s.vs, s.hs = s.ts[i:j], s.vs[i:j], s.hs[min(i, len(s.hs)):min(j, len(s.hs))]
}

// sampleIterator iterates over samples. It implements chunkenc.Iterator.
type sampleIterator struct {
	s   samples
	i   int
	err error

	// What the next series may use again.
	room samples
	bs   []fold.Bucket
	dec  decoder
}

var _ chunkenc.Iterator = &sampleIterator{}

func (it *sampleIterator) reset(s samples, err error) { it.s, it.i, it.err = s, -1, err }

func (it *sampleIterator) Next() chunkenc.ValueType {
	it.i++
	return it.kind()
}

func (it *sampleIterator) kind() chunkenc.ValueType {
	if it.err != nil || it.i >= len(it.s.ts) {
		return chunkenc.ValNone
	}
	if it.s.hist(it.i) != nil {
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

func (it *sampleIterator) Seek(t int64) chunkenc.ValueType {
	from := max(it.i, 0)
	if from < len(it.s.ts) {
		it.i = from + sort.Search(len(it.s.ts)-from, func(k int) bool { return it.s.ts[from+k] >= t })
	}
	return it.kind()
}

func (it *sampleIterator) At() (int64, float64) { return it.s.ts[it.i], it.s.vs[it.i] }
func (it *sampleIterator) AtT() int64           { return it.s.ts[it.i] }
func (it *sampleIterator) AtST() int64          { return 0 }
func (it *sampleIterator) Err() error           { return it.err }

// AtHistogram is not for use: what buckets give are float histograms.
func (it *sampleIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return it.s.ts[it.i], nil
}

func (it *sampleIterator) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	from := it.s.hist(it.i)
	switch {
	case from == nil:
		return it.s.ts[it.i], nil
	case h == nil:
		return it.s.ts[it.i], from.Copy()
	}
	from.CopyTo(h)
	return it.s.ts[it.i], h
}
