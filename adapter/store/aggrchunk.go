package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/fold"
)

// encAggr is the encoding byte of an aggregate chunk, as Thanos has it: the
// highest, so that no encoding of the TSDB's own will meet it.
const encAggr = chunkenc.Encoding(0xff)

// The sub-chunks of an aggregate chunk, in Thanos' order. FORMAT.md has the bytes.
const (
	subCount = iota
	subSum
	subMin
	subMax
	subCounter
	subs
)

// extVersion is the version of what follows the fifth sub-chunk, which Thanos
// ignores.
const extVersion = 1

// maxChunkBuckets is how many buckets one aggregate chunk holds: a day of five
// minutes is one chunk, and a sub-chunk counts its samples in 16 bits.
const maxChunkBuckets = 288

// Flags of a bucket in the extension's list of special ones.
const (
	flagEnded  = 1 << 0
	flagResets = 1 << 1
)

// columns says which parts of an aggregate chunk a reader wants.
type columns uint8

const (
	colCount columns = 1 << iota
	colSum
	colMin
	colMax
	colFirst
	colLast
	colSpecial
	colAll = colCount | colSum | colMin | colMax | colFirst | colLast | colSpecial
)

// aggrChunk is an aggregate chunk's bytes. It implements chunkenc.Chunk as far as
// the TSDB's block writer and reader ask for it.
type aggrChunk struct{ b []byte }

var _ chunkenc.Chunk = &aggrChunk{}

var (
	errNoAppend = errors.New("aggregate chunks cannot be appended to")
	errAggr     = errors.New("malformed aggregate chunk")
)

func (c *aggrChunk) Bytes() []byte                                { return c.b }
func (c *aggrChunk) Encoding() chunkenc.Encoding                  { return encAggr }
func (c *aggrChunk) Appender() (chunkenc.Appender, error)         { return nil, errNoAppend }
func (c *aggrChunk) Iterator(chunkenc.Iterator) chunkenc.Iterator { return chunkenc.NewNopIterator() }
func (c *aggrChunk) Compact()                                     {}
func (c *aggrChunk) Reset(stream []byte)                          { c.b = stream }

// NumSamples is the number of buckets.
func (c *aggrChunk) NumSamples() int {
	sub, _, err := cutSub(c.b)
	if err != nil || len(sub) < 3 {
		return 0
	}
	return int(binary.BigEndian.Uint16(sub[1:]))
}

// column appends the samples of one sub-chunk.
type column struct {
	chk *chunkenc.XORChunk
	app chunkenc.Appender
}

func newColumn() (column, error) {
	c := column{chk: chunkenc.NewXORChunk()}
	var err error
	c.app, err = c.chk.Appender()
	return c, err
}

// encodeAggr encodes up to maxChunkBuckets settled buckets (each with samples) of
// one series in time order.
func encodeAggr(bs []fold.Bucket, res int64) (*aggrChunk, error) {
	var cols [subs + 2]column
	for i := range cols {
		var err error
		if cols[i], err = newColumn(); err != nil {
			return nil, err
		}
	}
	special := binary.AppendUvarint(nil, countSpecial(bs))
	counter, prev := bs[0].First, 0
	cols[subCounter].app.Append(0, bs[0].FirstT, counter)
	for i := range bs {
		b := &bs[i]
		end := b.Start + res - 1
		if i > 0 {
			counter += rise(bs[i-1].Last, b.First)
		}
		counter += b.Increase()
		cols[subCount].app.Append(0, end, float64(b.Count))
		cols[subSum].app.Append(0, end, b.Sum)
		cols[subMin].app.Append(0, end, b.Min)
		cols[subMax].app.Append(0, end, b.Max)
		cols[subCounter].app.Append(0, end, counter)
		cols[subs].app.Append(0, b.FirstT, b.First)
		cols[subs+1].app.Append(0, b.LastT, b.Last)
		if b.Ended || b.Resets > 0 {
			special = appendSpecial(special, b, i-prev)
			prev = i
		}
	}
	last := &bs[len(bs)-1]
	cols[subCounter].app.Append(0, last.Start+res-1, last.Last)

	var out []byte
	for i := range cols {
		if i == subs {
			out = append(out, extVersion)
		}
		d := cols[i].chk.Bytes()
		out = binary.AppendUvarint(out, uint64(len(d)))
		out = append(out, byte(chunkenc.EncXOR))
		out = append(out, d...)
	}
	return &aggrChunk{append(out, special...)}, nil
}

// rise is what a counter grew between two raw samples.
func rise(from, to float64) float64 {
	if to < from {
		return to
	}
	return to - from
}

func countSpecial(bs []fold.Bucket) (n uint64) {
	for i := range bs {
		if bs[i].Ended || bs[i].Resets > 0 {
			n++
		}
	}
	return n
}

func appendSpecial(dst []byte, b *fold.Bucket, gap int) []byte {
	dst = binary.AppendUvarint(dst, uint64(gap))
	var flags byte
	if b.Ended {
		flags |= flagEnded
	}
	if b.Resets == 0 {
		return append(dst, flags)
	}
	dst = append(dst, flags|flagResets)
	dst = binary.AppendUvarint(dst, uint64(b.Resets))
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(b.Corr))
}

