package frame

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Iterator reads the ticks of one frame, sealed or open. It never panics and never
// reads past its bytes, whatever they are; it takes memory only for as many slots
// as the bytes can hold. The zero value is ready for Reset. Not safe for
// concurrent use.
type Iterator struct {
	cursor // over the rows
	info   Info
	tick   Tick
	n      uint32 // ticks read
	err    error

	gridSeq  uint64
	gridTime int64
	period   int64

	masks  [MaxMasks]uint64
	nmasks int
}

// Reset starts at the first tick of a frame. The iterator keeps b until the next
// Reset. A compressed frame is refused with ErrCompressed.
func (it *Iterator) Reset(b []byte) error {
	it.b, it.pos, it.n, it.err = nil, 0, 0, nil
	if it.err = it.load(b); it.err != nil {
		return it.err
	}
	it.gridSeq = it.info.FirstSeq
	it.gridTime = int64(binary.LittleEndian.Uint64(b[offBase:]))
	it.period = int64(binary.LittleEndian.Uint64(b[offPeriod:]))
	it.pos = headerLen
	return nil
}

// Extend goes on where the iterator is, in the same frame with more bytes: the
// rows it already read are taken as unchanged.
func (it *Iterator) Extend(b []byte) error {
	if it.err != nil {
		return it.err
	}
	if len(b) < it.pos {
		it.err = fmt.Errorf("%w: a frame that shrank", ErrCorrupt)
		return it.err
	}
	slots, first := it.info.Slots, it.info.FirstSeq
	if it.err = it.load(b); it.err != nil {
		return it.err
	}
	if it.info.Slots != slots || it.info.FirstSeq != first || len(it.b) < it.pos {
		it.err = fmt.Errorf("%w: another frame than before", ErrCorrupt)
	}
	return it.err
}

func (it *Iterator) load(b []byte) error {
	info, err := Parse(b)
	if err != nil {
		return err
	}
	if info.Codec != Raw {
		return ErrCompressed
	}
	it.info, it.b = info, b
	if info.Sealed {
		it.b = b[:len(b)-trailerLen]
	}
	return nil
}

// Info is what the frame says of itself.
func (it *Iterator) Info() Info { return it.info }

// Pos is how many bytes of the frame were read.
func (it *Iterator) Pos() int { return it.pos }

// Tick is the tick that Next found, valid until the next call of any method.
func (it *Iterator) Tick() *Tick { return &it.tick }

// Err is why Next returned false, or nil at the end of the rows.
func (it *Iterator) Err() error { return it.err }

// Next reads the next tick. It returns false at the end of the rows and on a
// corrupt one.
func (it *Iterator) Next() bool {
	if it.err != nil || it.pos == 0 {
		return false
	}
	if it.pos == len(it.b) {
		it.checkEnd()
		return false
	}
	var ok bool
	at := it.pos
	if it.n == 0 {
		ok = it.keyRow()
	} else {
		ok = it.row()
	}
	if !ok {
		it.err = fmt.Errorf("%w: row %d at byte %d", ErrCorrupt, it.n, at)
		return false
	}
	it.n++
	return true
}

// checkEnd compares what was read with what the trailer says.
func (it *Iterator) checkEnd() {
	in := &it.info
	if in.Sealed && (it.n != in.Ticks || it.tick.Seq != in.LastSeq || it.tick.Time != in.LastTime) {
		it.err = fmt.Errorf("%w: %d ticks to %d, the trailer says %d to %d",
			ErrCorrupt, it.n, it.tick.Seq, in.Ticks, in.LastSeq)
	}
}

func (it *Iterator) keyRow() bool {
	n := it.info.Slots
	dev, ok := it.zigzag()
	if !ok || len(it.b)-it.pos < 8+(n+7)/8 {
		return false
	}
	t := &it.tick
	t.Seq, t.Time = it.info.FirstSeq, it.gridTime+dev
	t.Read = it.uint64()
	it.masks[0], it.nmasks = t.Read, 1
	// The bitmap is there, so the values are at most 64 times as large.
	words := (n + 63) / 64
	if cap(t.Values) < n {
		t.Values = make([]int64, n)
		t.Present = make([]uint64, words)
	}
	t.Values, t.Present = t.Values[:n], t.Present[:words]
	clear(t.Values)
	clear(t.Present)
	for i := 0; i < (n+7)/8; i++ {
		t.Present[i>>3] |= uint64(it.b[it.pos+i]) << (i & 7 * 8)
	}
	it.pos += (n + 7) / 8
	if n&63 != 0 && t.Present[words-1]>>(n&63) != 0 {
		return false
	}
	return it.changes()
}

func (it *Iterator) row() bool {
	head := it.b[it.pos]
	it.pos++
	if head&^rowKnown != 0 {
		return false
	}
	gap := uint64(0)
	if head&rowGap != 0 {
		var ok bool
		if gap, ok = it.uvarint(); !ok {
			return false
		}
	}
	t := &it.tick
	seq, carry := bits.Add64(t.Seq, gap, 1)
	if carry != 0 {
		return false
	}
	t.Seq = seq
	return it.time(head) && it.mask(head) && (head&rowToggles == 0 || it.toggles()) && it.changes()
}

func (it *Iterator) time(head byte) bool {
	t := &it.tick
	t.Time = it.gridTime + it.period*int64(t.Seq-it.gridSeq)
	if head&rowTime != 0 {
		dev, ok := it.zigzag()
		if !ok {
			return false
		}
		t.Time += dev
	}
	if head&rowPeriod != 0 {
		p, ok := it.uvarint()
		if !ok {
			return false
		}
		it.gridSeq, it.gridTime, it.period = t.Seq, t.Time, int64(p)
	}
	return true
}

func (it *Iterator) mask(head byte) bool {
	t := &it.tick
	switch head & (rowMaskIdx | rowMaskNew) {
	case 0:
		return true
	case rowMaskIdx:
		if it.pos >= len(it.b) || int(it.b[it.pos]) >= it.nmasks {
			return false
		}
		t.Read = it.masks[it.b[it.pos]]
		it.pos++
		return true
	case rowMaskNew:
		if len(it.b)-it.pos < 8 {
			return false
		}
		t.Read = it.uint64()
		if it.nmasks < MaxMasks {
			it.masks[it.nmasks] = t.Read
			it.nmasks++
		}
		return true
	default:
		return false
	}
}

func (it *Iterator) toggles() bool {
	count, ok := it.uvarint()
	if !ok || count > uint64(it.info.Slots) {
		return false
	}
	next := uint64(0)
	for ; count > 0; count-- {
		skip, ok := it.uvarint()
		if !ok || skip >= uint64(it.info.Slots)-next {
			return false
		}
		next += skip
		it.tick.Present[next>>6] ^= 1 << (next & 63)
		next++
	}
	return true
}

func (it *Iterator) changes() bool {
	values := it.tick.Values
	for next := 0; next < len(values); next++ {
		skip, ok := it.uvarint()
		if !ok || skip > uint64(len(values)-next) {
			return false
		}
		next += int(skip)
		if next == len(values) {
			return true
		}
		d, ok := it.zigzag()
		if !ok {
			return false
		}
		values[next] += d
	}
	return true
}
