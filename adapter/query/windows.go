package query

import (
	"context"
	"math"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/ticktier/ticktier/adapter/store"
)

// windows iterates over the answers of a range function for one series: one
// sample for each evaluation time at which there is an answer. It implements
// chunkenc.Iterator. A range that holds raw samples only is left to Prometheus'
// own function; others are folded from buckets and raw samples (total.go).
type windows struct {
	ctx  context.Context
	s    *plannedSeries
	sel  *selector
	next int64 // number of the evaluation time to compute next

	parts   []part
	buffers [][]bucket                                                        // by stretch, for the next series
	call    func(promql.Matrix, *promql.StartTimestamps, int64) promql.Vector // Prometheus' function

	t    int64
	kind chunkenc.ValueType
	f    float64
	h    *histogram.FloatHistogram
	err  error

	nonCounter bool
}

// part is what one stretch holds of a series: one of both.
type part struct {
	raw     *rawPart
	buckets *bucketPart
	src     int
}

// newWindows makes the iterator of s. It may take over the buffers of reuse, which
// is done with.
func newWindows(s *plannedSeries, reuse chunkenc.Iterator) *windows {
	w := &windows{ctx: s.ctx, s: s, sel: s.sel}
	old, _ := reuse.(*windows)
	for i, cols := range s.parts {
		st := s.sel.stretches[i]
		if raw := s.raw(i, st); raw != nil {
			w.parts = append(w.parts, part{raw: newRawPart(s, bound(s.tally.count(i, raw, nil), st))})
			continue
		}
		if cols == nil {
			continue
		}
		res := s.plan.srcs[st.src].res
		bs, n, err := s.plan.q.readBuckets(old.buffer(i), s.sel.cols, cols, res)
		s.tally.samples(i, n)
		if err == nil && slices.Contains(s.sel.cols, store.Sum) {
			err = s.estimateSums(bs, st, res)
		}
		if err != nil {
			w.err = err
		}
		w.parts = append(w.parts, part{buckets: &bucketPart{bs: bs, res: res, hists: slices.ContainsFunc(bs, func(b bucket) bool { return b.hists != nil })}, src: st.src})
		w.buffers = append(w.buffers, make([][]bucket, i+1-len(w.buffers))...)
		w.buffers[i] = bs
	}
	w.call = w.rawFunction()
	return w
}

// buffer is room for the buckets of stretch i. w may be nil.
func (w *windows) buffer(i int) []bucket {
	if w == nil || i >= len(w.buffers) {
		return nil
	}
	return w.buffers[i]
}

// rawFunction is Prometheus' own function, as the engine would call it.
func (w *windows) rawFunction() func(promql.Matrix, *promql.StartTimestamps, int64) promql.Vector {
	call := promql.FunctionCalls[w.sel.fn]
	args := parser.Expressions{&parser.MatrixSelector{
		VectorSelector: &parser.VectorSelector{PosRange: w.sel.pos},
		Range:          msToDuration(w.sel.rng),
		EndPos:         w.sel.pos.End,
	}}
	enh := &promql.EvalNodeHelper{LookbackDelta: msToDuration(w.sel.lookback)}
	return func(vals promql.Matrix, starts *promql.StartTimestamps, ts int64) promql.Vector {
		enh.Ts, enh.Out, enh.StartTimestamps = ts, enh.Out[:0], starts
		out, annots := call(nil, vals, args, enh)
		w.s.plan.add(annots)
		return out
	}
}

func (w *windows) Next() chunkenc.ValueType {
	n := w.sel.grid.n()
	for ; w.err == nil && w.next < n; w.next++ {
		if w.next%64 == 0 {
			if w.err = w.ctx.Err(); w.err != nil {
				break
			}
		}
		if w.compute(w.sel.grid.at(w.next)) {
			w.next++
			return w.kind
		}
	}
	w.kind = chunkenc.ValNone
	return w.kind
}

func (w *windows) Seek(t int64) chunkenc.ValueType {
	if w.kind != chunkenc.ValNone && w.t >= t {
		return w.kind
	}
	w.next = max(w.next, w.sel.grid.after(t-1))
	return w.Next()
}

// compute answers the range that ends at t, and reports whether there is an answer.
func (w *windows) compute(t int64) bool {
	lo := t - w.sel.rng
	var tot total
	tot.init(w.sel, lo, t)
	rawOnly := true
	var alone *rawPart
	room := w.s.plan.q.maxSamples
	for _, p := range w.parts {
		if p.raw != nil {
			if w.err = p.raw.load(lo, t, room); w.err != nil {
				return false
			}
			if n := p.raw.len(); n > 0 {
				room -= n
				alone = p.raw
			}
			continue
		}
		if p.buckets.seek(lo, t) {
			rawOnly = false
		}
	}
	if rawOnly {
		return alone != nil && w.computeRaw(t, alone)
	}
	if w.hasHists(t) {
		return w.computeHists(lo, t)
	}
	for _, p := range w.parts {
		if p.raw != nil {
			tot.addRaw(p.raw.floats)
			if tot.fn == "count_over_time" {
				tot.n += float64(len(p.raw.hists))
			}
		} else {
			tot.addBefore(p.buckets.before())
			p.buckets.each(t, tot.addBucket)
		}
		if tot.lacking {
			tot.lacking = false
			w.s.plan.warn(lackWarning(w.sel.fn, w.s.plan.q.names[p.src]))
		}
	}
	f, ok := tot.answer()
	for _, p := range w.parts {
		if p.buckets == nil {
			continue
		}
		if v, line := w.alongLine(p.buckets, lo, t); line {
			f, ok = v, true
		}
	}
	if !ok {
		return false
	}
	if math.IsNaN(f) {
		f = math.Float64frombits(value.NormalNaN)
	}
	w.t, w.kind, w.f, w.h = t, chunkenc.ValFloat, f, nil
	w.checkCounter()
	return true
}

