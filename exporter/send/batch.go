package send

import (
	"math"
	"math/bits"
	"slices"

	"github.com/ticktier/ticktier/exporter/frame"
)

// Bounds of a batch. The buffer is the largest piece of memory that a sender
// holds, and the whole exporter is to fit in 12 MiB: 96 Ki values are 768 KiB,
// five seconds at 10 Hz of 1,900 series.
const (
	batchValues = 96 << 10
	batchTicks  = 256
)

// batch is a run of ticks as they came from the ring, row by row. Encoding walks
// it column by column: eight neighbouring slots share the cache lines of a column.
type batch struct {
	slots, stride, words int
	values               []int64  // stride to a row
	present              []uint64 // words to a row
	ticks                []stamp

	// live has the bit of every slot whose last word to the receiver was a sample,
	// as of before the batch; after is the same behind it, and is written by
	// encoding.
	live, after []uint64

	// With a flat interval: the first row may be the tick before the batch.
	first  int
	flat   *flatness
	flatMs int64

	// By source, how many reads were left out since the batch before.
	cut [64]uint16

	// Worked out by prepare.
	all   []uint64 // slots present in every tick
	of    [64][]uint16
	ofBuf []uint16
	short bool // every time takes six bytes, as all from 1971 to 2109 do
}

// stamp is what is known of one tick of a batch.
type stamp struct {
	seq  uint64
	mono int64  // ns
	ms   int64  // wall time
	read uint64 // sources
	enc  uint64 // field 2 of Sample with ms, where batch.short
}

// reset empties the batch and makes it hold rows of n slots.
func (b *batch) reset(n int) {
	b.slots, b.words = n, (n+63)/64
	b.stride = n
	if n&511 == 0 {
		b.stride += 8 // rows a multiple of a page apart would share cache sets
	}
	b.ticks, b.first = b.ticks[:0], 0
	b.cut = [64]uint16{}
	b.values = b.values[:0]
	b.present = b.present[:0]
	for len(b.live) < b.words {
		b.live = append(b.live, 0)
		b.after = append(b.after, 0)
	}
}

// len is the number of ticks in the batch.
func (b *batch) len() int { return len(b.ticks) - b.first }

// full reports whether there is no room for another tick.
func (b *batch) full() bool {
	return b.len() > 0 && (len(b.ticks) >= batchTicks || (len(b.ticks)+1)*b.stride > batchValues)
}

// add copies a tick. Slots beyond the batch's are left out, missing ones absent.
func (b *batch) add(t *frame.Tick, ms int64) {
	b.ticks = append(b.ticks, stamp{seq: t.Seq, mono: t.Time, ms: ms, read: t.Read})
	n := len(b.values)
	b.values = slices.Grow(b.values, b.stride)[:n+b.stride]
	row := b.values[n:]
	clear(row[copy(row, t.Values[:min(len(t.Values), b.slots)]):])
	p := len(b.present)
	b.present = slices.Grow(b.present, b.words)[:p+b.words]
	bitmap := b.present[p:]
	clear(bitmap[copy(bitmap, t.Present[:min(len(t.Present), b.words)]):])
	// A slot without a value is not there, whatever its bit says.
	for w := len(t.Values) >> 6; w < b.words; w++ {
		bitmap[w] &= mask(len(t.Values) - w<<6)
	}
	if b.words > 0 {
		bitmap[b.words-1] &= mask(b.slots - (b.words-1)<<6)
	}
}

// mask has the lowest n bits set, n being cut to 0…64.
func mask(n int) uint64 {
	switch {
	case n <= 0:
		return 0
	case n >= 64:
		return math.MaxUint64
	default:
		return 1<<n - 1
	}
}

// prepare works out what encoding needs of the ticks as a whole.
func (b *batch) prepare() {
	b.all = append(b.all[:0], b.present[:min(len(b.present), b.words)]...)
	var read uint64
	b.short = true
	for i := range b.ticks {
		t := &b.ticks[i]
		read |= t.read
		b.short = b.short && t.ms >= 1<<35 && t.ms < 1<<42
		t.enc = shortField(2, t.ms)
		for w, v := range b.present[i*b.words : (i+1)*b.words] {
			b.all[w] &= v
		}
	}
	b.ofBuf = b.ofBuf[:0]
	b.of = [64][]uint16{}
	for m := read; m != 0; m &= m - 1 {
		src := bits.TrailingZeros64(m)
		start := len(b.ofBuf)
		for i := b.first; i < len(b.ticks); i++ {
			if b.ticks[i].read>>src&1 == 1 {
				b.ofBuf = append(b.ofBuf, uint16(i))
			}
		}
		b.of[src] = b.ofBuf[start:len(b.ofBuf):len(b.ofBuf)]
	}
	copy(b.after, b.live)
}

// shortField is a varint field of a number that takes six bytes, as the seven
// lowest bytes of a word.
func shortField(field byte, v int64) uint64 {
	u := uint64(v)
	w := uint64(field << 3)
	for i := range 6 {
		w |= (u & 0x7f) << (8 * (i + 1))
		if i < 5 {
			w |= 0x80 << (8 * (i + 1))
		}
		u >>= 7
	}
	return w
}

// done makes what was live behind the batch what is live before the next.
func (b *batch) done() {
	b.live, b.after = b.after, b.live
	if b.flat != nil {
		b.flat.done(b)
	}
}

// has reports whether a slot is present in tick i.
func (b *batch) has(i, slot int) bool {
	return b.present[i*b.words+slot>>6]>>(slot&63)&1 == 1
}

// samples lists the ticks in which a series of source src has a sample or, with
// its bit in stale set, a staleness marker. dst is used where the list has to be
// made; it is batchTicks long. It also notes whether the series lives on.
func (b *batch) samples(slot int, src uint8, dst []uint16, stale *[batchTicks / 64]uint64) (idx []uint16, markers int) {
	w, bit := slot>>6, uint64(1)<<(slot&63)
	live := b.live[w]&bit != 0
	if b.all[w]&bit != 0 {
		idx = b.of[src&63]
		b.setAfter(w, bit, live || len(idx) > 0)
		return idx, 0
	}
	idx = dst[:0]
	for i := b.first; i < len(b.ticks); i++ {
		switch {
		case !b.has(i, slot):
			if live {
				stale[i>>6] |= 1 << (i & 63)
				idx = append(idx, uint16(i))
				markers++
				live = false
			}
		case b.ticks[i].read>>(src&63)&1 == 1:
			idx = append(idx, uint16(i))
			live = true
		}
	}
	b.setAfter(w, bit, live)
	return idx, markers
}

func (b *batch) setAfter(w int, bit uint64, live bool) {
	if live {
		b.after[w] |= bit
	} else {
		b.after[w] &^= bit
	}
}