// cutSub cuts the first sub-chunk, with its encoding byte, off b; it is nil where
// the aggregate is absent.
func cutSub(b []byte) (sub, rest []byte, err error) {
	l, n := binary.Uvarint(b)
	if n < 1 || l >= uint64(len(b)) {
		return nil, nil, fmt.Errorf("%w: length of a sub-chunk", errAggr)
	}
	b = b[n:]
	if l == 0 {
		return nil, b, nil
	}
	if uint64(len(b)) < l+1 {
		return nil, nil, fmt.Errorf("%w: a sub-chunk is cut short", errAggr)
	}
	return b[:l+1], b[l+1:], nil
}

// decode appends the chunk's buckets to dst, the wanted columns filled in. The
// start of each window is always there.
func (c *aggrChunk) decode(dst []fold.Bucket, res int64, want columns) ([]fold.Bucket, error) {
	var sub [subs + 2][]byte
	rest := c.b
	var err error
	for i := range sub {
		if i == subs {
			if len(rest) == 0 || rest[0] != extVersion {
				return dst, fmt.Errorf("%w: extension of an unknown version", errAggr)
			}
			rest = rest[1:]
		}
		if sub[i], rest, err = cutSub(rest); err != nil {
			return dst, err
		}
	}
	base := len(dst)
	dst, err = decodeStarts(dst, sub[subCount], res)
	if err != nil {
		return dst, err
	}
	bs := dst[base:]
	for _, col := range [...]struct {
		want columns
		sub  []byte
		set  func(b *fold.Bucket, t int64, v float64)
	}{
		{colSum, sub[subSum], func(b *fold.Bucket, _ int64, v float64) { b.Sum = v }},
		{colMin, sub[subMin], func(b *fold.Bucket, _ int64, v float64) { b.Min = v }},
		{colMax, sub[subMax], func(b *fold.Bucket, _ int64, v float64) { b.Max = v }},
		{colFirst, sub[subs], func(b *fold.Bucket, t int64, v float64) { b.FirstT, b.First = t, v }},
		{colLast, sub[subs+1], func(b *fold.Bucket, t int64, v float64) { b.LastT, b.Last = t, v }},
	} {
		if want&col.want == 0 {
			continue
		}
		if err := decodeColumn(bs, col.sub, col.set); err != nil {
			return dst[:base], err
		}
	}
	if want&colSpecial != 0 {
		if err := decodeSpecial(bs, rest); err != nil {
			return dst[:base], err
		}
	}
	return dst, nil
}

// xor makes an iterator over a sub-chunk with its encoding byte.
func xor(sub []byte) (chunkenc.Iterator, error) {
	if len(sub) < 3 || chunkenc.Encoding(sub[0]) != chunkenc.EncXOR {
		return nil, fmt.Errorf("%w: a sub-chunk is missing or not of floats", errAggr)
	}
	c, err := chunkenc.FromData(chunkenc.EncXOR, sub[1:])
	if err != nil {
		return nil, err
	}
	return c.Iterator(nil), nil
}

func decodeStarts(dst []fold.Bucket, sub []byte, res int64) ([]fold.Bucket, error) {
	it, err := xor(sub)
	if err != nil {
		return dst, err
	}
	for it.Next() == chunkenc.ValFloat {
		t, v := it.At()
		if !(v >= 1 && v < 1<<53) {
			return dst, fmt.Errorf("%w: a bucket of %v samples", errAggr, v)
		}
		dst = append(dst, fold.Bucket{Start: t - res + 1, Count: uint64(v)})
	}
	return dst, it.Err()
}

func decodeColumn(bs []fold.Bucket, sub []byte, set func(*fold.Bucket, int64, float64)) error {
	it, err := xor(sub)
	if err != nil {
		return err
	}
	n := 0
	for ; n < len(bs) && it.Next() == chunkenc.ValFloat; n++ {
		t, v := it.At()
		set(&bs[n], t, v)
	}
	if it.Err() == nil && n < len(bs) {
		return fmt.Errorf("%w: %d of %d buckets in a sub-chunk", errAggr, n, len(bs))
	}
	return it.Err()
}

func decodeSpecial(bs []fold.Bucket, b []byte) error {
	bad := fmt.Errorf("%w: list of special buckets", errAggr)
	n, k := binary.Uvarint(b)
	if k < 1 || n > uint64(len(bs)) {
		return bad
	}
	b = b[k:]
	var at uint64
	for range n {
		gap, k := binary.Uvarint(b)
		if k < 1 || gap >= uint64(len(bs)) || len(b) == k {
			return bad
		}
		if at += gap; at >= uint64(len(bs)) {
			return bad
		}
		flags := b[k]
		b = b[k+1:]
		bs[at].Ended = flags&flagEnded != 0
		if flags&flagResets == 0 {
			continue
		}
		resets, k := binary.Uvarint(b)
		if k < 1 || resets > math.MaxUint32 || len(b) < k+8 {
			return bad
		}
		bs[at].Resets = uint32(resets)
		bs[at].Corr = math.Float64frombits(binary.LittleEndian.Uint64(b[k:]))
		b = b[k+8:]
	}
	return nil
}

// aggrPool makes the chunks that a tier's blocks hold.
type aggrPool struct{}

func (aggrPool) Put(chunkenc.Chunk) error { return nil }

func (aggrPool) Get(e chunkenc.Encoding, b []byte) (chunkenc.Chunk, error) {
	if e != encAggr {
		return nil, fmt.Errorf("chunk of encoding %d in a block of buckets", e)
	}
	return &aggrChunk{b}, nil
}
