package spool

import (
	"github.com/ticktier/ticktier/exporter/frame"
)

// RingTicks is a reader of the ring.
type RingTicks interface {
	Seek(seq uint64)
	// SeekAfter is Seek where the number of ticks before seq is known.
	SeekAfter(seq, after uint64)
	Next() bool
	Tick() *frame.Tick
	Err() error
	// Lost is how many ticks were evicted immediately before the one that Next
	// found, and the monotonic times in ns that they span.
	Lost() (ticks uint64, from, to int64)
	// After is the number of ticks of the session up to that one, inclusive.
	After() uint64
}

// Reader reads the ticks of this session in order, from the ring where that has
// them and from the spool where it had to give them up. Each reader is used by one
// goroutine.
type Reader struct {
	ring RingTicks
	fr   frames

	next    uint64 // ticks with lower numbers are passed over
	after   uint64 // ticks of the session up to the one read last
	known   bool   // after is exact
	lastT   int64
	inSpool bool // fr is on a frame with more to read
	held    bool // the ring's tick is read and not yet given

	cur   *frame.Tick
	none  frame.Tick
	lost  gap
	given bool
}

// gap is ticks that were lost.
type gap struct {
	ticks    uint64
	from, to int64
}

// Reader joins a reader of the ring and the spool. It begins at the first tick of
// the session.
func (s *Spool) Reader(ring RingTicks) *Reader {
	return &Reader{ring: ring, fr: frames{sp: s}, known: true}
}

// Seek makes the next Next return the first tick still held with a number of at
// least seq. Ticks from seq on that are held no longer count as lost.
func (r *Reader) Seek(seq uint64) {
	r.ring.Seek(seq)
	r.fr.close()
	r.next, r.after, r.known, r.lastT = seq, 0, seq == 0, 0
	r.inSpool, r.held, r.given, r.lost, r.cur = false, false, false, gap{}, nil
}

// Tick is the tick that Next found, valid until the next Next or Seek.
func (r *Reader) Tick() *frame.Tick {
	if r.cur == nil {
		return &r.none
	}
	return r.cur
}

// Err is why Next returned false: nil when there is no newer tick.
func (r *Reader) Err() error { return r.ring.Err() }

// Lost tells how many ticks are gone immediately before the one that Next found,
// and bounds of their monotonic times in ns.
func (r *Reader) Lost() (ticks uint64, from, to int64) { return r.lost.ticks, r.lost.from, r.lost.to }

// Next moves to the next tick. It returns false when there is none yet; a later
// call goes on from there.
func (r *Reader) Next() bool {
	if r.given {
		r.given, r.lost = false, gap{}
	}
	for {
		if r.inSpool && r.nextSpooled() {
			return true
		}
		if !r.held {
			if !r.ring.Next() {
				return false
			}
			r.held = true
			if n, _, _ := r.ring.Lost(); n > 0 && r.load() {
				continue
			}
		}
		r.give()
		return true
	}
}

// give gives the ring's tick.
func (r *Reader) give() {
	t := r.ring.Tick()
	if r.known {
		r.count(r.ring.After()-1, t.Time)
	} else if n, from, to := r.ring.Lost(); n > 0 {
		r.lost = gap{n, from, to}
	}
	r.held = false
	r.after, r.known = r.ring.After(), true
	r.found(t)
}

func (r *Reader) found(t *frame.Tick) {
	r.cur, r.given = t, true
	r.next, r.lastT = t.Seq+1, t.Time
}

// count notes as lost what is between the tick read last and one before which there
// were so many in the session.
func (r *Reader) count(before uint64, time int64) {
	if before <= r.after {
		return
	}
	if r.lost.ticks == 0 {
		r.lost.from = r.lastT
	}
	r.lost.ticks += before - r.after
	r.lost.to = time
}

// nextSpooled moves on in the spool; false means that the ring's turn has come.
func (r *Reader) nextSpooled() bool {
	for {
		for r.fr.it.Next() {
			r.after++
			t := r.fr.it.Tick()
			if t.Seq < r.next {
				continue
			}
			if r.held && t.Seq >= r.ring.Tick().Seq {
				r.after--
				r.inSpool = false
				return false
			}
			r.found(t)
			return true
		}
		r.next = max(r.next, r.fr.meta.LastSeq+1)
		if !r.load() {
			break
		}
	}
	r.inSpool = false
	if !r.held {
		r.ring.SeekAfter(r.next, r.after)
	}
	return false
}

// load begins the spool's next frame, unless the ring has what is in it too.
func (r *Reader) load() bool {
	r.inSpool = false
	if !r.fr.load(r.fr.sp.epoch, r.next) || r.held && r.fr.meta.FirstSeq >= r.ring.Tick().Seq {
		return false
	}
	m := &r.fr.meta
	switch {
	case r.known:
		r.count(m.Before, m.FirstTime)
	case m.FirstSeq > r.next:
		n := min(m.Before, m.FirstSeq-r.next)
		r.lost = gap{n, m.FirstTime, m.FirstTime}
	}
	r.after, r.known, r.inSpool = m.Before, true, true
	return true
}
