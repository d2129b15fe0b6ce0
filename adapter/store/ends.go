package store

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/fold"
)

// The first and last raw samples of the buckets are the extension's columns: their
// times as distances to the edges of the window, their values as distances to
// what a reader can guess. A counter without resets costs next to nothing.

// appendEnds appends the four columns.
func appendEnds(dst []byte, bs []fold.Bucket, flags byte, totals []float64, res int64) ([]byte, error) {
	n := len(bs)
	times, firsts, lasts := make([]int64, n), make([]float64, n), make([]float64, n)
	for i := range bs {
		times[i], firsts[i], lasts[i] = bs[i].Start+res-1-bs[i].LastT, bs[i].First, bs[i].Last
	}
	dst = appendInts(dst, times)
	if flags&extNoCounter != 0 {
		return appendFloats(dst, lasts, func(i int) float64 { return before(lasts, i) })
	}
	for i := range bs {
		times[i] = bs[i].FirstT - bs[i].Start
	}
	dst = appendInts(dst, times)
	dst, err := appendFloats(dst, firsts, func(i int) float64 { return before(lasts, i) })
	if err != nil {
		return nil, err
	}
	return appendFloats(dst, lasts, func(i int) float64 { return guessLast(totals, i, before(lasts, i)) })
}

// before is the value before the i-th, 0 for the first.
func before(vs []float64, i int) float64 {
	if i == 0 {
		return 0
	}
	return vs[i-1]
}

// guessLast is what the last sample of bucket i is where the counter was not
// reset, given the last one of the bucket before.
func guessLast(totals []float64, i int, prev float64) float64 {
	if i == 0 {
		return totals[0]
	}
	return prev + (totals[i] - totals[i-1])
}

// decodeEnds sets the first and last samples.
func (d *decoder) decodeEnds(bs []fold.Bucket, b, counter []byte, flags byte, res int64) (err error) {
	n := len(bs)
	if d.times, b, err = cutInts(d.times, b, n); err != nil {
		return err
	}
	for i, t := range d.times {
		bs[i].LastT = bs[i].Start + res - 1 - t
	}
	if flags&extNoCounter != 0 {
		return d.decodeLasts(bs, b)
	}
	if d.times, b, err = cutInts(d.times, b, n); err != nil {
		return err
	}
	for i, t := range d.times {
		bs[i].FirstT = bs[i].Start + t
	}
	firsts, b, err := cutFloats(b, n, d.firsts)
	if err != nil {
		return err
	}
	d.firsts = firsts.ints
	lasts, _, err := cutFloats(b, n, d.lasts)
	if err != nil {
		return err
	}
	d.lasts = lasts.ints
	if err := d.decodeTotals(counter, n); err != nil {
		return err
	}
	prev := 0.0
	for i := range bs {
		if bs[i].First, err = firsts.next(prev); err != nil {
			return err
		}
		if bs[i].Last, err = lasts.next(guessLast(d.totals, i, prev)); err != nil {
			return err
		}
		prev = bs[i].Last
	}
	return nil
}

// decodeLast sets the values of the last samples, and nothing else.
func (d *decoder) decodeLast(bs []fold.Bucket, b, counter []byte, flags byte) (err error) {
	if d.values, err = d.lastValues(d.values[:0], len(bs), b, counter, flags); err != nil {
		return err
	}
	for i, v := range d.values {
		bs[i].Last = v
	}
	return nil
}

// lastValues appends the values of the last samples of n buckets to dst.
func (d *decoder) lastValues(dst []float64, n int, b, counter []byte, flags byte) (_ []float64, err error) {
	if b, err = skipInts(b, n); err != nil {
		return dst, err
	}
	gauge := flags&extNoCounter != 0
	if !gauge {
		if b, err = skipInts(b, n); err != nil {
			return dst, err
		}
		if b, err = skipFloats(b, n); err != nil {
			return dst, err
		}
		if err := d.decodeTotals(counter, n); err != nil {
			return dst, err
		}
	}
	lasts, _, err := cutFloats(b, n, d.lasts)
	if err != nil {
		return dst, err
	}
	d.lasts = lasts.ints
	prev := 0.0
	for i := range n {
		base := prev
		if !gauge {
			base = guessLast(d.totals, i, prev)
		}
		if prev, err = lasts.next(base); err != nil {
			return dst, err
		}
		dst = append(dst, prev)
	}
	return dst, nil
}

