package store

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/fold"
)

var errHist = fmt.Errorf("%w: histograms", errAggr)

// histDecoder is what a decoder keeps for chunks with histograms.
type histDecoder struct {
	flags []byte // of each bucket
	it    chunkenc.Iterator
}

// histReader reads histograms out of one or several chunks, in order. hint is what
// they are given.
type histReader struct {
	d      *decoder
	left   int    // chunks in rest
	rest   []byte // the chunks that follow, each with its length
	chunk  chunkenc.Chunk
	begun  bool
	single bool // there is no list, but one chunk
}

// one reads from a sub-chunk with its encoding byte.
func (d *decoder) one(sub []byte) (*histReader, error) {
	if len(sub) < 1 || chunkenc.Encoding(sub[0]) != chunkenc.EncFloatHistogram {
		return nil, fmt.Errorf("%w: a sub-chunk is missing or of something else", errHist)
	}
	r := &histReader{d: d, single: true}
	return r, r.open(sub[1:])
}

// many reads from a list of chunks.
func (d *decoder) many(b []byte) (*histReader, error) {
	n, k := binary.Uvarint(b)
	if k < 1 || n > uint64(len(b)) {
		return nil, errHist
	}
	return &histReader{d: d, left: int(n), rest: b[k:]}, nil
}

func (r *histReader) open(b []byte) error {
	if err := checkLayout(b); err != nil {
		return err
	}
	chunk, err := chunkenc.FromData(chunkenc.EncFloatHistogram, b[:len(b):len(b)])
	if err != nil {
		return err
	}
	r.chunk = chunk
	r.d.hist.it = chunk.Iterator(r.d.hist.it)
	r.begun = true
	return nil
}

// next is the next histogram, with memory of its own.
func (r *histReader) next(hint histogram.CounterResetHint) (*histogram.FloatHistogram, error) {
	for {
		if r.begun && r.d.hist.it.Next() == chunkenc.ValFloatHistogram {
			_, h := r.d.hist.it.AtFloatHistogram(nil)
			h.CounterResetHint = hint
			return h, nil
		}
		if r.begun && r.d.hist.it.Err() != nil {
			return nil, fmt.Errorf("%w: %w", errHist, r.d.hist.it.Err())
		}
		if r.left == 0 {
			return nil, fmt.Errorf("%w: fewer than buckets", errHist)
		}
		l, k := binary.Uvarint(r.rest)
		if k < 1 || l > uint64(len(r.rest)-k) {
			return nil, errHist
		}
		if err := r.open(r.rest[k : k+int(l)]); err != nil {
			return nil, err
		}
		r.rest = r.rest[k+int(l):]
		r.left--
	}
}

// decodeHists appends the buckets of a chunk with histograms.
func (d *decoder) decodeHists(dst []fold.Bucket, sub [subs][]byte, flags byte, ext []byte, res int64, want columns) ([]fold.Bucket, error) {
	base := len(dst)
	if flags&^histFlagsMask != 0 {
		return dst, errHist
	}
	dst, err := d.decodeStarts(dst, sub[subCount], res, 0)
	if err != nil {
		return dst[:base], err
	}
	bs := dst[base:]
	hists := make([]fold.Hist, len(bs))
	for i := range bs {
		hists[i].Gauge = flags&histGauge != 0
		bs[i].Hist = &hists[i]
	}
	if want == colCount {
		return dst, nil
	}
	if want&(colSum) != 0 && flags&histNoSum == 0 {
		err = d.decodeHistSums(bs, sub[subSum])
	}
	if err == nil {
		err = d.decodeHistEnds(bs, sub[subCounter], flags, ext, res)
	}
	if err != nil {
		return dst[:base], err
	}
	return dst, nil
}

func (d *decoder) decodeHistSums(bs []fold.Bucket, sub []byte) error {
	r, err := d.one(sub)
	if err != nil {
		return err
	}
	for i := range bs {
		if bs[i].Hist.Sum, err = r.next(histogram.GaugeType); err != nil {
			return err
		}
	}
	return nil
}

// decodeHistEnds sets all but the count and the sum.
func (d *decoder) decodeHistEnds(bs []fold.Bucket, counter []byte, flags byte, ext []byte, res int64) error {
	rest, err := d.decodeHistSpecials(bs, ext)
	if err != nil {
		return err
	}
	if d.times, rest, err = cutInts(d.times, rest, len(bs)); err != nil {
		return err
	}
	for i, t := range d.times {
		bs[i].LastT = bs[i].Start + res - 1 - t
	}
	if d.times, rest, err = cutInts(d.times, rest, len(bs)); err != nil {
		return err
	}
	for i, t := range d.times {
		bs[i].FirstT = bs[i].Start + t
	}
	hint := histogram.UnknownCounterReset
	if flags&histGauge != 0 {
		hint = histogram.GaugeType
	}
	if flags&histNoLast != 0 {
		r, err := d.one(counter)
		for i := 0; i < len(bs) && err == nil; i++ {
			bs[i].Hist.Last, err = r.next(hint)
		}
		if err != nil {
			return err
		}
	}
	r, err := d.many(rest)
	for i := 0; i < len(bs) && err == nil; i++ {
		err = d.decodeHistBucket(bs[i].Hist, r, d.hist.flags[i], hint, flags&histNoLast == 0)
	}
	return err
}

// decodeHistBucket reads what ends gave.
func (d *decoder) decodeHistBucket(h *fold.Hist, r *histReader, flags byte, hint histogram.CounterResetHint, last bool) (err error) {
	first := hint
	if flags&histFirstReset != 0 {
		first = histogram.CounterReset
	}
	if h.First, err = r.next(first); err != nil {
		return err
	}
	if flags&histResets != 0 {
		if h.Corr, err = r.next(histogram.GaugeType); err != nil {
			return err
		}
	}
	if last {
		h.Last, err = r.next(hint)
	}
	return err
}

// decodeHistSpecials sets what is special about buckets and returns what follows.
func (d *decoder) decodeHistSpecials(bs []fold.Bucket, b []byte) (rest []byte, err error) {
	d.hist.flags = append(d.hist.flags[:0], make([]byte, len(bs))...)
	n, k := binary.Uvarint(b)
	if k < 1 || n > uint64(len(bs)) {
		return nil, errSpecial
	}
	b = b[k:]
	var at uint64
	for range n {
		gap, k := binary.Uvarint(b)
		if k < 1 || gap >= uint64(len(bs)) || len(b) == k {
			return nil, errSpecial
		}
		if at += gap; at >= uint64(len(bs)) || b[k]&^histMask != 0 {
			return nil, errSpecial
		}
		f := b[k]
		b = b[k+1:]
		d.hist.flags[at] = f
		bs[at].Ended = f&histEnded != 0
		bs[at].Hist.Mixed = f&histMixed != 0
		bs[at].Hist.Alone = f&histAlone != 0
		if f&(histResets|histAlone) != 0 {
			resets, k := binary.Uvarint(b)
			if k < 1 || resets > math.MaxUint32 {
				return nil, errSpecial
			}
			bs[at].Resets = uint32(resets)
			b = b[k:]
		}
	}
	return b, nil
}
