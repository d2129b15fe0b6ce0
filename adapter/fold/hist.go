package fold

import "github.com/prometheus/prometheus/model/histogram"

// Hist is what the native histograms of one window say. It is never changed once
// its bucket is closed, so buckets may share it.
type Hist struct {
	// First and Last are the samples at both ends. First has the hint CounterReset
	// where its sender said that the counter began anew with it.
	First, Last *histogram.FloatHistogram
	// Corr is the sum of the samples that a reset came after: the increase is
	// Last − First + Corr. Nil without resets and for a gauge. Where the window
	// holds exponential and custom buckets, which have no sum, it is an empty
	// histogram of the other kind than Last.
	Corr *histogram.FloatHistogram
	// Alone says that the counter was reset right after First, which Corr does then
	// not hold: the increase is Last + Corr, whatever the layout of First was.
	Alone bool
	// Sum is the sum of all, at the lowest resolution among them. Nil where they
	// have none.
	Sum *histogram.FloatHistogram
	// Gauge says that the histograms are no counters.
	Gauge bool
	// Mixed says that there were floats in the window too. Nothing is kept of these
	// but that they count, because no function of PromQL has an answer for both.
	Mixed bool
}

// Increase is what the counter grew from First to Last. The error says that the
// window holds histograms that have no difference.
func (h *Hist) Increase() (*histogram.FloatHistogram, error) {
	out := h.Last.Copy()
	if !h.Alone {
		if _, _, _, err := out.Sub(h.First); err != nil {
			return nil, err
		}
	}
	if h.Corr != nil {
		if _, _, _, err := out.Add(h.Corr); err != nil {
			return nil, err
		}
	}
	out.CounterResetHint = histogram.GaugeType
	return out.Compact(0), nil
}

// histFolder keeps what a Folder needs for the open bucket's histograms.
type histFolder struct {
	last *histogram.FloatHistogram // a copy of its own of the newest, reused
	comp *histogram.FloatHistogram // compensation of the sum
	// custom is the kind of buckets that the increase is made of; spoilt says that
	// there are both, so that it has none.
	custom, spoilt bool
}

// AddHistogram takes the next sample, a native histogram, as Add takes a float. It
// copies what it keeps of h. Unlike Add it takes memory.
func (f *Folder) AddHistogram(t int64, h *histogram.FloatHistogram) {
	f.enter(t)
	b := &f.open
	if IsStale(h.Sum) {
		b.Ended = true
		return
	}
	if b.Hist == nil {
		f.openHist(h)
		b.Hist.Mixed = b.Count > 0
	} else {
		f.followHist(h, 0)
		f.addHistSum(h)
	}
	f.setLast(h)
	f.count(t, t, 1)
}

// count notes n samples of a bucket that has histograms.
func (f *Folder) count(first, last int64, n uint64) {
	b := &f.open
	if b.Count == 0 {
		b.FirstT = first
	}
	b.Count += n
	b.LastT, b.Ended = last, false
	if b.Hist.Mixed {
		b.dropFloats()
	}
}

// dropFloats forgets what floats said, but for their number and times.
func (b *Bucket) dropFloats() {
	b.Sum, b.Min, b.Max, b.First, b.Last, b.Corr, b.Lacks = 0, 0, 0, 0, 0, 0, 0
}

// openHist begins the open bucket's histograms with h.
func (f *Folder) openHist(h *histogram.FloatHistogram) {
	first := h.Copy()
	gauge := h.CounterResetHint == histogram.GaugeType
	if !gauge && first.CounterResetHint != histogram.CounterReset {
		first.CounterResetHint = histogram.UnknownCounterReset
	}
	sum := h.Copy()
	sum.CounterResetHint = histogram.GaugeType
	f.open.Hist = &Hist{First: first, Sum: sum, Gauge: gauge}
	f.hist.comp, f.hist.custom, f.hist.spoilt = nil, h.UsesCustomBuckets(), false
}

// setLast copies h to be the newest histogram.
func (f *Folder) setLast(h *histogram.FloatHistogram) {
	if f.hist.last == nil {
		f.hist.last = &histogram.FloatHistogram{}
	}
	h.CopyTo(f.hist.last)
}

