package send

import (
	"encoding/binary"
)

// timed lists the ticks in which a series that tells the times of its own samples,
// in slot at, has one. Such a series is present only where it has a sample, and no
// marker ends it: nobody knows when that would be.
func (b *batch) timed(slot, at int, src uint8, dst []uint16) []uint16 {
	idx := dst[:0]
	for i := b.first; i < len(b.ticks); i++ {
		if b.ticks[i].read>>(src&63)&1 == 1 && b.has(i, slot) && b.has(i, at) {
			idx = append(idx, uint16(i))
		}
	}
	b.setAfter(slot>>6, 1<<(slot&63), false)
	return idx
}

// appendTimed is appendSeries for a series that tells the times of its own samples.
func (e *encoder) appendTimed(t *table, b *batch, slot, at int, start int64, lim bounds) bool {
	s := &t.series[slot]
	idx := b.timed(slot, at, s.Source, e.idx[:])
	if len(idx) == 0 {
		return true
	}
	if w := slot >> 6; w < len(e.skip) && e.skip[w]>>(slot&63)&1 == 1 {
		e.req.skipped += len(idx)
		return true
	}
	p := t.parts[slot]
	size := int(p.end - p.labels)
	for _, i := range idx {
		size += 2 + timedLen(b.values[int(i)*b.stride+at], start)
	}
	if e.req.series > 0 && !e.room(lim, len(idx), size) {
		return false
	}
	if len(e.raw)+size+maxHead+slack > blockSize {
		e.flush()
	}
	e.load(s.Metric, b, slot, idx)
	e.raw = append(e.raw, t.seriesTag())
	e.raw = appendUvarint(e.raw, uint64(size))
	e.raw = append(e.raw, t.bytes[p.labels:p.metadata]...)
	for k, i := range idx {
		ms := b.values[int(i)*b.stride+at]
		e.raw = append(e.raw, 2<<3|2, byte(timedLen(ms, start)), 1<<3|1)
		e.raw = binary.LittleEndian.AppendUint64(e.raw, e.vals[k])
		e.raw = appendUvarint(append(e.raw, 2<<3), uint64(ms))
		if start != noStart {
			e.raw = appendUvarint(append(e.raw, 3<<3), uint64(start))
		}
		e.req.first, e.req.last = min(e.req.first, ms), max(e.req.last, ms)
	}
	e.raw = append(e.raw, t.bytes[p.metadata:p.end]...)
	e.req.series++
	e.req.samples += len(idx)
	return true
}

// timedLen is the length of a Sample message of the time ms.
func timedLen(ms, start int64) int {
	n := 9 + 1 + uvarintLen(uint64(ms))
	if start != noStart {
		n += 1 + uvarintLen(uint64(start))
	}
	return n
}
