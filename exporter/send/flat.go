package send

import (
	"slices"
	"time"

	"github.com/ticktier/ticktier/exporter/frame"
)

// flatness is what has to be remembered of a lane so that a counter that does not
// move is sent seldom: of each slot when it was sent last, and the newest tick,
// whose samples may yet turn out to be the ones before a move.
type flatness struct {
	sent, after []int64 // wall ms, by slot; 0 is never. As of before and behind the batch
	prev        frame.Tick
	stamp       stamp
	known       bool // prev is there
}

// prepare makes room for so many slots and what is behind the batch what is before.
func (f *flatness) prepare(slots int) {
	for len(f.sent) < slots {
		f.sent = append(f.sent, 0)
	}
	f.after = append(f.after[:0], f.sent...)
}

// done makes what is behind the batch what is before the next.
func (f *flatness) done(b *batch) {
	f.sent, f.after = f.after, f.sent
	i := len(b.ticks) - 1
	f.stamp, f.known = b.ticks[i], true
	f.prev.Values = append(f.prev.Values[:0], b.values[i*b.stride:i*b.stride+b.slots]...)
	f.prev.Present = append(f.prev.Present[:0], b.present[i*b.words:(i+1)*b.words]...)
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

// moving leaves of the samples of a counter, listed in idx, those that tell nothing:
// one that has the value of the sample before it and of the one after it, and comes
// less than the interval after the one that was sent last. dst is used for the list.
// saved is how many fewer samples there are, negative where one that was left out
// before is sent after all.
func (b *batch) moving(slot int, src uint8, idx, dst []uint16, stale *[batchTicks / 64]uint64) (out []uint16, saved int) {
	out = dst[:0]
	sent := b.flat.sent[slot]
	prev, pending := -1, false
	if b.first == 1 && b.has(0, slot) && sent != 0 {
		prev = 0
		pending = b.ticks[0].read>>(src&63)&1 == 1 && sent < b.ticks[0].ms
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
	// Only of the newest tick is the sample at hand when the next batch shows that
	// it was the last before a move.
	if pending && prev != len(b.ticks)-1 && prev >= b.first {
		send(prev)
	}
	b.flat.after[slot] = sent
	return out, len(idx) - len(out)
}

// clone is a copy that shares nothing.
func (f *flatness) clone() flatness {
	c := *f
	c.sent, c.after = slices.Clone(f.sent), nil
	c.prev.Values, c.prev.Present = slices.Clone(f.prev.Values), slices.Clone(f.prev.Present)
	return c
}
