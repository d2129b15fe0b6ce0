package store

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"

	"github.com/ticktier/ticktier/adapter/fold"
)

// addHist adds the samples of a bucket with histograms. Histograms have neither a
// minimum nor a maximum; where the window had floats too, an empty one stands for those.
func (s sampler) addHist(dst *samples, b *fold.Bucket) {
	end := b.Start + s.res - 1
	switch s.agg {
	case Count:
		dst.add(end, float64(b.Count))
	case Sum:
		s.addHistSum(dst, b)
	case Resets:
		if !b.Hist.Gauge {
			dst.add(end, float64(b.Resets))
		}
	case Min, Max:
		if b.Hist.Mixed { // says that of the floats nothing was kept
			dst.addHist(end, &histogram.FloatHistogram{CounterResetHint: histogram.GaugeType})
		}
	case Last:
		dst.addHist(end, b.Hist.Last)
	case Counter:
		s.addHistCounter(dst, b)
	case Value:
		s.addHistValue(dst, b)
	}
}

// addHistSum gives the sum. Where the window has none, two samples that PromQL cannot
// add say so.
func (s sampler) addHistSum(dst *samples, b *fold.Bucket) {
	end := b.Start + s.res - 1
	switch {
	case b.Hist.Mixed:
		dst.add(end-1, 0)
		dst.addHist(end, hinted(b.Hist.Last, histogram.GaugeType))
	case b.Hist.Sum == nil:
		dst.addHist(end-1, &histogram.FloatHistogram{CounterResetHint: histogram.GaugeType, Schema: histogram.CustomBucketsSchema})
		dst.addHist(end, &histogram.FloatHistogram{CounterResetHint: histogram.GaugeType})
	default:
		dst.addHist(end, b.Hist.Sum)
	}
}

// addHistCounter gives the first and the last histogram and, where the counter was
// reset between them, what had been counted until then, with hints that say so: the
// increase over these is that over the raw samples. A float among them says that
// the window had floats too.
func (s sampler) addHistCounter(dst *samples, b *fold.Bucket) {
	h := b.Hist
	first := b.FirstT
	if first == b.Start && b.LastT > first+1 {
		first++
	}
	if b.Hist.Mixed {
		dst.add(max(first-1, b.Start), 0)
	}
	if b.Count == 1 {
		dst.addHist(first, h.First)
		return
	}
	dst.addHist(first, h.First)
	if h.Gauge {
		dst.addHist(b.LastT, h.Last)
		return
	}
	hint := histogram.NotCounterReset
	if h.Alone {
		hint = histogram.CounterReset
	}
	if h.Corr != nil {
		dst.addHist(max(first, b.LastT-1), hinted(h.Corr, hint))
		hint = histogram.CounterReset
	}
	dst.addHist(b.LastT, hinted(h.Last, hint))
}

// hinted is h with another hint, sharing everything else.
func hinted(h *histogram.FloatHistogram, hint histogram.CounterResetHint) *histogram.FloatHistogram {
	out := *h
	out.CounterResetHint = hint
	return &out
}

// addHistValue gives a gauge's average or a counter's last histogram.
func (s sampler) addHistValue(dst *samples, b *fold.Bucket) {
	v := b.Hist.Last
	if b.Hist.Gauge && b.Hist.Sum != nil && !b.Hist.Mixed {
		v = b.Hist.Sum.Copy().Div(float64(b.Count))
	}
	step := s.res
	if s.fill > 0 && s.fill < s.res {
		step = s.fill
	}
	end := b.Start + s.res
	for t := b.Start + step; t < end; t += step {
		dst.addHist(t-1, v)
	}
	dst.addHist(end-1, v)
	if b.Ended {
		dst.add(end, math.Float64frombits(value.StaleNaN))
	}
}
