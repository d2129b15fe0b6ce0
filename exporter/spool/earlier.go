package spool

import (
	"slices"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// Earlier reads, for one receiver, what it lacks of the sessions before this one, in
// order. What was read is in the terms of its own session: the series of its slots
// and its clock. Each is used by one goroutine.
type Earlier struct {
	sp       *Spool
	receiver int
	fr       frames
	start    position

	epoch, next uint64
	after       uint64
	known       bool
	lastT       int64
	in          bool
	lost        gap
	given       bool
	clock       []offset
	undated     bool
	none        frame.Tick
}

// Earlier makes a reader that begins where the receiver had come before this
// session.
func (s *Spool) Earlier(receiver int) *Earlier {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.positions[receiver]
	p.ahead = slices.Clone(p.ahead)
	return &Earlier{sp: s, receiver: receiver, fr: frames{sp: s, earlier: true}, start: p,
		epoch: p.epoch, next: p.seq, known: p.seq == 0}
}

// Next moves to the next tick. false is the end for good.
func (e *Earlier) Next() bool {
	if e.given {
		e.given, e.lost = false, gap{}
	}
	for {
		for e.in && e.fr.it.Next() {
			e.after++
			t := e.fr.it.Tick()
			if e.epoch == e.start.epoch && t.Seq < e.next || e.start.has(e.epoch, t.Seq, t.Seq) {
				e.lastT = t.Time
				continue
			}
			if e.undated {
				e.sp.stats.undated.Add(1)
				continue
			}
			e.given, e.next, e.lastT = true, t.Seq+1, t.Time
			return true
		}
		if e.in {
			e.next = e.fr.meta.LastSeq + 1
		}
		if !e.load() {
			return false
		}
	}
}

// load begins the next frame.
func (e *Earlier) load() bool {
	e.in = false
	if !e.fr.load(e.epoch, e.next) {
		return false
	}
	m := &e.fr.meta
	if e.fr.epoch != e.epoch {
		e.epoch, e.after, e.known, e.next, e.lastT = e.fr.epoch, 0, true, 0, 0
		e.clock = nil
	}
	if e.clock == nil {
		e.sp.mu.Lock()
		e.clock = e.sp.clockOf(e.epoch, m.LastTime)
		e.sp.mu.Unlock()
		e.undated = wall(e.clock, m.LastTime) < e.sp.cfg.NotBefore
		if e.undated {
			e.sp.cfg.Logger.Warn("spool holds ticks of a session whose clock was never set, they are counted and left out",
				"session", e.Session())
		}
	}
	lost := uint64(0)
	switch {
	case e.known:
		lost = m.Before - min(m.Before, e.after)
	case m.FirstSeq > e.next:
		lost = min(m.Before, m.FirstSeq-e.next)
	}
	if lost > 0 && m.FirstSeq > 0 && !e.start.has(e.epoch, e.next, m.FirstSeq-1) {
		from := e.lastT
		if from == 0 {
			from = m.FirstTime
		}
		if e.lost.ticks == 0 {
			e.lost.from = from
		}
		e.lost.ticks += lost
		e.lost.to = m.FirstTime
	}
	e.after, e.known, e.in = m.Before, true, true
	return true
}

// Tick is the tick that Next found, valid until the next Next.
func (e *Earlier) Tick() *frame.Tick {
	if !e.in {
		return &e.none
	}
	return e.fr.it.Tick()
}

// Err is nil: what cannot be read was set aside.
func (e *Earlier) Err() error { return nil }

// Lost tells how many ticks are gone immediately before the one that Next found,
// and bounds of their times in ns since their session's start.
func (e *Earlier) Lost() (ticks uint64, from, to int64) { return e.lost.ticks, e.lost.from, e.lost.to }

// Epoch numbers the tick's session, Session is its id.
func (e *Earlier) Epoch() uint64 { return e.epoch }

// Session is the id of the tick's session.
func (e *Earlier) Session() string {
	e.sp.mu.Lock()
	defer e.sp.mu.Unlock()
	return e.sp.ids[e.epoch]
}

// Series are the series of the tick's slots; they stay valid.
func (e *Earlier) Series() []collectors.Series { return e.fr.sch.series }

// Start is the monotonic time at which the counter in a slot started.
func (e *Earlier) Start(slot int) (mono int64, ok bool) {
	if slot >= len(e.fr.sch.starts) {
		return 0, false
	}
	s := e.fr.sch.starts[slot]
	return s.mono, s.known
}

// Wall is the wall time in Unix ms of a time in ns since the session's start.
func (e *Earlier) Wall(mono int64) int64 { return wall(e.clock, mono) }

// Passed tells that the receiver has every tick of a session before number seq, and
// all before that session.
func (e *Earlier) Passed(epoch, seq uint64) { e.sp.Passed(e.receiver, epoch, seq) }
