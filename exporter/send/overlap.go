package send

import (
	"math"
	"time"

	"github.com/ticktier/ticktier/exporter/frame"
)

const (
	// maxNudge is how far in ms a tick's time may be moved. At 1000 Hz two reads that
	// began late can fall into one millisecond; a receiver takes one sample for each.
	maxNudge = 2
	// farBack in ms is a step back behind the first sample after which what was sent is
	// taken for a mistake: what follows is sent although it is older.
	farBack = 10 * 60 * 1000
)

// stamped says what becomes of a tick by its time.
type stamped uint8

const (
	stampGood  stamped = iota
	stampNext          // the batch ends before it
	stampTaken         // samples were sent for its time already
)

// stamp is the wall time of a tick. Where the clock was stepped back over what was
// sent, that time is taken: a second sample there would be a duplicate, or out of
// order between samples of another time.
func (s *Sender) stamp(t *frame.Tick) (int64, stamped) {
	ms, l := s.wall(t.Time), s.lane
	switch {
	case l.ceil > 0 && ms > l.ceil && !s.edge:
		return ms, stampTaken
	case ms > l.lastMs:
	case l.lastMs-ms < maxNudge:
		ms = l.lastMs + 1
	case ms > l.firstMs-farBack:
		return ms, stampTaken
	case s.batch.len() > 0:
		return 0, stampNext // a batch must be in order
	default:
		l.taken = [2]int64{l.firstMs, l.lastMs}
		l.firstMs = math.MinInt64
	}
	if ms >= l.taken[0] && ms <= l.taken[1] {
		return ms, stampTaken
	}
	if l.firstMs == math.MinInt64 {
		l.firstMs = ms
	}
	l.lastMs = ms
	return ms, stampGood
}

// overlap is the run of ticks that are being left out because their time is taken.
type overlap struct {
	ticks    int64
	from, to int64 // wall ms
	seq      uint64
}

// add leaves a tick out and counts it as lost.
func (o *overlap) add(s *Sender, t *frame.Tick, ms int64) {
	if o.ticks == 0 {
		o.from = ms
		s.log.Warn("clock was stepped back over what is sent, ticks are left out and counted until it has come past that",
			"from", time.UnixMilli(ms).UTC(), "sent_to", time.UnixMilli(s.lastMs).UTC())
	}
	o.ticks++
	o.to, o.seq = ms, t.Seq
	s.stats.lostTicks.Add(1)
}

// end notes that the next tick is good.
func (o *overlap) end(s *Sender) {
	if o.ticks > 0 {
		s.log.Warn("ticks left out after a step of the clock", "ticks", o.ticks,
			"from", time.UnixMilli(o.from).UTC(), "to", time.UnixMilli(o.to).UTC())
	}
	*o = overlap{}
}

// leftOut moves the lane behind ticks that were all left out.
func (s *Sender) leftOut() {
	if s.over.ticks == 0 {
		return
	}
	l := &s.lanes
	switch s.lane {
	case l.now:
		l.nowNext = max(l.nowNext, s.over.seq+1)
	case l.behind:
		h := &l.holes[0]
		h.from = max(h.from, min(s.over.seq+1, h.to))
	case l.earlier:
		l.earlier.earlier.Passed(l.earlier.epoch, s.over.seq+1)
		return
	}
	s.report()
}
