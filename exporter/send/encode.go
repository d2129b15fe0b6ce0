package send

import (
	"encoding/binary"
	"math"

	"github.com/golang/snappy"

	"github.com/ticktier/ticktier/collectors"
)

// staleNaN is the value of a staleness marker, as both specifications give it.
const staleNaN = 0x7ff0000000000002

// noStart stands for a start time that is not known.
const noStart = math.MinInt64

// blockSize is what snappy compresses at a time. A request is compressed block by
// block as it is encoded, so that it is never in memory as a whole: the result is
// an ordinary snappy block-format body.
const blockSize = 64 << 10

// bounds of one request. A request holds one series at least, whatever they say.
type bounds struct {
	bytes   int // compressed
	samples int
	series  int // 0 is as many as a section has
}

// request is one encoded request.
type request struct {
	body     []byte // valid until the next encode
	from, to int    // slots [from, to)
	series   int
	samples  int // staleness markers included: receivers count them as samples
	markers  int
	skipped  int // samples of series that are left out
	saved    int // samples of counters that did not move
	cut      int // and of reads that were thinned out, about
	hidden   int // and of series that are not wanted
	metadata bool
	first    int64 // wall time of its oldest sample, ms
	last     int64 // and its newest
}

// encoder turns batches into request bodies. It allocates only to grow.
type encoder struct {
	out   []byte // head of five bytes, then the compressed blocks
	raw   []byte // encoded, not yet compressed
	block []byte // room to compress one block
	total int    // bytes encoded

	// skip has the bit of every slot that is left out and counted, hide of those that
	// are not wanted.
	skip, hide []uint64

	idx   [batchTicks]uint16
	kept  [batchTicks]uint16
	stale [batchTicks / 64]uint64
	vals  [batchTicks]uint64
	req   request
}

// headLen is room for the uncompressed length, which is only known at the end.
const headLen = 5

// encode encodes the series of slots from … until a section or a bound ends; the
// request says where. metadata adds all metadata to a 1.0 request. starts, by
// slot, are the wall times in ms at which counters started, noStart where that is
// not known; nil leaves them out.
func (e *encoder) encode(t *table, b *batch, from int, lim bounds, metadata bool, starts []int64) *request {
	sec := t.section(from)
	end := min(sec.to, b.slots)
	e.begin(sec, from)
	if metadata {
		e.req.metadata = true
		e.write(t.metadata)
	}
	slot := from
	for ; slot < end; slot++ {
		start := int64(noStart)
		if starts != nil {
			start = starts[slot]
		}
		if !e.appendSeries(t, b, slot, start, lim) {
			break
		}
	}
	e.req.to = slot
	e.finish()
	return &e.req
}

func (e *encoder) begin(sec *section, from int) {
	if cap(e.out) < headLen {
		e.out = make([]byte, headLen, blockSize/2)
		e.raw = make([]byte, 0, blockSize)
	}
	e.out, e.raw, e.total = e.out[:headLen], e.raw[:0], 0
	e.req = request{from: from, first: math.MaxInt64, last: math.MinInt64}
	e.write(sec.header)
}

// write appends bytes of any length.
func (e *encoder) write(p []byte) {
	for len(p) > 0 {
		if len(e.raw) >= blockSize {
			e.flush()
		}
		n := min(len(p), blockSize-len(e.raw))
		e.raw = append(e.raw, p[:n]...)
		p = p[n:]
	}
}

// flush compresses what is encoded.
func (e *encoder) flush() {
	if len(e.raw) == 0 {
		return
	}
	if n := snappy.MaxEncodedLen(len(e.raw)); len(e.block) < n {
		e.block = make([]byte, n)
	}
	c := snappy.Encode(e.block, e.raw)
	_, head := binary.Uvarint(c) // the length of this block alone
	e.out = append(e.out, c[head:]...)
	e.total += len(e.raw)
	e.raw = e.raw[:0]
}

