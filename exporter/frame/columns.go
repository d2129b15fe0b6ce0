package frame

import (
	"encoding/binary"
	"math/bits"
)

// columns is the rows of a frame turned round: what comes before the changes row
// by row, then the changes slot by slot. What belongs to one slot is much alike,
// so deflate makes a third less of it than of the rows.
//
// It is kept between frames for its memory.
type columns struct {
	slots  []slotColumn
	heads  []byte // the key row's and the rows' heads
	counts []byte // changes of each slot, uvarint
	gaps   []byte // ticks without a change before each change, uvarint, by slot
	deltas []byte // differences, zigzag, by slot
	active []int32
}

// slotColumn is one slot's place in the streams.
type slotColumn struct {
	next   uint32 // the tick after its last change; when reading, of its next one
	count  uint32
	gaps   uint32 // position
	deltas uint32
}

// turn fills the columns from the rows of a raw frame with n slots. It returns
// false when they are corrupt.
func (c *columns) turn(rows []byte, n int) bool {
	c.resize(n)
	c.heads = c.heads[:0]
	if !c.walk(rows, func(s *slotColumn, tick uint32, delta []byte) {
		s.count++
		s.gaps += uint32(uvarintLen(uint64(tick - s.next)))
		s.deltas += uint32(len(delta))
		s.next = tick + 1
	}) {
		return false
	}
	c.counts = c.counts[:0]
	gaps, deltas := uint32(0), uint32(0)
	for i := range c.slots {
		s := &c.slots[i]
		c.counts = binary.AppendUvarint(c.counts, uint64(s.count))
		s.next = 0
		s.gaps, gaps = gaps, gaps+s.gaps
		s.deltas, deltas = deltas, deltas+s.deltas
	}
	c.gaps, c.deltas = sized(c.gaps, int(gaps)), sized(c.deltas, int(deltas))
	c.heads = c.heads[:0]
	return c.walk(rows, func(s *slotColumn, tick uint32, delta []byte) {
		s.gaps += uint32(binary.PutUvarint(c.gaps[s.gaps:], uint64(tick-s.next)))
		s.deltas += uint32(copy(c.deltas[s.deltas:], delta))
		s.next = tick + 1
	})
}

// walk calls f for each change in the rows, and gathers the heads. Tick 0 is the
// key row.
func (c *columns) walk(rows []byte, f func(s *slotColumn, tick uint32, delta []byte)) bool {
	n := len(c.slots)
	cur := cursor{b: rows}
	for tick := uint32(0); cur.pos < len(rows); tick++ {
		at := cur.pos
		if tick == 0 && !cur.keyHead(n) || tick > 0 && !cur.rowHead() {
			return false
		}
		c.heads = append(c.heads, rows[at:cur.pos]...)
		for slot := 0; slot < n; slot++ {
			skip, ok := cur.uvarint()
			if !ok || skip > uint64(n-slot) {
				return false
			}
			if slot += int(skip); slot == n {
				break
			}
			at := cur.pos
			if _, ok := cur.uvarint(); !ok {
				return false
			}
			f(&c.slots[slot], tick, rows[at:cur.pos])
		}
	}
	return true
}

// maxWork bounds the steps that turning columns back takes, about half a second's.
// A raw frame of 64 KiB stays below it, whatever is in it.
const maxWork = 1 << 28

// work is how many steps turning back takes: every tick looks at every slot that
// ever changes.
func (c *columns) work(ticks uint32) uint64 {
	active := uint64(0)
	for i := range c.slots {
		if c.slots[i].count > 0 {
			active++
		}
	}
	return uint64(ticks) * active
}

// appendRows turns the columns of a frame back: it appends the rows to dst and
// returns false when the columns are corrupt or the rows too long.
func (c *columns) appendRows(dst []byte, in *Info) ([]byte, bool) {
	n := in.Slots
	if !c.locate(n) || c.work(in.Ticks) > maxWork {
		return dst, false
	}
	limit := len(dst) + in.RawLen
	heads := cursor{b: c.heads}
	gaps, deltas := cursor{b: c.gaps}, cursor{b: c.deltas}
	for tick := range in.Ticks {
		at := heads.pos
		if tick == 0 && !heads.keyHead(n) || tick > 0 && !heads.rowHead() {
			return dst, false
		}
		dst = append(dst, heads.b[at:heads.pos]...)
		run := 0
		for _, i := range c.active {
			s := &c.slots[i]
			if s.next != tick || s.count == 0 {
				continue
			}
			dst = binary.AppendUvarint(dst, uint64(int(i)-run))
			run = int(i) + 1
			deltas.pos = int(s.deltas)
			deltas.uvarint()
			dst = append(dst, deltas.b[s.deltas:deltas.pos]...)
			s.deltas = uint32(deltas.pos)
			if s.count--; s.count > 0 {
				gaps.pos = int(s.gaps)
				gap, _ := gaps.uvarint()
				s.gaps = uint32(gaps.pos)
				s.next = tick + 1 + uint32(min(gap, MaxBytes))
			}
		}
		if run < n {
			dst = binary.AppendUvarint(dst, uint64(n-run))
		}
		if len(dst) > limit {
			return dst, false
		}
	}
	for _, i := range c.active {
		if c.slots[i].count != 0 {
			return dst, false
		}
	}
	return dst, heads.pos == len(heads.b)
}

// locate finds where each slot's part of the streams is, which ends where the next
// one's begins, and reads the tick of its first change.
func (c *columns) locate(n int) bool {
	counts, gaps, deltas := cursor{b: c.counts}, cursor{b: c.gaps}, cursor{b: c.deltas}
	if len(c.counts) < n {
		return false
	}
	c.resize(n)
	c.active = c.active[:0]
	for i := range c.slots {
		s := &c.slots[i]
		count, ok := counts.uvarint()
		if !ok || count > uint64(len(c.deltas)) {
			return false
		}
		if count == 0 {
			continue
		}
		c.active = append(c.active, int32(i))
		s.count, s.deltas = uint32(count), uint32(deltas.pos)
		first, ok := gaps.uvarint()
		s.next, s.gaps = uint32(min(first, MaxBytes)), uint32(gaps.pos)
		if !ok || !gaps.uvarints(count-1) || !deltas.uvarints(count) {
			return false
		}
	}
	return counts.pos == len(counts.b) && gaps.pos == len(gaps.b) && deltas.pos == len(deltas.b)
}

func (c *columns) resize(n int) {
	if cap(c.slots) < n {
		c.slots = make([]slotColumn, n)
	}
	c.slots = c.slots[:n]
	clear(c.slots)
}

// sized is b with length n, its content of no meaning.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

func uvarintLen(v uint64) int { return max(1, (bits.Len64(v)+6)/7) }
