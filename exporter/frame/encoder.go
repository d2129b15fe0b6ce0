package frame

import (
	"encoding/binary"
	"math/bits"
)

// Encoder writes frames, tick by tick, into buffers of the caller. The zero value
// is ready. It keeps a copy of the newest tick and what it learned of the
// schedule, and allocates only when the number of slots grows. Not safe for
// concurrent use.
type Encoder struct {
	last  Tick
	ticks uint32

	// The grid that times are predicted from, and the time per slot between the
	// last two ticks.
	gridSeq  uint64
	gridTime int64
	period   int64
	spacing  int64

	masks  [MaxMasks]uint64
	nmasks int
}

// Last is the newest tick written. It belongs to the encoder and changes with
// the next one.
func (e *Encoder) Last() *Tick { return &e.last }

// Ticks is the number of ticks in the frame that was begun last.
func (e *Encoder) Ticks() uint32 { return e.ticks }

// Begin appends the header and the key row of a new frame to dst and returns it.
// The tick is only read and has at most MaxSlots slots. Where its number is not
// higher than the last frame's, the schedule is learned anew.
func (e *Encoder) Begin(dst []byte, t *Tick) []byte {
	e.align(t)
	n := len(t.Values)
	dst = append(dst, 't', 'f', version, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, t.Seq)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.gridTime))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.period))

	dst = appendZigzag(dst, t.Time-e.gridTime)
	dst = binary.LittleEndian.AppendUint64(dst, t.Read)
	dst = appendBitmap(dst, t.Present, n)
	e.reset(n)
	dst = e.appendChanges(dst, t.Values)
	copyBits(e.last.Present, t.Present, n)

	e.last.Seq, e.last.Time, e.last.Read = t.Seq, t.Time, t.Read
	e.masks[0], e.nmasks, e.ticks = t.Read, 1, 1
	return dst
}

// align moves the grid to the slot of a frame's first tick, so that a late first
// tick does not shift the frame's whole grid.
func (e *Encoder) align(t *Tick) {
	if e.period == 0 || t.Seq <= e.gridSeq {
		e.gridSeq, e.gridTime, e.period, e.spacing = t.Seq, t.Time, 0, 0
		return
	}
	e.spacing = (t.Time - e.last.Time) / step(t.Seq-e.last.Seq)
	e.gridTime += e.period * int64(t.Seq-e.gridSeq)
	e.gridSeq = t.Seq
}

// step is a sequence gap as a divisor that is never 0 nor negative.
func step(gap uint64) int64 { return max(1, int64(gap&(1<<62-1))) }

// reset makes the last row n absent zeros, which a key row is the change from.
func (e *Encoder) reset(n int) {
	words := (n + 63) / 64
	if cap(e.last.Values) < n {
		e.last.Values = make([]int64, n)
		e.last.Present = make([]uint64, words)
	}
	e.last.Values = e.last.Values[:n]
	e.last.Present = e.last.Present[:words]
	clear(e.last.Values)
	clear(e.last.Present)
}

// Append appends the row of one more tick to a frame that Begin began and returns
// it. The tick has as many slots as the first and a higher number than the last.
func (e *Encoder) Append(dst []byte, t *Tick) []byte {
	if len(t.Values) != len(e.last.Values) || t.Seq <= e.last.Seq {
		panic("BUG: frame: a tick that does not belong into the open frame")
	}
	at := len(dst)
	dst = append(dst, 0)
	head := byte(0)
	if gap := t.Seq - e.last.Seq - 1; gap != 0 {
		head |= rowGap
		dst = binary.AppendUvarint(dst, gap)
	}
	var h byte
	dst, h = e.appendTime(dst, t)
	head |= h
	dst, h = e.appendMask(dst, t.Read)
	head |= h
	dst, h = e.appendToggles(dst, t.Present)
	head |= h
	dst[at] = head
	dst = e.appendChanges(dst, t.Values)
	e.last.Seq, e.last.Time, e.last.Read = t.Seq, t.Time, t.Read
	e.ticks++
	return dst
}

// appendTime appends how far the tick is from the grid, and a new grid where two
// equal steps in a row say that the old one is wrong.
func (e *Encoder) appendTime(dst []byte, t *Tick) ([]byte, byte) {
	spacing := (t.Time - e.last.Time) / step(t.Seq-e.last.Seq)
	steady := spacing > 0 && (spacing == e.spacing || e.period == 0)
	e.spacing = spacing
	dev := t.Time - e.gridTime - e.period*int64(t.Seq-e.gridSeq)
	if dev == 0 {
		return dst, 0
	}
	dst = appendZigzag(dst, dev)
	if !steady {
		return dst, rowTime
	}
	e.gridSeq, e.gridTime, e.period = t.Seq, t.Time, spacing
	return binary.AppendUvarint(dst, uint64(spacing)), rowTime | rowPeriod
}

