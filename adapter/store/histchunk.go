package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/fold"
)

// extHistVersion is the version of the extension of a chunk with histograms.
const extHistVersion = 2

// The flags of a chunk with histograms.
const (
	histGauge     = 1 << 0
	histNoSum     = 1 << 1
	histNoTotal   = 1 << 2
	histNoLast    = 1 << 3 // the last samples are the counter's
	histFlagsMask = histGauge | histNoSum | histNoTotal | histNoLast
)

// The flags of a bucket with histograms.
const (
	histEnded      = 1 << 0
	histResets     = 1 << 1
	histMixed      = 1 << 2
	histFirstReset = 1 << 3
	histAlone      = 1 << 4
	histMask       = histEnded | histResets | histMixed | histFirstReset | histAlone
)

// encodeRun encodes as many leading buckets as fit one chunk and says how many.
func encodeRun(bs []fold.Bucket, res int64) (c *aggrChunk, n int, err error) {
	if bs[0].Hist != nil {
		return encodeHists(bs, res)
	}
	for n < len(bs) && n < maxChunkBuckets && bs[n].Hist == nil {
		n++
	}
	c, err = encodeAggr(bs[:n], res)
	return c, n, err
}

// histColumn appends histograms to one chunk, as long as they fit its layout.
type histColumn struct {
	chunk chunkenc.Chunk
	app   chunkenc.Appender
}

// add reports whether h fitted. h is copied, because the appender may change it.
func (c *histColumn) add(t int64, h *histogram.FloatHistogram, hint histogram.CounterResetHint) (bool, error) {
	if c.app == nil {
		c.chunk = chunkenc.NewFloatHistogramChunk()
		app, err := c.chunk.Appender()
		if err != nil {
			return false, err
		}
		c.app = app
	}
	h = h.Copy()
	h.CounterResetHint = hint
	chunk, recoded, app, err := c.app.AppendFloatHistogram(nil, 0, t, h, false)
	if err != nil {
		return false, err
	}
	if chunk != nil && !recoded {
		return false, nil
	}
	if c.app = app; recoded {
		c.chunk = chunk
	}
	return true, nil
}

func (c *histColumn) bytes() []byte {
	if c.chunk == nil {
		return nil
	}
	return c.chunk.Bytes()
}

// histEncoder encodes a run of buckets with histograms: Thanos' sums and counter
// must each fit one chunk.
type histEncoder struct {
	sum, total histColumn
	offset     *histogram.FloatHistogram // what resets took away, nil without any
	flags      byte
}

// encodeHists encodes the leading buckets that fit one chunk.
func encodeHists(bs []fold.Bucket, res int64) (*aggrChunk, int, error) {
	e := histEncoder{flags: histNoLast}
	first := bs[0].Hist
	if first.Gauge {
		e.flags |= histGauge
	}
	if first.Sum == nil {
		e.flags |= histNoSum
	}
	n := 0
	for n < len(bs) && n < maxChunkBuckets {
		fits, err := e.add(bs, n, res)
		if err != nil {
			return nil, 0, fmt.Errorf("encode histograms: %w", err)
		}
		if !fits {
			break
		}
		n++
	}
	c, err := e.finish(bs[:n], res)
	return c, n, err
}

// add takes bucket i and reports whether it fitted. The first one always does.
func (e *histEncoder) add(bs []fold.Bucket, i int, res int64) (bool, error) {
	h := bs[i].Hist
	if h == nil || h.Gauge != (e.flags&histGauge != 0) || (h.Sum == nil) != (e.flags&histNoSum != 0) {
		return false, nil
	}
	end := bs[i].Start + res - 1
	if i > 0 && e.flags&histNoTotal != 0 {
		return false, nil // alone
	}
	total, ok := e.next(bs, i)
	if !ok {
		if i > 0 {
			return false, nil
		}
		e.flags = e.flags&^histNoLast | histNoTotal
	}
	if ok {
		hint := histogram.UnknownCounterReset
		if h.Gauge {
			hint = histogram.GaugeType
		}
		if fits, err := e.total.add(end, total, hint); err != nil || !fits {
			return false, err
		}
	}
	if h.Sum != nil {
		fits, err := e.sum.add(end, h.Sum, histogram.GaugeType)
		if err != nil || fits {
			return fits, err
		}
		if ok {
			e.total = histColumn{} // has one too many; finish makes it anew
		}
		return false, nil
	}
	return true, nil
}

// next is the counter at the end of bucket i, counted from the first raw sample of
// the chunk on. It is the last sample as long as nothing was reset.
func (e *histEncoder) next(bs []fold.Bucket, i int) (_ *histogram.FloatHistogram, ok bool) {
	h := bs[i].Hist
	if h.Gauge {
		return h.Last, true
	}
	if i > 0 && h.First.DetectReset(bs[i-1].Hist.Last) && !e.correct(bs[i-1].Hist.Last) {
		return nil, false
	}
	if h.Alone && !e.correct(h.First) || h.Corr != nil && !e.correct(h.Corr) {
		return nil, false
	}
	if e.offset == nil {
		return h.Last, true
	}
	e.flags &^= histNoLast
	total := e.offset.Copy()
	_, _, _, err := total.Add(h.Last)
	return total, err == nil
}

