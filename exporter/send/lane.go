package send

import (
	"math"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// Earlier is what former sessions left, for one receiver, oldest tick first. Only
// the sender's goroutine uses it. What it tells of a tick is in the terms of the
// tick's own session, and changes with Next.
type Earlier interface {
	// Next moves to the next tick; false is the end for good.
	Next() bool
	Tick() *frame.Tick
	Err() error
	Lost() (ticks uint64, from, to int64)
	// Epoch numbers the tick's session, Session is its id.
	Epoch() uint64
	Session() string
	Series() []collectors.Series
	Start(slot int) (mono int64, ok bool)
	Wall(mono int64) int64
	// Passed tells that all before a session, and its ticks before number seq, are
	// delivered.
	Passed(epoch, seq uint64)
}

// stream is ticks in order, as Ticks and Earlier are.
type stream interface {
	Next() bool
	Tick() *frame.Tick
	Err() error
	Lost() (ticks uint64, from, to int64)
}

// lane is one stream of ticks on its way to the receiver, with all that has to be
// remembered of it between two batches. A batch is of one lane.
type lane struct {
	src     stream
	earlier Earlier // src, where it is that
	until   uint64  // the first tick that is not this lane's; 0 is none

	table   *table
	live    []uint64
	reading bool // src's tick is read but in no batch
	edge    bool // the tick at until is in the batch, for its markers
	// Wall times in ms of the first and the newest sample put into a batch; those that
	// were sent before the clock was stepped back far; and what the lane must stay
	// below, 0 where that is nothing.
	firstMs, lastMs int64
	taken           [2]int64
	ceil            int64
	clock           startClock
	starts          []int64 // by slot, wall ms
	skip            []uint64
	hide            []uint64
	pen             quarantine
	epoch           uint64
	thin            thinning
	flat            flatness
	want            uint64  // the number behind the tick read last
	id              string  // of the session that the ticks are of
	monos           []start // by slot, of a former session
}

// start is when a counter started, where that is known.
type start struct {
	mono  int64
	known bool
}

func newLane(src stream) *lane { return &lane{src: src, firstMs: math.MinInt64, lastMs: math.MinInt64} }

// use makes a lane the one that the next batch is of.
func (s *Sender) use(l *lane) {
	if s.lane == l {
		return
	}
	if s.lane != nil {
		s.lane.live = append(s.lane.live[:0], s.batch.live...)
	}
	s.lane = l
	b := &s.batch
	clear(b.live)
	for len(b.live) < len(l.live) {
		b.live, b.after = append(b.live, 0), append(b.after, 0)
	}
	copy(b.live, l.live)
}

// begin forgets what was of another session.
func (l *lane) begin(b *batch) {
	clear(b.live)
	l.firstMs, l.lastMs, l.taken = math.MinInt64, math.MinInt64, [2]int64{}
	l.table, l.clock, l.skip, l.pen = nil, startClock{}, nil, quarantine{}
	l.epoch, l.id = l.earlier.Epoch(), l.earlier.Session()
	l.thin, l.flat, l.monos = thinning{}, flatness{}, nil
}

// seriesNow are the series of the lane's slots.
func (s *Sender) seriesNow() []collectors.Series {
	if s.lane.earlier != nil {
		return s.lane.earlier.Series()
	}
	return s.cfg.Schema.Series()
}

// wall is the wall time in ms of one of the lane's ticks.
func (s *Sender) wall(mono int64) int64 {
	if s.lane.earlier != nil {
		return s.lane.earlier.Wall(mono)
	}
	return s.cfg.Wall(mono)
}

// startOf is the monotonic time at which the counter in a slot began.
func (s *Sender) startOf(slot int) (int64, bool) {
	switch {
	case s.earlier != nil && slot < len(s.monos):
		return s.monos[slot].mono, s.monos[slot].known
	case s.earlier != nil:
		return 0, false
	case s.cfg.Start != nil:
		return s.cfg.Start(&s.table.series[slot])
	}
	return 0, false
}

// session is the id of the session that the lane's ticks are of.
func (s *Sender) session() string {
	if s.earlier != nil {
		return s.id
	}
	return s.cfg.Session
}
