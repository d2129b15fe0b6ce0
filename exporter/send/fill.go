package send

import (
	"time"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// fill takes ticks of the lane into the batch, unless there is one already.
func (s *Sender) fill() {
	if s.batch.len() > 0 {
		return
	}
	s.from, s.caughtUp = 0, false
	s.pen.release(s, time.Now())
	s.fit()
	for !s.batch.full() {
		if !s.reading && !s.next() {
			s.caughtUp = true
			break
		}
		if !s.take(s.src.Tick()) {
			break
		}
	}
	s.batch.prepare()
	s.updateStarts()
}

// take puts a tick into the batch, or leaves it out for good. false means that the
// batch ends before it.
func (s *Sender) take(t *frame.Tick) bool {
	if s.earlier != nil && (s.table == nil || s.earlier.Epoch() != s.epoch) {
		if s.batch.len() > 0 {
			return false
		}
		s.begin(&s.batch)
		s.fit()
	}
	if len(t.Values) > s.batch.slots && len(s.seriesNow()) > s.batch.slots || s.table.of != s.generation() {
		if s.batch.len() > 0 {
			return false // the next batch has the new series
		}
		s.fit()
	}
	if s.startsAnew(t) {
		return false
	}
	var read uint64
	if s.until > 0 && t.Seq >= s.until {
		s.caughtUp = true
		if s.edge || t.Seq > s.until {
			return false
		}
		// Series that ended with the hole get their markers; the rest was sent.
		s.edge = true
	} else if read = s.thin.mask(s.cfg.Every, t.Seq, t.Read); s.batch.left(t.Read&^read) && read == 0 && t.Read != 0 {
		s.reading = false
		return true
	}
	ms, v := s.stamp(t)
	switch v {
	case stampNext:
		return false
	case stampTaken:
		s.over.add(s, t, ms)
		s.reading = false
		return true
	}
	s.over.end(s)
	s.batch.add(t, ms)
	s.batch.ticks[len(s.batch.ticks)-1].read = read
	s.reading = false
	return !s.edge
}

// next moves to the next tick and counts what was lost before it.
func (s *Sender) next() bool {
	if !s.src.Next() {
		if err := s.src.Err(); err != nil {
			s.state.broken(s.log, err)
		}
		return false
	}
	s.reading = true
	s.countLost(s.lane)
	s.want = s.src.Tick().Seq + 1
	return true
}

// countLost counts what is gone before a lane's next tick.
func (s *Sender) countLost(l *lane) {
	n, from, to := l.src.Lost()
	if l.until > 0 && l.src.Tick().Seq > l.until {
		// From there on they are delivered.
		n = min(n, l.until-min(l.until, l.want))
	}
	if n == 0 {
		return
	}
	wall := s.cfg.Wall
	if l.earlier != nil {
		wall = l.earlier.Wall
	}
	s.stats.lostTicks.Add(int64(n))
	s.state.lost(n, wall(from), wall(to))
	s.state.sayLost(s.log, false)
}

func (s *Sender) wallTime(mono int64) time.Time { return time.UnixMilli(s.cfg.Wall(mono)).UTC() }

// fit makes table and batch fit the lane's series and the protocol.
func (s *Sender) fit() {
	s.ensureTable()
	s.batch.reset(len(s.table.series))
	if s.cfg.Flat > 0 {
		s.batch.follow(&s.lane.flat, s.cfg.Flat)
	}
}

// generation is that of the schema of the lane.
func (s *Sender) generation() uint64 {
	if s.lane.earlier != nil {
		return 0 // a segment's series never change
	}
	return s.cfg.Schema.Generation()
}

func (s *Sender) ensureTable() {
	of := s.generation() // before the series: they are no older
	series := s.seriesNow()
	if s.table == nil || s.table.protocol != s.proto.use || len(series) != len(s.table.series) || of != s.table.of {
		s.newTable(series)
		s.table.of = of
		s.noteStarts(len(series))
	}
}

// noteStarts keeps the starts of a former session's counters: when they are needed
// its reader may be in the next.
func (s *Sender) noteStarts(n int) {
	if s.earlier == nil {
		return
	}
	s.monos = s.monos[:0]
	for i := range n {
		mono, known := s.earlier.Start(i)
		s.monos = append(s.monos, start{mono, known})
	}
}

// newTable makes the lane's table, and notes which of its series are not wanted.
func (s *Sender) newTable(series []collectors.Series) {
	s.table = newTable(s.proto.use, series, s.cfg.ExternalLabels)
	if s.cfg.Select == nil {
		return
	}
	s.hide = make([]uint64, (len(series)+63)/64)
	for i := range series {
		if !s.cfg.Select(&series[i]) {
			s.hide[i>>6] |= 1 << (i & 63)
		}
	}
}