func (e *histEncoder) correct(by *histogram.FloatHistogram) bool {
	if e.offset == nil {
		e.offset = by.Copy()
		return true
	}
	_, _, _, err := e.offset.Add(by)
	return err == nil
}

// finish makes the chunk of the buckets that fitted.
func (e *histEncoder) finish(bs []fold.Bucket, res int64) (*aggrChunk, error) {
	if e.total.chunk == nil || e.total.chunk.NumSamples() != len(bs) {
		if err := e.again(bs, res); err != nil {
			return nil, err
		}
	}
	var sub [subs][]byte
	var err error
	if sub[subCount], err = xorColumn(bs, res, func(b *fold.Bucket) float64 { return float64(b.Count) }); err != nil {
		return nil, err
	}
	sub[subSum], sub[subCounter] = e.sum.bytes(), e.total.bytes()
	var out []byte
	for i, d := range sub {
		out = binary.AppendUvarint(out, uint64(len(d)))
		if d == nil {
			continue
		}
		enc := chunkenc.EncFloatHistogram
		if i == subCount {
			enc = chunkenc.EncXOR
		}
		out = append(append(out, byte(enc)), d...)
	}
	out = append(out, extHistVersion, e.flags)
	out = appendHistSpecials(out, bs)
	out = appendTimes(out, bs, res)
	out, err = appendHistEnds(out, bs, e.flags)
	return &aggrChunk{out}, err
}

// again makes the counter of buckets that are known to fit.
func (e *histEncoder) again(bs []fold.Bucket, res int64) error {
	fresh := histEncoder{flags: e.flags | histNoLast | histNoSum}
	fresh.flags &^= histNoTotal
	for i := range bs {
		total, ok := fresh.next(bs, i)
		if !ok {
			e.flags = e.flags&^histNoLast | histNoTotal
			e.total = histColumn{}
			return nil
		}
		hint := histogram.UnknownCounterReset
		if bs[i].Hist.Gauge {
			hint = histogram.GaugeType
		}
		if fits, err := fresh.total.add(bs[i].Start+res-1, total, hint); err != nil || !fits {
			return errors.Join(errAggr, err)
		}
	}
	e.total = fresh.total
	e.flags = e.flags&^histNoLast | fresh.flags&histNoLast
	return nil
}

// appendTimes appends the distances of the last and the first samples to the edges
// of their windows.
func appendTimes(dst []byte, bs []fold.Bucket, res int64) []byte {
	times := make([]int64, len(bs))
	for i := range bs {
		times[i] = bs[i].Start + res - 1 - bs[i].LastT
	}
	dst = appendInts(dst, times)
	for i := range bs {
		times[i] = bs[i].FirstT - bs[i].Start
	}
	return appendInts(dst, times)
}

func appendHistSpecials(dst []byte, bs []fold.Bucket) []byte {
	n, prev := uint64(0), 0
	var list []byte
	for i := range bs {
		b := &bs[i]
		f := byte(0)
		if b.Ended {
			f |= histEnded
		}
		if b.Hist.Corr != nil {
			f |= histResets
		}
		if b.Hist.Mixed {
			f |= histMixed
		}
		if b.Hist.Alone {
			f |= histAlone
		}
		if b.Hist.First.CounterResetHint == histogram.CounterReset {
			f |= histFirstReset
		}
		if f == 0 {
			continue
		}
		n++
		list = append(binary.AppendUvarint(list, uint64(i-prev)), f)
		prev = i
		if f&(histResets|histAlone) != 0 {
			list = binary.AppendUvarint(list, uint64(b.Resets))
		}
	}
	return append(binary.AppendUvarint(dst, n), list...)
}

// ends are the histograms that the extension holds of a bucket, in order.
func ends(b *fold.Bucket, flags byte) []*histogram.FloatHistogram {
	out := []*histogram.FloatHistogram{b.Hist.First}
	if b.Hist.Corr != nil {
		out = append(out, b.Hist.Corr)
	}
	if flags&histNoLast == 0 {
		out = append(out, b.Hist.Last)
	}
	return out
}

// appendHistEnds appends the chunks with the first samples, the corrections and the
// last samples: a new chunk where the layout changes.
func appendHistEnds(dst []byte, bs []fold.Bucket, flags byte) ([]byte, error) {
	var done [][]byte
	var col histColumn
	at := int64(0)
	for i := range bs {
		for _, h := range ends(&bs[i], flags) {
			fits, err := col.add(at, h, histogram.GaugeType)
			if err == nil && !fits {
				done = append(done, col.bytes())
				col = histColumn{}
				_, err = col.add(at, h, histogram.GaugeType)
			}
			if err != nil {
				return nil, err
			}
			at++
		}
	}
	done = append(done, col.bytes())
	dst = binary.AppendUvarint(dst, uint64(len(done)))
	for _, b := range done {
		dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	}
	return dst, nil
}
