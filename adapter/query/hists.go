package query

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// buckethists is what a bucket says of native histograms.
type buckethists struct {
	// ends are the first and the last histogram and, where the counter was reset in
	// between, before the last one what it had counted until then; the one that
	// follows a reset has the hint that says so.
	ends []*histogram.FloatHistogram
	// sums is their sum; two of them cannot be added.
	sums []*histogram.FloatHistogram
	// mixed: the window had floats too.
	mixed bool
}

// setHist takes one histogram of a column.
func (b *bucket) setHist(sum bool, t int64, h *histogram.FloatHistogram) {
	if b.hists == nil {
		b.hists = &buckethists{}
	}
	if sum {
		b.hists.sums = append(b.hists.sums, h)
		return
	}
	if len(b.hists.ends) == 0 {
		b.firstT = t
	}
	b.hists.ends = append(b.hists.ends, h)
	b.lastT = t
}

// firstHist and lastHist are nil where the bucket holds floats.
func (b *bucket) firstHist() *histogram.FloatHistogram {
	if b.hists == nil || len(b.hists.ends) == 0 {
		return nil
	}
	return b.hists.ends[0]
}

func (b *bucket) lastHist() *histogram.FloatHistogram {
	if b.hists == nil || len(b.hists.ends) == 0 {
		return nil
	}
	return b.hists.ends[len(b.hists.ends)-1]
}

// lastPoint is the bucket's last sample, as if it were at t.
func (b *bucket) lastPoint(t int64) point { return point{t, b.last, b.lastHist()} }

// histTotal folds the buckets and the raw samples of one range that holds native
// histograms into the samples from which Prometheus' own function gives the answer.
type histTotal struct {
	total
	points []promql.HPoint
	floats []promql.FPoint           // one stands for all: there is no answer then
	extra  float64                   // resets that the points do not show
	stats  bool                      // only counts and sums are needed
	full   *histogram.FloatHistogram // for stats: the newest, with its buckets
}

func (a *histTotal) add(t int64, h *histogram.FloatHistogram) {
	if a.stats {
		full := h
		if h = onlyStats(h); full.CounterResetHint == histogram.UnknownCounterReset && a.full != nil {
			h.CounterResetHint = histogram.NotCounterReset
			if full.DetectReset(a.full) {
				h.CounterResetHint = histogram.CounterReset
			}
		}
		a.full = full
	}
	a.points = append(a.points, promql.HPoint{T: t, H: h})
}

// onlyStats is h without buckets.
func onlyStats(h *histogram.FloatHistogram) *histogram.FloatHistogram {
	return &histogram.FloatHistogram{CounterResetHint: h.CounterResetHint, Schema: h.Schema, CustomValues: h.CustomValues, Count: h.Count, Sum: h.Sum}
}

// addRawHists takes raw samples, which lie in the range.
func (a *histTotal) addRawHists(p *rawPart) {
	if a.stats && a.full != nil {
		a.full = onlyStats(a.full) // raw samples have no more
	}
	for _, h := range p.hists {
		a.note(h.T, h.T, 1, h.H)
		a.add(h.T, h.H)
	}
	if len(p.floats) > 0 {
		a.floats = append(a.floats, p.floats[0])
	}
}

// note notes n samples from first to last.
func (a *histTotal) note(first, last int64, n float64, h *histogram.FloatHistogram) {
	if !a.some {
		a.first, a.firstT, a.some = h.Count, first, true
	}
	a.lastT = last
	a.n += n
}

// addHistBucket takes a bucket that overlaps the range.
func (a *histTotal) addHistBucket(b *bucket, res int64) {
	if b.hists == nil || b.hists.mixed {
		a.addFloats(b)
	}
	if b.hists == nil {
		return
	}
	if a.fn == "sum_over_time" || a.fn == "avg_over_time" {
		share := float64(min(b.start+res, a.hi)-max(b.start, a.lo)) / float64(res)
		for _, h := range b.hists.sums {
			if share < 1 {
				h = h.Copy().Mul(share)
			}
			a.add(b.start, h)
		}
		a.n += b.count * share
		return
	}
	ends := b.hists.ends
	from, to := max(b.firstT, a.lo), min(b.lastT, a.hi)
	if len(ends) == 0 || from > to {
		return
	}
	if from > b.firstT || to < b.lastT {
		a.addCut(b, from, to)
		return
	}
	a.note(from, to, b.count, ends[0])
	for i, h := range ends {
		t := b.lastT
		if i < len(ends)-1 {
			t = b.firstT + int64(i)
		}
		a.add(t, h)
	}
	for _, h := range ends[1:] {
		if h.CounterResetHint == histogram.CounterReset {
			a.extra--
		}
	}
	if b.resets > 0 {
		a.extra += b.resets
	}
}

// addFloats takes the floats of a bucket, which only resets() has an answer for next to
// histograms.
func (a *histTotal) addFloats(b *bucket) {
	switch {
	case a.fn != "resets":
		a.floats = append(a.floats, promql.FPoint{T: b.start})
		return
	case b.hists != nil || b.points == 0:
		// Nothing is kept of a window's floats next to histograms. A float at the time
		// of a histogram would keep Prometheus' function for ever.
		a.lacking = true
		return
	case b.lastT <= a.lo || b.firstT > a.hi:
		return
	}
	if first := (promql.FPoint{T: b.firstT, F: b.first}); b.firstT < b.lastT && b.firstT > a.lo {
		if a.floats = append(a.floats, first); b.last < b.first {
			a.extra-- // which is in the bucket's number too
		}
	}
	a.floats = append(a.floats, promql.FPoint{T: b.lastT, F: b.last})
	if b.resets > 0 {
		a.extra += b.resets
	}
}

