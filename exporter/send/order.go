package send

import (
	"context"
	"slices"
	"time"
)

// Order says what is sent first when there is a backlog.
type Order uint8

// The orders. Strict sends the oldest first, always. Live sends the newest first and
// the backlog behind it, where the receiver takes samples out of order.
const (
	Strict Order = iota
	Live
)

// Progress is what a receiver has of this session: every tick before Seq, and those
// in Ahead, each from its first number to before its second. Earlier says that it
// has all of the sessions before, too.
type Progress struct {
	Earlier bool
	Seq     uint64
	Ahead   [][2]uint64
}

// hole is a run of ticks, [from, to), that was left for later.
type hole struct {
	from, to uint64
	// What was sent before it and after it, wall ms: a clock that is stepped back must
	// not put its ticks there.
	after, before int64
	live          []uint64 // the series that were live before it
	flat          flatness
}

// maxHoles bounds how often the live edge goes first while there is a backlog.
const maxHoles = 64

// lanes are the streams of ticks.
type lanes struct {
	now     *lane // this session, in order but for holes
	behind  *lane // the holes
	earlier *lane // former sessions; nil when they are delivered

	nowNext uint64    // the first tick that now has not delivered
	holes   []hole    // oldest first
	entered bool      // behind is in the first hole
	late    bool      // the receiver takes what is as old as the backlog
	unsure  bool      // it could not be told last
	again   time.Time // it is not asked before
	backAt  time.Time // the backlog is not sent before
	ahead   [][2]uint64
}

// backlog reports whether something is left for behind the live edge.
func (s *Sender) backlog() bool { return s.lanes.earlier != nil || len(s.lanes.holes) > 0 }

// live reports whether the live edge may go first.
func (s *Sender) live() bool { return s.cfg.Order == Live && s.cfg.Behind != nil && s.cfg.Edge != nil }

// pushOrdered delivers former sessions and then this one, until it has caught up.
func (s *Sender) pushOrdered(ctx context.Context) error {
	for s.backlog() {
		if err := s.pushBacklog(ctx); err != nil || s.held() {
			return err
		}
	}
	s.use(s.lanes.now)
	return s.pushLane(ctx)
}

// pushLane delivers batch after batch of the lane in use until its end is reached.
func (s *Sender) pushLane(ctx context.Context) error {
	for {
		more, err := s.pushBatch(ctx)
		if err != nil || !more || s.held() {
			return err
		}
	}
}

// pushBatch delivers one batch, and reports whether there is more at once.
func (s *Sender) pushBatch(ctx context.Context) (more bool, err error) {
	s.proto.start(time.Now())
	s.lim.lift(time.Now())
	s.fill()
	if s.batch.len() == 0 {
		s.leftOut()
		return false, nil
	}
	if err := s.deliver(ctx); err != nil {
		return false, err
	}
	s.commit()
	return !s.caughtUp, nil
}

