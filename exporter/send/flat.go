package send

import (
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// flatness is what has to be remembered of a lane so that a counter that does not
// move is sent seldom: of each slot when it was sent last, and the newest sample that
// was not sent, which may yet turn out to be the one before a move.
type flatness struct {
	// Wall ms by slot, 0 is never, as of before and behind the batch: of the sample that
	// was sent last, and of the newest one if that was not.
	sent, after     []int64
	pend, pendAfter []int64
	val             []int64  // behind the batch, by slot: the value of the newest sample
	has             []uint64 // the slots of which that is known

	prev  frame.Tick // the newest tick, with val for what it holds
	stamp stamp
	known bool // prev is there
}

// prepare makes room for so many slots and what is behind the batch what is before.
func (f *flatness) prepare(slots int) {
	for len(f.sent) < slots {
		f.sent, f.pend, f.val = append(f.sent, 0), append(f.pend, 0), append(f.val, 0)
	}
	for len(f.has) < (slots+63)/64 {
		f.has = append(f.has, 0)
	}
	clear(f.has)
	f.after = append(f.after[:0], f.sent...)
	f.pendAfter = append(f.pendAfter[:0], f.pend...)
}

// done makes what is behind the batch what is before the next.
func (f *flatness) done(b *batch) {
	f.sent, f.after = f.after, f.sent
	f.pend, f.pendAfter = f.pendAfter, f.pend
	i := len(b.ticks) - 1
	f.stamp, f.known = b.ticks[i], true
	f.prev.Values = append(f.prev.Values[:0], b.values[i*b.stride:i*b.stride+b.slots]...)
	f.prev.Present = append(f.prev.Present[:0], b.present[i*b.words:(i+1)*b.words]...)
	for w, m := range f.has {
		for ; m != 0; m &= m - 1 {
			slot := w<<6 + bits.TrailingZeros64(m)
			f.prev.Values[slot] = f.val[slot]
		}
	}
}

// follow makes f the state of the batch, whose first row is then the tick before it.
func (b *batch) follow(f *flatness, interval time.Duration) {
	b.flat, b.flatMs = f, interval.Milliseconds()
	f.prepare(b.slots)
	if f.known {
		b.add(&f.prev, f.stamp.ms)
		b.ticks[0] = f.stamp
		b.first = 1
	}
}

// pending is the time of a slot's newest sample before the batch, which the first row
// stands for, if that was not sent; 0 is none.
func (b *batch) pending(slot int) int64 {
	if b.flat == nil || b.first == 0 || slot >= len(b.flat.pend) {
		return 0
	}
	return b.flat.pend[slot]
}

// moving leaves of the samples of a counter, listed in idx, those that tell nothing:
// one that has the value of the sample before it and of the one after it, and comes
// less than the interval after the one that was sent last. dst is used for the list.
// saved is how many fewer samples there are, negative where one that was left out
// before is sent after all.
func (b *batch) moving(slot int, idx, dst []uint16, stale *[batchTicks / 64]uint64) (out []uint16, saved int) {
	out = dst[:0]
	sent := b.flat.sent[slot]
	prev, pending := -1, false
	if b.first == 1 && b.has(0, slot) && sent != 0 {
		prev, pending = 0, b.flat.pend[slot] != 0
	}
	send := func(i int) { out, sent = append(out, uint16(i)), b.ticks[i].ms }
	for _, k := range idx {
		i := int(k)
		if stale[i>>6]>>(i&63)&1 == 1 {
			if pending {
				send(prev)
			}
			out = append(out, k)
			prev, pending, sent = -1, false, 0
			continue
		}
		moved := prev < 0 || b.values[i*b.stride+slot] != b.values[prev*b.stride+slot]
		if moved && pending {
			send(prev)
		}
		if pending = !moved && b.ticks[i].ms-sent < b.flatMs; !pending {
			send(i)
		}
		prev = i
	}
	f := b.flat
	f.after[slot], f.pendAfter[slot] = sent, 0
	if pending {
		f.pendAfter[slot] = b.ticks[prev].ms
	}
	f.has[slot>>6] &^= 1 << (slot & 63)
	if prev >= 0 {
		f.val[slot] = b.values[prev*b.stride+slot]
		f.has[slot>>6] |= 1 << (slot & 63)
	}
	return out, len(idx) - len(out)
}

// clone is a copy that shares nothing.
func (f *flatness) clone() flatness {
	c := *f
	c.sent, c.after, c.pend, c.pendAfter = slices.Clone(f.sent), nil, slices.Clone(f.pend), nil
	c.val, c.has = slices.Clone(f.val), nil
	c.prev.Values, c.prev.Present = slices.Clone(f.prev.Values), slices.Clone(f.prev.Present)
	return c
}

// rising reports whether a metric may be sent seldom while it does not move: a counter,
// or what node_exporter calls untyped of the kernel's, which are counters but for one.
func rising(m *collectors.Metric) bool {
	return m.Type == collectors.Counter ||
		m.Type == collectors.Untyped && m.Kind == collectors.Unsigned && !strings.HasSuffix(m.Name, "_CurrEstab")
}