// appendMask appends the Read mask where it differs from the row before: the
// index of a known one, or the mask itself.
func (e *Encoder) appendMask(dst []byte, mask uint64) ([]byte, byte) {
	if mask == e.last.Read {
		return dst, 0
	}
	for i, m := range e.masks[:e.nmasks] {
		if m == mask {
			return append(dst, byte(i)), rowMaskIdx
		}
	}
	if e.nmasks < MaxMasks {
		e.masks[e.nmasks] = mask
		e.nmasks++
	}
	return binary.LittleEndian.AppendUint64(dst, mask), rowMaskNew
}

// appendToggles appends the slots whose presence changed: how many, then for each
// the number of slots skipped since the one before.
func (e *Encoder) appendToggles(dst []byte, present []uint64) ([]byte, byte) {
	n, count := len(e.last.Values), 0
	for w := range e.last.Present {
		count += bits.OnesCount64(e.toggled(present, w, n))
	}
	if count == 0 {
		return dst, 0
	}
	dst = binary.AppendUvarint(dst, uint64(count))
	next := 0
	for w := range e.last.Present {
		x := e.toggled(present, w, n)
		e.last.Present[w] ^= x
		for ; x != 0; x &= x - 1 {
			slot := w<<6 + bits.TrailingZeros64(x)
			dst = binary.AppendUvarint(dst, uint64(slot-next))
			next = slot + 1
		}
	}
	return dst, rowToggles
}

// toggled is the bits of word w in which present differs from the last row.
func (e *Encoder) toggled(present []uint64, w, n int) uint64 {
	return e.last.Present[w] ^ word(present, w, n)
}

// block is how many slots are compared at once; 8 to 64 measured alike.
const block = 16

// appendChanges appends the slots whose value changed: the number of unchanged
// slots before it, then the difference. The row ends with the last slot.
func (e *Encoder) appendChanges(dst []byte, values []int64) []byte {
	last := e.last.Values[:len(values)]
	run := 0 // start of the run of unchanged slots
	for i := 0; i < len(values); {
		if i+block <= len(values) && *(*[block]int64)(values[i:]) == *(*[block]int64)(last[i:]) {
			i += block
			continue
		}
		for end := min(i+block, len(values)); i < end; i++ {
			v := values[i]
			d := v - last[i]
			if d == 0 {
				continue
			}
			dst = binary.AppendUvarint(dst, uint64(i-run))
			dst = appendZigzag(dst, d)
			last[i] = v
			run = i + 1
		}
	}
	if run < len(values) {
		dst = binary.AppendUvarint(dst, uint64(len(values)-run))
	}
	return dst
}

// Seal closes a whole frame, as Begin and Append wrote it, and returns it with
// its trailer. The encoder takes no more rows for it.
func (e *Encoder) Seal(frame []byte) []byte {
	frame[offFlags] |= flagSealed
	binary.LittleEndian.PutUint32(frame[offRaw:], uint32(len(frame)+trailerLen))
	return appendTrailer(frame, 0, e.last.Seq, e.last.Time, e.ticks)
}

// TrailerLen is by how much Seal makes a frame longer.
const TrailerLen = trailerLen

// appendTrailer appends the trailer to the frame that begins at start.
func appendTrailer(dst []byte, start int, seq uint64, time int64, ticks uint32) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, seq)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(time))
	dst = binary.LittleEndian.AppendUint32(dst, ticks)
	return binary.LittleEndian.AppendUint32(dst, Checksum(dst[start:]))
}

func appendZigzag(dst []byte, v int64) []byte {
	return binary.AppendUvarint(dst, uint64(v)<<1^uint64(v>>63))
}

// word is word w of a presence bitmap of n slots; bits past them are 0.
func word(present []uint64, w, n int) uint64 {
	if w >= len(present) {
		return 0
	}
	if left := n - w<<6; left < 64 {
		return present[w] & (1<<left - 1)
	}
	return present[w]
}

// appendBitmap appends the presence bits of n slots, lowest slot first.
func appendBitmap(dst []byte, present []uint64, n int) []byte {
	for i := 0; i < (n+7)/8; i++ {
		dst = append(dst, byte(word(present, i>>3, n)>>(i&7*8)))
	}
	return dst
}

func copyBits(dst, present []uint64, n int) {
	for w := range dst {
		dst[w] = word(present, w, n)
	}
}
