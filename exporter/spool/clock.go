package spool

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
)

// maxOffsets bounds a clock record.
const maxOffsets = 1 << 16

// offset says that from mono on, wall time was mono + offset, both in ns.
type offset struct{ mono, offset int64 }

// appendClock appends the payload of a clock record.
func appendClock(dst []byte, table iter.Seq2[int64, int64]) []byte {
	var list []offset
	for mono, off := range table {
		list = append(list, offset{mono, off})
	}
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	var last offset
	for _, o := range list {
		dst = binary.AppendVarint(binary.AppendVarint(dst, o.mono-last.mono), o.offset-last.offset)
		last = o
	}
	return dst
}

func parseClock(payload []byte) ([]offset, error) {
	c := cursorOf(payload)
	n := c.uvarint()
	if c.bad || n == 0 || n > maxOffsets || n > uint64(len(c.b)) {
		return nil, fmt.Errorf("%w: a clock of %d offsets", errBad, n)
	}
	list := make([]offset, 0, n)
	var o offset
	for range n {
		d, e := c.varint(), c.varint()
		if len(list) > 0 && d < 0 {
			return nil, fmt.Errorf("%w: a clock out of order", errBad)
		}
		o.mono += d
		o.offset += e
		list = append(list, o)
	}
	if c.bad || len(c.b) > 0 {
		return nil, fmt.Errorf("%w: a clock", errBad)
	}
	return list, nil
}

// wall is the wall time in Unix ms of a monotonic time in ns; math.MinInt64 where no
// clock is known.
func wall(table []offset, mono int64) int64 {
	if len(table) == 0 {
		return math.MinInt64
	}
	i := len(table) - 1
	for i > 0 && table[i].mono > mono {
		i--
	}
	ns := mono + table[i].offset
	ms := ns / 1e6
	if ns%1e6 < 0 {
		ms--
	}
	return ms
}

// boot says in which boot of the machine a session was, and how long after its
// beginning, in ns, the session's monotonic time was 0.
type boot struct {
	id   string
	time int64
}

func (b *boot) append(dst []byte) []byte {
	return append(binary.LittleEndian.AppendUint64(dst, uint64(b.time)), b.id...)
}

func parseBoot(payload []byte) (boot, error) {
	if len(payload) <= 8 || len(payload) > 8+maxBoot {
		return boot{}, fmt.Errorf("%w: a boot of %d bytes", errBad, len(payload))
	}
	return boot{string(payload[8:]), int64(binary.LittleEndian.Uint64(payload))}, nil
}

// clockOf is the table of a session: its own or, where its clock was not yet set when
// it ended and the machine was not booted since, that of this session's clock. mono is
// a time of the session. s.mu is held.
func (s *Spool) clockOf(epoch uint64, mono int64) []offset {
	if epoch == s.epoch {
		var table []offset
		for m, o := range s.cfg.Clock() {
			table = append(table, offset{m, o})
		}
		return table
	}
	table := s.clocks[epoch]
	b := s.boots[epoch]
	if wall(table, mono) >= s.cfg.NotBefore || s.cfg.Boot == "" || b.id != s.cfg.Boot {
		return table
	}
	var newest int64
	for _, o := range s.cfg.Clock() {
		newest = o
	}
	return []offset{{0, newest + b.time - s.cfg.BootTime}}
}
