package send

import (
	"strconv"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// startClock turns monotonic start times into wall times that stay the same. A
// start time that moved would tell a receiver that the counter began anew, so the
// offset is only taken again when the clock was stepped.
type startClock struct {
	offset int64 // ms
	known  bool
	table  *table // that the starts were made for
}

// stepMs is the smallest change of the offset that is a step of the clock. Less is
// the slewing of a clock that is kept right.
const stepMs = 1000

// adjust takes the offset of the newest tick, and reports whether it is another.
func (c *startClock) adjust(mono, ms int64) bool {
	off := ms - mono/1e6
	if c.known && off-c.offset < stepMs && c.offset-off < stepMs {
		return false
	}
	c.offset, c.known = off, true
	return true
}

// updateStarts works out the start time of every series of the batch.
func (s *Sender) updateStarts() {
	told := len(s.table.starts) > 0
	if s.cfg.Start == nil && s.earlier == nil && !told || len(s.batch.ticks) == 0 {
		return
	}
	last := s.batch.ticks[len(s.batch.ticks)-1]
	if !s.clock.adjust(last.mono, last.ms) && s.clock.table == s.table && !told {
		return
	}
	s.clock.table = s.table
	s.starts = s.starts[:0]
	for i := range s.table.series {
		start := int64(noStart)
		if series := &s.table.series[i]; series.Type == collectors.Counter {
			if mono, ok := s.startOf(i); ok {
				start = s.clock.offset + mono/1e6
			}
		}
		if start == 0 {
			start = noStart // 0 is "not set"
		}
		s.starts = append(s.starts, start)
	}
	b := &s.batch
	i := len(b.ticks) - 1
	for _, slot := range s.table.starts {
		if ms := b.values[i*b.stride+slot]; ms != 0 {
			s.starts[slot-1] = ms
		}
	}
}

// startsAnew reports whether a counter started at another time than in the last tick
// of the batch: all samples of a series in a batch have one start time.
func (s *Sender) startsAnew(t *frame.Tick) bool {
	b := &s.batch
	i := len(b.ticks) - 1
	if b.len() == 0 {
		return false
	}
	for _, slot := range s.table.starts {
		if slot >= b.slots || slot >= len(t.Values) {
			break
		}
		// A slot that is absent keeps what it had.
		if t.Has(slot) && t.Values[slot] != b.values[i*b.stride+slot] {
			return true
		}
	}
	return false
}

// seqs is the range of ticks in the batch, as the X-Ticktier-Seq header has it.
func (s *Sender) seqs() string {
	t := s.batch.ticks
	if len(t) == 0 {
		return "" // a probe
	}
	return strconv.FormatUint(t[min(s.batch.first, len(t)-1)].seq, 10) + "-" + strconv.FormatUint(t[len(t)-1].seq, 10)
}