// followHist notes a reset where next, the sample after the newest, began anew, and
// the resets that came since.
func (f *Folder) followHist(next *histogram.FloatHistogram, resets uint32) {
	h := f.open.Hist
	if h.Gauge {
		return
	}
	f.open.Resets += resets
	reset := next.DetectReset(f.hist.last)
	switch {
	case reset && f.open.Count == 1:
		f.open.Resets++
		h.Alone, f.hist.custom = true, next.UsesCustomBuckets()
	case next.UsesCustomBuckets() != f.hist.custom:
		f.hist.spoilt = true
	}
	if reset && f.open.Count > 1 {
		f.open.Resets++
		f.correct(f.hist.last)
	}
}

// correct adds what had been counted until a reset.
func (f *Folder) correct(by *histogram.FloatHistogram) {
	h := f.open.Hist
	switch {
	case f.hist.spoilt:
		return
	case by.UsesCustomBuckets() != f.hist.custom:
		f.hist.spoilt = true
		return
	case h.Corr == nil:
		h.Corr = by.Copy()
	default:
		if _, _, _, err := h.Corr.Add(by); err != nil {
			f.hist.spoilt = true
		}
	}
	h.Corr.CounterResetHint = histogram.GaugeType
}

// spoilt reports whether the window holds histograms that have no difference.
func (h *Hist) spoilt() bool {
	custom := h.Last.UsesCustomBuckets()
	return !h.Alone && h.First.UsesCustomBuckets() != custom || h.Corr != nil && h.Corr.UsesCustomBuckets() != custom
}

// unlike is an empty histogram of the other kind of buckets, which cannot be added.
func unlike(custom bool) *histogram.FloatHistogram {
	out := &histogram.FloatHistogram{CounterResetHint: histogram.GaugeType}
	if !custom {
		out.Schema = histogram.CustomBucketsSchema
	}
	return out
}

// addHistSum adds to the sum of the open bucket, compensated as PromQL does.
func (f *Folder) addHistSum(by *histogram.FloatHistogram) {
	h := f.open.Hist
	if h.Sum == nil {
		return
	}
	if by == nil {
		h.Sum = nil
		return
	}
	comp, _, _, err := h.Sum.KahanAdd(by, f.hist.comp)
	if err != nil {
		h.Sum, f.hist.comp = nil, nil
		return
	}
	f.hist.comp = comp
}

// mergeHist takes a bucket with histograms, or any bucket into one with them.
func (f *Folder) mergeHist(n *Bucket) {
	b := &f.open
	switch {
	case n.Hist == nil:
		b.Hist.Mixed = true
	case b.Hist == nil:
		mixed := b.Count > 0 || n.Hist.Mixed
		f.openHist(n.Hist.First)
		b.Hist.Gauge, b.Hist.Mixed = n.Hist.Gauge, mixed
		b.Hist.Sum = nil
		if n.Hist.Sum != nil {
			b.Hist.Sum = n.Hist.Sum.Copy()
		}
		b.Resets = n.Resets
		if n.Hist.Corr != nil {
			b.Hist.Corr = n.Hist.Corr.Copy()
		}
		if b.Hist.Alone = n.Hist.Alone; b.Hist.Alone {
			f.hist.custom = n.Hist.Last.UsesCustomBuckets()
		}
		f.hist.spoilt = n.Hist.spoilt()
		f.setLast(n.Hist.Last)
	default:
		f.followHist(n.Hist.First, n.Resets)
		f.hist.spoilt = f.hist.spoilt || n.Hist.spoilt()
		if n.Hist.Alone && !b.Hist.Gauge {
			f.correct(n.Hist.First)
		}
		if n.Hist.Corr != nil && !b.Hist.Gauge {
			f.correct(n.Hist.Corr)
		}
		f.addHistSum(n.Hist.Sum)
		b.Hist.Mixed = b.Hist.Mixed || n.Hist.Mixed
		f.setLast(n.Hist.Last)
	}
	f.count(n.FirstT, n.LastT, n.Count)
	b.Ended = n.Ended
}

// closeHist completes the open bucket's histograms.
func (f *Folder) closeHist() {
	h := f.open.Hist
	h.Last = f.hist.last.Copy()
	if h.Gauge {
		h.Last.CounterResetHint = histogram.GaugeType
	} else {
		h.Last.CounterResetHint = histogram.UnknownCounterReset
	}
	if f.hist.spoilt && !h.Gauge {
		h.Corr = unlike(h.Last.UsesCustomBuckets())
	}
	if h.Sum == nil {
		return
	}
	if f.hist.comp != nil {
		if _, _, _, err := h.Sum.Add(f.hist.comp); err != nil {
			h.Sum = nil
			return
		}
	}
	h.Sum.CounterResetHint = histogram.GaugeType
}