// finish puts the uncompressed length before the blocks.
func (e *encoder) finish() {
	e.flush()
	n := uvarintLen(uint64(e.total))
	binary.PutUvarint(e.out[headLen-n:headLen], uint64(e.total))
	e.req.body = e.out[headLen-n:]
}

// seriesTag is the tag of a TimeSeries in a request.
func (t *table) seriesTag() byte {
	if t.protocol == V2 {
		return 5<<3 | 2
	}
	return 1<<3 | 2
}

// appendSeries appends one series' message; false means that a bound is reached
// and it was not.
func (e *encoder) appendSeries(t *table, b *batch, slot int, start int64, lim bounds) bool {
	at := b.pending(slot)
	if at == 0 {
		return e.appendOf(t, b, slot, start, lim)
	}
	// The row before the batch stands for another time in each slot.
	row := &b.ticks[0]
	was := *row
	row.ms, row.enc = at, shortField(2, at)
	ok := e.appendOf(t, b, slot, start, lim)
	*row = was
	return ok
}

func (e *encoder) appendOf(t *table, b *batch, slot int, start int64, lim bounds) bool {
	s := &t.series[slot]
	if w := slot >> 6; w < len(e.hide) && e.hide[w]>>(slot&63)&1 == 1 {
		if b.has(len(b.ticks)-1, slot) {
			e.req.hidden += len(b.of[s.Source&63])
		}
		return true
	}
	if s.Type.Companion() {
		return true
	}
	if at := t.timeOf(slot); at >= 0 {
		return e.appendTimed(t, b, slot, at, start, lim)
	}
	clear(e.stale[:])
	idx, markers := b.samples(slot, s.Source, e.idx[:], &e.stale)
	saved := 0
	if b.flat != nil && rising(s.Metric) {
		idx, saved = b.moving(slot, idx, e.kept[:], &e.stale)
	}
	if len(idx) == 0 {
		e.req.saved += saved
		return true
	}
	if w := slot >> 6; w < len(e.skip) && e.skip[w]>>(slot&63)&1 == 1 {
		e.req.skipped += len(idx)
		e.req.saved += saved
		return true
	}
	p := t.parts[slot]
	short := b.short && markers == 0 && (start == noStart || start >= 1<<35 && start < 1<<42)
	size := int(p.end - p.labels)
	if short {
		size += len(idx) * shortLen(start)
	} else {
		for _, i := range idx {
			size += 2 + e.sampleLen(b, i, start)
		}
	}
	if e.req.series > 0 && !e.room(lim, len(idx), size) {
		return false
	}
	e.req.saved += saved
	if len(e.raw)+size+maxHead+slack > blockSize {
		e.flush()
	}
	e.load(s.Metric, b, slot, idx)
	e.raw = append(e.raw, t.seriesTag())
	e.raw = appendUvarint(e.raw, uint64(size))
	e.raw = append(e.raw, t.bytes[p.labels:p.metadata]...)
	if short {
		e.appendShort(b, idx, start)
	} else {
		e.appendSamples(b, idx, start)
	}
	e.raw = append(e.raw, t.bytes[p.metadata:p.end]...)
	if cut := b.cut[s.Source&63]; cut > 0 && b.has(len(b.ticks)-1, slot) {
		e.req.cut += int(cut)
	}
	e.count(b, idx, markers)
	return true
}

const (
	maxHead = 1 + 10 // a TimeSeries' tag and length
	slack   = 8      // appendShort stores whole words
)

// room reports whether a series of so many samples and bytes still fits.
func (e *encoder) room(lim bounds, samples, size int) bool {
	return (lim.series == 0 || e.req.series < lim.series) &&
		e.req.samples+samples <= lim.samples &&
		len(e.out)+snappy.MaxEncodedLen(len(e.raw)+size+maxHead) <= lim.bytes
}

func (e *encoder) count(b *batch, idx []uint16, markers int) {
	e.req.series++
	e.req.samples += len(idx)
	e.req.markers += markers
	e.req.first = min(e.req.first, b.ticks[idx[0]].ms)
	e.req.last = max(e.req.last, b.ticks[idx[len(idx)-1]].ms)
}