// short reports whether ranges are too short for what buckets of res ms resolve.
func (w *windows) short(res int64) bool {
	switch w.sel.fn {
	case "rate", "increase", "delta":
		return w.sel.rng < 2*res && !w.sel.exactAt(res)
	}
	return false
}

// alongLine answers a short range by what the counter grows on straight lines through
// the first and the last samples of buckets that follow each other: between two of them
// too, where a bucket cut to the range says nothing.
func (w *windows) alongLine(p *bucketPart, lo, hi int64) (float64, bool) {
	if !w.short(p.res) {
		return 0, false
	}
	counts := w.sel.fn != "delta"
	var at, to float64 // what had grown at lo and at hi
	var t0, begun = int64(0), false
	grown, found := 0.0, false
	point := func(t int64, by float64) (done bool) {
		part := func(x int64) float64 { return grown + by*float64(x-t0)/float64(max(t-t0, 1)) }
		if begun && t0 <= lo && lo <= t {
			at, found = part(lo), true
		}
		if begun && found && t0 <= hi && hi <= t {
			to, done = part(hi), true
		}
		t0, begun = t, true
		grown += by
		return done
	}
	for i := max(p.i-1, 0); i < len(p.bs); i++ {
		b := &p.bs[i]
		if b.points == 0 || b.lacksFirst() || (i > 0 && begun && p.bs[i-1].start+p.res != b.start && found) {
			return 0, false
		}
		by := 0.0
		if begun {
			if by = b.first - p.bs[i-1].last; counts && by < 0 {
				by = b.first
			}
			if p.bs[i-1].start+p.res != b.start {
				begun = false
			}
		}
		done := point(b.firstT, by)
		if by = b.last - b.first; counts {
			by = b.increase()
		}
		if done || point(b.lastT, by) {
			if to -= at; w.sel.fn == "rate" {
				to /= float64(hi-lo) / 1000
			}
			return to, true
		}
		if b.firstT > hi {
			break
		}
	}
	return 0, false
}

// computeRaw answers from raw samples of one stretch. Two stretches of raw samples
// never meet without a stretch of buckets in between that is wider than a range
// with no bucket in it, except where that series has a gap: then they are joined.
func (w *windows) computeRaw(t int64, last *rawPart) bool {
	floats, hists, starts := last.floats, last.hists, last.starts
	for i := len(w.parts) - 1; i >= 0; i-- {
		if p := w.parts[i].raw; p != nil && p != last && p.len() > 0 {
			floats = append(slices.Clone(p.floats), floats...)
			hists = append(slices.Clone(p.hists), hists...)
			if starts != nil {
				starts = &promql.StartTimestamps{
					Floats:     append(slices.Clone(p.starts.Floats), starts.Floats...),
					Histograms: append(slices.Clone(p.starts.Histograms), starts.Histograms...),
				}
			}
		}
	}
	out := w.call(promql.Matrix{{Metric: w.s.lset, Floats: floats, Histograms: hists}}, starts, t)
	if len(out) == 0 {
		return false
	}
	w.t, w.f, w.h = t, out[0].F, out[0].H
	w.kind = chunkenc.ValFloat
	if w.h != nil {
		w.kind = chunkenc.ValFloatHistogram
	} else {
		w.checkCounter()
	}
	return true
}

// checkCounter says once, as the engine does, that a rate of what is not named
// like a counter may be a mistake.
func (w *windows) checkCounter() {
	if w.nonCounter || (w.sel.fn != "rate" && w.sel.fn != "increase") {
		return
	}
	w.nonCounter = true
	name := w.s.lset.Get(model.MetricNameLabel)
	if name == "" || counterName(name) {
		return
	}
	var a annotations.Annotations
	a.Add(annotations.NewPossibleNonCounterInfo(name, w.sel.pos))
	w.s.plan.add(a)
}

func (w *windows) At() (int64, float64) { return w.t, w.f }
func (w *windows) AtT() int64           { return w.t }
func (w *windows) AtST() int64          { return 0 }
func (w *windows) Err() error           { return w.err }

// AtHistogram is not needed by the engine, which asks for float histograms.
func (w *windows) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return w.t, nil
}

func (w *windows) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	if h == nil {
		return w.t, w.h.Copy()
	}
	w.h.CopyTo(h)
	return w.t, h
}