// decodeLasts sets the last samples of a gauge.
func (d *decoder) decodeLasts(bs []fold.Bucket, b []byte) error {
	lasts, _, err := cutFloats(b, len(bs), d.lasts)
	if err != nil {
		return err
	}
	d.lasts = lasts.ints
	prev := 0.0
	for i := range bs {
		if bs[i].Last, err = lasts.next(prev); err != nil {
			return err
		}
		prev = bs[i].Last
	}
	return nil
}

// decodeTotals reads the running totals out of the counter sub-chunk.
func (d *decoder) decodeTotals(sub []byte, n int) error {
	it, err := d.xor(sub)
	if err != nil {
		return err
	}
	d.totals = d.totals[:0]
	for i := 0; i <= n && it.Next() == chunkenc.ValFloat; i++ {
		if i > 0 {
			_, v := it.At()
			d.totals = append(d.totals, v)
		}
	}
	if it.Err() == nil && len(d.totals) < n {
		return fmt.Errorf("%w: %d of %d buckets in the counter", errAggr, len(d.totals), n)
	}
	return it.Err()
}

// Flags of a bucket in the list of special ones.
const (
	flagEnded  = 1 << 0
	flagResets = 1 << 1
	flagMinMax = 1 << 2
)

// specialFlags says what is special about a bucket.
func specialFlags(b *fold.Bucket, flags byte) (f byte) {
	if b.Ended {
		f |= flagEnded
	}
	if b.Resets > 0 {
		f |= flagResets
	}
	if flags&extNoMinMax != 0 && !(same(b.Min, b.First) && same(b.Max, b.Last)) {
		f |= flagMinMax
	}
	return f
}

func same(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

func appendSpecials(dst []byte, bs []fold.Bucket, flags byte) []byte {
	n := uint64(0)
	for i := range bs {
		if specialFlags(&bs[i], flags) != 0 {
			n++
		}
	}
	dst = binary.AppendUvarint(dst, n)
	prev := 0
	for i := range bs {
		f := specialFlags(&bs[i], flags)
		if f == 0 {
			continue
		}
		dst = append(binary.AppendUvarint(dst, uint64(i-prev)), f)
		prev = i
		if f&flagResets != 0 {
			dst = binary.AppendUvarint(dst, uint64(bs[i].Resets))
			dst = appendFloat(dst, bs[i].Corr)
		}
		if f&flagMinMax != 0 {
			dst = appendFloat(appendFloat(dst, bs[i].Min), bs[i].Max)
		}
	}
	return dst
}

func appendFloat(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

var errSpecial = fmt.Errorf("%w: list of special buckets", errAggr)

// special is what the list of special buckets says of one.
type special struct {
	flags          byte
	resets         uint32
	corr, min, max float64
}

// decodeSpecial sets what is special about buckets and returns what follows.
func decodeSpecial(bs []fold.Bucket, b []byte) (rest []byte, err error) {
	return eachSpecial(len(bs), b, func(at int, s special) {
		bs[at].Ended = s.flags&flagEnded != 0
		if s.flags&flagResets != 0 {
			bs[at].Resets, bs[at].Corr = s.resets, s.corr
		}
		if s.flags&flagMinMax != 0 {
			bs[at].Min, bs[at].Max = s.min, s.max
		}
	})
}

// eachSpecial hands what is special about some of n buckets to yield, and returns what
// follows.
func eachSpecial(size int, b []byte, yield func(at int, s special)) (rest []byte, err error) {
	n, k := binary.Uvarint(b)
	if k < 1 || n > uint64(size) {
		return nil, errSpecial
	}
	b = b[k:]
	var at uint64
	for range n {
		gap, k := binary.Uvarint(b)
		if k < 1 || gap >= uint64(size) || len(b) == k {
			return nil, errSpecial
		}
		if at += gap; at >= uint64(size) {
			return nil, errSpecial
		}
		s := special{flags: b[k]}
		b = b[k+1:]
		if s.flags&flagResets != 0 {
			resets, k := binary.Uvarint(b)
			if k < 1 || resets > math.MaxUint32 || len(b) < k+8 {
				return nil, errSpecial
			}
			s.resets, s.corr = uint32(resets), cutFloat(b[k:])
			b = b[k+8:]
		}
		if s.flags&flagMinMax != 0 {
			if len(b) < 16 {
				return nil, errSpecial
			}
			s.min, s.max = cutFloat(b), cutFloat(b[8:])
			b = b[16:]
		}
		yield(int(at), s)
	}
	return b, nil
}

func cutFloat(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