// load puts the exported values of the listed ticks, as the bits of floats, into
// vals. It computes what Metric.Value computes.
func (e *encoder) load(m *collectors.Metric, b *batch, slot int, idx []uint16) {
	vals := e.vals[:len(idx)]
	values, stride := b.values, b.stride
	switch m.Kind {
	case collectors.Float:
		for k, i := range idx {
			vals[k] = uint64(values[int(i)*stride+slot])
		}
	case collectors.Signed:
		for k, i := range idx {
			vals[k] = math.Float64bits(float64(values[int(i)*stride+slot]))
		}
	default:
		for k, i := range idx {
			vals[k] = math.Float64bits(float64(uint64(values[int(i)*stride+slot])))
		}
	}
	if m.Mul != 0 && m.Mul != 1 {
		for k, v := range vals {
			vals[k] = math.Float64bits(math.Float64frombits(v) * m.Mul)
		}
	}
	if m.Div != 0 && m.Div != 1 {
		for k, v := range vals {
			vals[k] = math.Float64bits(math.Float64frombits(v) / m.Div)
		}
	}
}

// shortLen is the length of a sample field whose times take six bytes: its tag and
// length, the value, the time and, where known, the start time.
func shortLen(start int64) int {
	if start == noStart {
		return 2 + 9 + 7
	}
	return 2 + 9 + 7 + 7
}

// appendShort appends samples whose times take six bytes each. A value of zero is
// written too: fields that never move compress best.
func (e *encoder) appendShort(b *batch, idx []uint16, start int64) {
	size := shortLen(start)
	n := len(e.raw)
	if cap(e.raw) < n+len(idx)*size+slack {
		e.raw = append(e.raw, make([]byte, len(idx)*size+slack)...)[:n]
	}
	p := e.raw[n : n+len(idx)*size+slack]
	head := uint32(2<<3|2) | uint32(size-2)<<8 | (1<<3|1)<<16
	vals := e.vals[:len(idx)]
	if start == noStart {
		for k, i := range idx {
			q := p[k*18 : k*18+26]
			binary.LittleEndian.PutUint32(q, head)
			binary.LittleEndian.PutUint64(q[3:], vals[k])
			binary.LittleEndian.PutUint64(q[11:], b.ticks[i].enc)
		}
	} else {
		st := shortField(3, start)
		for k, i := range idx {
			q := p[k*25 : k*25+33]
			binary.LittleEndian.PutUint32(q, head)
			binary.LittleEndian.PutUint64(q[3:], vals[k])
			binary.LittleEndian.PutUint64(q[11:], b.ticks[i].enc)
			binary.LittleEndian.PutUint64(q[18:], st)
		}
	}
	e.raw = e.raw[:n+len(idx)*size]
}

// sampleLen is the length of a Sample message with any time.
func (e *encoder) sampleLen(b *batch, i uint16, start int64) int {
	n := 9 + 1 + uvarintLen(uint64(b.ticks[i].ms))
	if start != noStart && !e.isStale(i) {
		n += 1 + uvarintLen(uint64(start))
	}
	return n
}

func (e *encoder) isStale(i uint16) bool { return e.stale[i>>6]>>(i&63)&1 == 1 }

// appendSamples appends samples and staleness markers with any times.
func (e *encoder) appendSamples(b *batch, idx []uint16, start int64) {
	for k, i := range idx {
		v := e.vals[k]
		if e.isStale(i) {
			v = staleNaN
		}
		e.raw = append(e.raw, 2<<3|2, byte(e.sampleLen(b, i, start)), 1<<3|1)
		e.raw = binary.LittleEndian.AppendUint64(e.raw, v)
		e.raw = appendUvarint(append(e.raw, 2<<3), uint64(b.ticks[i].ms))
		if start != noStart && !e.isStale(i) {
			e.raw = appendUvarint(append(e.raw, 3<<3), uint64(start))
		}
	}
}
