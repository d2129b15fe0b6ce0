package send

import (
	"time"

	"github.com/ticktier/ticktier/exporter/frame"
)

// fill takes ticks from the ring into the batch, unless there is one already.
func (s *Sender) fill() {
	if len(s.batch.ticks) > 0 {
		return
	}
	s.from, s.caughtUp = 0, false
	s.pen.release(s, time.Now())
	s.ensureTable()
	s.batch.reset(len(s.table.series))
	for !s.batch.full() {
		if !s.held && !s.next() {
			s.caughtUp = true
			break
		}
		t := s.cfg.Ticks.Tick()
		if len(t.Values) > s.batch.slots && s.cfg.Schema.Len() > s.batch.slots {
			if len(s.batch.ticks) > 0 {
				break // the next batch has the new series
			}
			s.ensureTable()
			s.batch.reset(len(s.table.series))
		}
		ms, ok := s.stamp(t)
		if !ok {
			break
		}
		s.batch.add(t, ms)
		s.held = false
	}
	s.batch.prepare()
	s.updateStarts()
}

// next moves to the next tick and counts what was lost before it.
func (s *Sender) next() bool {
	if !s.cfg.Ticks.Next() {
		if err := s.cfg.Ticks.Err(); err != nil {
			s.state.broken(s.log, err)
		}
		return false
	}
	s.held = true
	if n, from, to := s.cfg.Ticks.Lost(); n > 0 {
		s.stats.lostTicks.Add(int64(n))
		s.log.Warn("ticks lost before they could be sent, they were evicted from the ring",
			"ticks", n, "from", s.wallTime(from), "to", s.wallTime(to))
	}
	return true
}

func (s *Sender) wallTime(mono int64) time.Time { return time.UnixMilli(s.cfg.Wall(mono)).UTC() }

// maxNudge is how far in ms a tick's time may be moved. At 1000 Hz two reads that
// began late can fall into one millisecond; a receiver takes one sample for each.
const maxNudge = 2

// stamp is the wall time of a tick. false means that the clock was stepped back
// before it: a batch must be in order, so it begins a new one.
func (s *Sender) stamp(t *frame.Tick) (int64, bool) {
	ms := s.cfg.Wall(t.Time)
	switch {
	case ms > s.lastMs:
	case s.lastMs-ms < maxNudge:
		ms = s.lastMs + 1
	case len(s.batch.ticks) > 0:
		return 0, false
	}
	s.lastMs = ms
	return ms, true
}

// ensureTable makes the table fit the schema and the protocol.
func (s *Sender) ensureTable() {
	series := s.cfg.Schema.Series()
	if s.table == nil || s.table.protocol != s.proto.use || len(series) != len(s.table.series) {
		s.table = newTable(s.proto.use, series, s.cfg.ExternalLabels)
	}
}