// pushLive delivers the live edge, when that is due, and the backlog as far as its
// share allows.
func (s *Sender) pushLive(ctx context.Context, due bool) error {
	// Each batch may take as long as an outage does.
	for more := due; more; {
		s.use(s.lanes.now)
		ahead, err := s.leap(ctx)
		if err != nil {
			return err
		}
		switch {
		case !ahead && s.lanes.unsure && s.backlog():
			return s.pushBacklog(ctx) // little: it is asked again with the next push
		case !ahead && s.lanes.unsure:
			_, err := s.pushBatch(ctx)
			return err
		case !ahead && s.backlog():
			return s.pushOrdered(ctx)
		}
		if more, err = s.pushBatch(ctx); err != nil || s.held() {
			return err
		}
	}
	if !s.backlog() || time.Now().Before(s.lanes.backAt) {
		return nil
	}
	began := time.Now()
	if err := s.pushBacklog(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	rest := time.Duration(float64(took) * (1/s.cfg.BacklogShare - 1))
	s.lanes.backAt = time.Now().Add(min(rest, maxBacklogRest))
	return nil
}

// maxBacklogRest bounds how long the backlog waits for the rest of the line.
const maxBacklogRest = 30 * time.Second

// pushBacklog delivers one batch of what is oldest.
func (s *Sender) pushBacklog(ctx context.Context) error {
	l := &s.lanes
	if l.earlier != nil {
		s.use(l.earlier)
		_, err := s.pushBatch(ctx)
		if err == nil && s.caughtUp && !s.lane.reading {
			l.earlier = nil
			s.log.Info("what former sessions left is delivered")
			s.report()
		}
		return err
	}
	h := &l.holes[0]
	s.use(l.behind)
	if !l.entered {
		l.entered = true
		s.until, s.want, s.reading, s.edge = h.to, h.from, false, false
		s.firstMs, s.lastMs, s.taken, s.ceil = l.now.firstMs, h.after, l.now.taken, h.before
		s.flat, s.thin = h.flat, thinning{}
		clear(s.batch.live)
		for len(s.batch.live) < len(h.live) {
			s.batch.live, s.batch.after = append(s.batch.live, 0), append(s.batch.after, 0)
		}
		copy(s.batch.live, h.live)
		s.cfg.Behind.Seek(h.from)
	}
	more, err := s.pushBatch(ctx)
	if err == nil && !more {
		l.holes, l.entered = l.holes[1:], false
		if len(l.holes) == 0 && l.earlier == nil {
			s.log.Info("the backlog is delivered")
		}
		s.report()
	}
	return err
}

// leap leaves what is old for later, where that is much and the receiver takes it
// then. It reports whether the lane in use, which is this session's, may go before
// the backlog.
func (s *Sender) leap(ctx context.Context) (ahead bool, err error) {
	l := &s.lanes
	l.unsure = false
	if e := l.earlier; e != nil && !e.reading {
		if e.reading = e.earlier.Next(); e.reading {
			s.countLost(e)
		} else {
			l.earlier = nil // they left nothing
			s.report()
		}
	}
	_, far := s.edgeFar()
	if !far && (l.late || !s.backlog()) {
		return true, nil
	}
	if time.Now().Before(l.again) {
		return false, nil
	}
	late, err := s.takesLate(ctx)
	if err != nil {
		return false, err
	}
	l.late = late == lateTaken
	switch late {
	case lateUnknown:
		l.unsure = true
		return false, nil
	case lateRefused:
		s.log.Info("receiver takes no samples out of order: the oldest are sent first")
		l.again = time.Now().Add(orderedFor)
		return false, nil
	}
	if edge, far := s.edgeFar(); far { // asking may have taken long
		s.leapTo(edge)
	}
	return true, nil
}

// edgeFar is the first tick of the live edge, which is what was sampled since the
// last push should have been, and whether the lane is so far behind it that it
// should leap there.
func (s *Sender) edgeFar() (edge uint64, far bool) {
	per := uint64(max(1, s.cfg.Interval/max(1, s.cfg.Period)))
	newest := s.cfg.Edge()
	return newest - min(newest, per), newest > s.lanes.nowNext+farBehind*per && len(s.lanes.holes) < maxHoles
}

const (
	// farBehind is how many pushes' worth of ticks must wait for the newest to go
	// first.
	farBehind = 4
	// orderedFor is how long a receiver that takes nothing out of order is not asked
	// again.
	orderedFor = 10 * time.Minute
)

// leapTo makes the first tick from number seq on the live lane's next.
func (s *Sender) leapTo(seq uint64) {
	l := &s.lanes
	s.reading = false
	s.cfg.Ticks.Seek(seq)
	if !s.src.Next() {
		s.cfg.Ticks.Seek(l.nowNext)
		return
	}
	// What is lost before it is the backlog's to count.
	s.reading = true
	t := s.src.Tick()
	h := hole{from: l.nowNext, to: t.Seq, after: s.lastMs, before: s.wall(t.Time), live: slices.Clone(s.batch.live), flat: s.flat.clone()}
	if h.to <= h.from {
		return
	}
	l.holes = append(l.holes, h)
	clear(s.batch.live)
	s.flat = flatness{}
	l.nowNext = h.to
	s.report()
	s.log.Info("the newest ticks go first, the backlog follows", "slots", h.to-h.from,
		"from", s.wallTime(t.Time-int64(h.to-h.from)*int64(s.cfg.Period)), "to", s.wallTime(t.Time))
}

// report tells what is delivered.
func (s *Sender) report() {
	l := &s.lanes
	p := Progress{Earlier: l.earlier == nil, Seq: l.nowNext}
	l.ahead = l.ahead[:0]
	left := uint64(0)
	for _, h := range l.holes {
		left += h.to - h.from
	}
	s.stats.backlog.Store(int64(left))
	if len(l.holes) > 0 {
		p.Seq = l.holes[0].from
		for i, h := range l.holes {
			to := l.nowNext
			if i+1 < len(l.holes) {
				to = l.holes[i+1].from
			}
			if to > h.to {
				l.ahead = append(l.ahead, [2]uint64{h.to, to})
			}
		}
	}
	p.Ahead = l.ahead
	s.cursor.Store(p.Seq)
	if s.cfg.Delivered != nil {
		s.cfg.Delivered(p)
	}
}