// increase is what a counter grew from its first to its last histogram.
func (b *buckethists) increase() (*histogram.FloatHistogram, error) {
	n := len(b.ends)
	out := b.ends[n-1].Copy()
	if n > 1 && b.ends[1].CounterResetHint != histogram.CounterReset {
		if _, _, _, err := out.Sub(b.ends[0]); err != nil {
			return out, err
		}
	}
	if n > 2 {
		if _, _, _, err := out.Add(b.ends[1]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// addCut takes of a bucket what lies in [from, to], on a straight line.
func (a *histTotal) addCut(b *bucket, from, to int64) {
	first, last := b.firstHist(), b.lastHist()
	grown, err := b.hists.increase()
	span := float64(b.lastT - b.firstT)
	head, tail := float64(from-b.firstT)/span, float64(b.lastT-to)/span
	share := 1 - head - tail
	if err == nil {
		part := grown.Copy().Mul(share)
		switch {
		case to == b.lastT: // the end is what the next bucket follows
			first = last.Copy()
			_, _, _, err = first.Sub(part)
		default:
			if head > 0 {
				first = first.Copy()
				_, _, _, err = first.Add(grown.Mul(head))
			}
			if err == nil {
				last = first.Copy()
				_, _, _, err = last.Add(part)
			}
		}
	}
	if err != nil { // exponential and custom buckets: Prometheus says so
		first, last = b.firstHist(), b.hists.ends[1]
	}
	hint := first.CounterResetHint
	first, last = first.Copy(), last.Copy()
	if first.CounterResetHint, last.CounterResetHint = hint, histogram.NotCounterReset; b.lastHist().CounterResetHint == histogram.GaugeType {
		last.CounterResetHint = histogram.GaugeType
	}
	if a.cut = true; to == b.lastT && b.resets > 0 {
		a.extra += b.resets
	}
	a.note(from, to, b.count*share, first)
	a.add(from, first)
	a.add(to, last)
}

// histAnswer is the answer for a range with histograms in it.
func (w *windows) histAnswer(a *histTotal, t int64) bool {
	if len(a.points) == 0 {
		return false
	}
	switch a.fn {
	case "rate", "increase", "delta":
		return w.histRate(a, t)
	}
	out := w.call(promql.Matrix{{Metric: w.s.lset, Floats: a.floats, Histograms: a.points}}, nil, t)
	if len(out) == 0 {
		return false
	}
	w.take(t, out[0])
	switch {
	case a.fn == "avg_over_time" && w.h != nil:
		// Of the sums of buckets, Prometheus gave the average.
		w.h = w.h.Copy().Mul(float64(len(a.points)) / a.n)
	case a.fn == "resets":
		w.f += a.extra
	}
	return true
}

// histRate has Prometheus compute what the histograms grew, from samples that are put
// on the edges of the range so that it adds nothing at its ends; then it is stretched
// by what the true times and the number of samples say.
func (w *windows) histRate(a *histTotal, t int64) bool {
	if len(a.points) < 2 || a.lastT <= a.firstT || (a.n < 2 && !a.cut) {
		if len(a.floats) == 0 {
			return false
		}
	}
	n := int64(len(a.points) - 1)
	for i := range a.points {
		a.points[i].T = a.lo + (a.hi-a.lo)*int64(i)/max(n, 1)
	}
	out := w.call(promql.Matrix{{Metric: w.s.lset, Floats: a.floats, Histograms: a.points}}, nil, t)
	if len(out) == 0 || out[0].H == nil {
		return false
	}
	w.take(t, out[0])
	if a.grown = w.h.Count; a.fn == "rate" {
		a.grown *= float64(a.rng) / 1000
	}
	w.h = w.h.Copy().Mul(a.factor())
	return true
}

// take makes an answer of Prometheus' the iterator's sample.
func (w *windows) take(t int64, s promql.Sample) {
	w.t, w.f, w.h = t, s.F, s.H
	w.kind = chunkenc.ValFloat
	if w.h != nil {
		w.kind = chunkenc.ValFloatHistogram
	}
}

// computeHists answers a range that holds buckets and, somewhere, histograms.
func (w *windows) computeHists(lo, t int64) bool {
	a := histTotal{stats: w.sel.statsOnly}
	a.init(w.sel, lo, t)
	for _, p := range w.parts {
		if p.raw != nil {
			a.addRawHists(p.raw)
		} else {
			p.buckets.each(t, a.addHistBucket)
		}
		if a.lacking {
			a.lacking = false
			w.s.plan.warn(lackWarning(w.sel.fn, w.s.plan.q.names[p.src]))
		}
	}
	return w.histAnswer(&a, t)
}

// hasHists reports whether the range that ends at t holds histograms, and whether
// the function has something to say of them.
func (w *windows) hasHists(t int64) bool {
	switch w.sel.fn {
	case "count_over_time", "min_over_time", "max_over_time":
		return false
	}
	found := false
	for _, p := range w.parts {
		if p.raw != nil {
			found = found || len(p.raw.hists) > 0
			continue
		}
		if p.buckets.hists {
			p.buckets.each(t, func(b *bucket, _ int64) { found = found || b.hists != nil })
		}
	}
	return found
}
