package store

import (
	"encoding/binary"
	"errors"
	"fmt"

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

// columns says which parts of an aggregate chunk a reader wants.
type columns uint8

const (
	colCount columns = 1 << iota
	colSum
	colMin
	colMax
	colEnds    // first and last samples, with their times
	colSpecial // resets and ends of series
	colLast    // the value of the last sample; colEnds has it too
	colAll     = colCount | colSum | colMin | colMax | colEnds | colSpecial
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

// xorColumn is the sub-chunk of one aggregate.
func xorColumn(bs []fold.Bucket, res int64, v func(b *fold.Bucket) float64) ([]byte, error) {
	c := chunkenc.NewXORChunk()
	app, err := c.Appender()
	if err != nil {
		return nil, err
	}
	for i := range bs {
		app.Append(0, bs[i].Start+res-1, v(&bs[i]))
	}
	return c.Bytes(), nil
}

// encodeAggr encodes up to maxChunkBuckets settled buckets (each with samples) of
// one series in time order.
func encodeAggr(bs []fold.Bucket, res int64) (*aggrChunk, error) {
	totals := runningTotals(bs)
	flags := chunkFlags(bs)
	var sub [subs][]byte
	for i, v := range [...]func(b *fold.Bucket) float64{
		subCount: func(b *fold.Bucket) float64 { return float64(b.Count) },
		subSum:   func(b *fold.Bucket) float64 { return b.Sum },
		subMin:   func(b *fold.Bucket) float64 { return b.Min },
		subMax:   func(b *fold.Bucket) float64 { return b.Max },
	} {
		if flags&absent[i] != 0 {
			continue
		}
		var err error
		if sub[i], err = xorColumn(bs, res, v); err != nil {
			return nil, err
		}
	}
	if flags&absent[subCounter] == 0 {
		var err error
		if sub[subCounter], err = counterColumn(bs, totals, res); err != nil {
			return nil, err
		}
	}
	var out []byte
	for _, d := range sub {
		out = binary.AppendUvarint(out, uint64(len(d)))
		if d != nil {
			out = append(out, byte(chunkenc.EncXOR))
			out = append(out, d...)
		}
	}
	out = append(out, extVersion, flags)
	out, err := appendEnds(appendSpecials(out, bs, flags), bs, flags, totals, res)
	if err != nil {
		return nil, err
	}
	return &aggrChunk{out}, nil
}

// runningTotals is the counter at the end of each bucket, resets taken into
// account, counted from the first raw sample on.
func runningTotals(bs []fold.Bucket) []float64 {
	out := make([]float64, len(bs))
	total := bs[0].First
	for i := range bs {
		if i > 0 {
			total += rise(bs[i-1].Last, bs[i].First)
		}
		total += bs[i].Increase()
		out[i] = total
	}
	return out
}

// rise is what a counter grew between two raw samples.
func rise(from, to float64) float64 {
	if to < from {
		return to
	}
	return to - from
}

// counterColumn is the counter sub-chunk as Thanos has it: the first raw sample
// first, the last raw value last.
func counterColumn(bs []fold.Bucket, totals []float64, res int64) ([]byte, error) {
	c := chunkenc.NewXORChunk()
	app, err := c.Appender()
	if err != nil {
		return nil, err
	}
	app.Append(0, bs[0].FirstT, bs[0].First)
	end := int64(0)
	for i, v := range totals {
		end = bs[i].Start + res - 1
		app.Append(0, end, v)
	}
	app.Append(0, end, bs[len(bs)-1].Last)
	return c.Bytes(), nil
}

// The flags of an extension: which sub-chunks are absent.
const (
	extNoSum     = 1 << 0
	extNoCounter = 1 << 1
	extNoMinMax  = 1 << 2 // a counter's are its first and last sample, mostly
	extFlagsMask = extNoSum | extNoCounter | extNoMinMax
)

// absent says by which flag each sub-chunk may be absent.
var absent = [subs]byte{subSum: extNoSum, subMin: extNoMinMax, subMax: extNoMinMax, subCounter: extNoCounter}

// chunkFlags says what a chunk of these buckets holds: what one of them lacks,
// none can have.
func chunkFlags(bs []fold.Bucket) byte {
	var lacks fold.Parts
	for i := range bs {
		lacks |= bs[i].Lacks
	}
	switch lacks {
	case fold.PartSum:
		return extNoSum | extNoMinMax
	case fold.PartCounter:
		return extNoCounter
	case fold.PartSum | fold.PartCounter:
		return extNoSum | extNoCounter
	}
	return 0
}

// lacks is chunkFlags' inverse.
func lacks(flags byte) (p fold.Parts) {
	if flags&extNoSum != 0 {
		p |= fold.PartSum
	}
	if flags&extNoCounter != 0 {
		p |= fold.PartCounter
	}
	return p
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

// decoder decodes one chunk after the other and keeps what it needs for that. It is
// for one goroutine at a time.
type decoder struct {
	chunk                chunkenc.XORChunk
	it                   chunkenc.Iterator
	times, firsts, lasts []int64
	totals               []float64
	values               []float64
	ends                 []int64
	ended                []int
	chunk2               chunkenc.XORChunk // a second column at the same time
	it2                  chunkenc.Iterator
	hist                 histDecoder
}

// decode appends the chunk's buckets to dst, the wanted columns filled in. The
// start of each window, the count and what is lacking are always there.
func (c *aggrChunk) decode(dst []fold.Bucket, res int64, want columns) ([]fold.Bucket, error) {
	return new(decoder).decode(c, dst, res, want)
}

// decode is the chunk's decode.
func (d *decoder) decode(c *aggrChunk, dst []fold.Bucket, res int64, want columns) ([]fold.Bucket, error) {
	var sub [subs][]byte
	rest := c.b
	var err error
	for i := range sub {
		if sub[i], rest, err = cutSub(rest); err != nil {
			return dst, err
		}
	}
	if len(rest) > 1 && rest[0] == extHistVersion {
		return d.decodeHists(dst, sub, rest[1], rest[2:], res, want)
	}
	if len(rest) < 2 || rest[0] != extVersion || rest[1]&^extFlagsMask != 0 {
		return dst, fmt.Errorf("%w: extension of an unknown version", errAggr)
	}
	flags := rest[1]
	base := len(dst)
	if dst, err = d.decodeStarts(dst, sub[subCount], res, lacks(flags)); err != nil {
		return dst[:base], err
	}
	if err := d.decodeColumns(dst[base:], sub, flags, want, rest[2:], res); err != nil {
		return dst[:base], err
	}
	return dst, nil
}

func (d *decoder) decodeColumns(bs []fold.Bucket, sub [subs][]byte, flags byte, want columns, ext []byte, res int64) error {
	for _, col := range [...]struct {
		want columns
		sub  int
		set  func(b *fold.Bucket, v float64)
	}{
		{colSum, subSum, func(b *fold.Bucket, v float64) { b.Sum = v }},
		{colMin, subMin, func(b *fold.Bucket, v float64) { b.Min = v }},
		{colMax, subMax, func(b *fold.Bucket, v float64) { b.Max = v }},
	} {
		if want&col.want == 0 || flags&absent[col.sub] != 0 {
			continue
		}
		if err := d.decodeColumn(bs, sub[col.sub], col.set); err != nil {
			return err
		}
	}
	if flags&extNoSum != 0 && want&colSum != 0 {
		want |= colLast // a counter's value is its last
	}
	derive := flags&extNoMinMax != 0 && want&(colMin|colMax) != 0
	if !derive && want&(colEnds|colSpecial|colLast) == 0 {
		return nil
	}
	rest, err := decodeSpecial(bs, ext)
	if err != nil || !derive && want&(colEnds|colLast) == 0 {
		return err
	}
	if !derive && want&colEnds == 0 {
		return d.decodeLast(bs, rest, sub[subCounter], flags)
	}
	if err := d.decodeEnds(bs, rest, sub[subCounter], flags, res); err != nil || !derive {
		return err
	}
	for i := range bs {
		bs[i].Min, bs[i].Max = bs[i].First, bs[i].Last
	}
	_, err = decodeSpecial(bs, ext) // has those that differ
	return err
}

// xor makes an iterator over a sub-chunk with its encoding byte. The one before is
// done with.
func (d *decoder) xor(sub []byte) (chunkenc.Iterator, error) {
	if len(sub) < 3 || chunkenc.Encoding(sub[0]) != chunkenc.EncXOR {
		return nil, fmt.Errorf("%w: a sub-chunk is missing or not of floats", errAggr)
	}
	d.chunk.Reset(sub[1:])
	d.it = d.chunk.Iterator(d.it)
	return d.it, nil
}

func (d *decoder) decodeStarts(dst []fold.Bucket, sub []byte, res int64, lacks fold.Parts) ([]fold.Bucket, error) {
	it, err := d.xor(sub)
	if err != nil {
		return dst, err
	}
	for it.Next() == chunkenc.ValFloat {
		t, v := it.At()
		if !(v >= 1 && v < 1<<53) {
			return dst, fmt.Errorf("%w: a bucket of %v samples", errAggr, v)
		}
		dst = append(dst, fold.Bucket{Start: t - res + 1, Count: uint64(v), Lacks: lacks})
	}
	return dst, it.Err()
}

func (d *decoder) decodeColumn(bs []fold.Bucket, sub []byte, set func(*fold.Bucket, float64)) error {
	it, err := d.xor(sub)
	if err != nil {
		return err
	}
	n := 0
	for ; n < len(bs) && it.Next() == chunkenc.ValFloat; n++ {
		_, v := it.At()
		set(&bs[n], v)
	}
	if it.Err() == nil && n < len(bs) {
		return fmt.Errorf("%w: %d of %d buckets in a sub-chunk", errAggr, n, len(bs))
	}
	return it.Err()
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
