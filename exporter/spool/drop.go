package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
)

// losses is what was dropped since the log last said so.
type losses struct {
	ticks    uint64
	from, to int64 // Unix ms
	logged   time.Time
}

// add notes lost ticks and bounds of their times.
func (l *losses) add(ticks uint64, from, to int64) {
	if ticks == 0 {
		return
	}
	if l.ticks == 0 {
		l.from, l.to = from, to
	}
	l.ticks += ticks
	l.from, l.to = min(l.from, from), max(l.to, to)
}

// lossEvery is the time between two lines about losses.
const lossEvery = time.Minute

// logLosses says what was dropped, the first time at once. A zero now is the end.
func (s *Spool) logLosses(now time.Time) {
	s.mu.Lock()
	l := s.losses
	due := l.ticks > 0 && (now.IsZero() || now.Sub(l.logged) >= lossEvery)
	if due {
		s.losses = losses{logged: now}
	}
	s.mu.Unlock()
	text := "spool dropped ticks that not every receiver has"
	if now.IsZero() {
		text = "ticks that not every receiver has are lost with this stop, the spool did not take them"
	}
	if due {
		s.cfg.Logger.Warn(text, "ticks", l.ticks,
			"from", time.UnixMilli(l.from).UTC(), "to", time.UnixMilli(l.to).UTC())
	}
}

// wallOf is the wall time in ms of a monotonic time of a session. s.mu is held.
func (s *Spool) wallOf(epoch uint64, mono int64) int64 {
	return wall(s.clockOf(epoch, mono), mono)
}

// removeDelivered removes the segments that every receiver has, and ends spilling
// when there is nothing more to spill.
func (s *Spool) removeDelivered() {
	s.mu.Lock()
	var gone []*segment
	s.segs = slices.DeleteFunc(s.segs, func(g *segment) bool {
		if !s.delivered(g.epoch, g.firstSeq, g.lastSeq) {
			return false
		}
		gone = append(gone, g)
		return true
	})
	if len(s.pending) == 0 && s.caughtUp() {
		s.spill(false)
	}
	s.count()
	s.mu.Unlock()
	for _, g := range gone {
		s.remove(g)
	}
}

// caughtUp reports whether what every receiver was sent last is newer than what is
// spooled. s.mu is held.
func (s *Spool) caughtUp() bool {
	for i := range s.positions {
		p := &s.positions[i]
		newest := uint64(0)
		if p.epoch == s.epoch {
			newest = p.seq
		}
		for _, r := range p.ahead {
			if r.Epoch == s.epoch {
				newest = max(newest, r.To)
			}
		}
		if newest < s.spooledTo {
			return false
		}
	}
	return true
}

func (s *Spool) remove(g *segment) {
	if s.w.seg == g {
		s.forgetFile()
	}
	if err := s.fs.Remove(g.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.cfg.Logger.Warn("spool segment cannot be removed", "err", err)
	}
}

// dropOldest gives up the oldest segment and counts it; false means that there is
// none.
func (s *Spool) dropOldest(counter *atomic.Int64) bool {
	s.mu.Lock()
	if len(s.segs) == 0 {
		s.mu.Unlock()
		return false
	}
	g := s.segs[0]
	s.segs = s.segs[1:]
	n := s.missing(g)
	counter.Add(int64(n))
	s.losses.add(n, s.wallOf(g.epoch, g.firstTime), s.wallOf(g.epoch, g.lastTime))
	s.count()
	s.mu.Unlock()
	s.remove(g)
	return true
}

// missing is how many ticks of a segment some receiver lacks. Where one has a part of
// it that is reckoned as if no slot had been missed. s.mu is held.
func (s *Spool) missing(g *segment) uint64 {
	n := uint64(0)
	for i := range s.positions {
		n = max(n, min(g.ticks, s.positions[i].lacks(g.epoch, g.firstSeq, g.lastSeq)))
	}
	return n
}

// dropOld drops segments that are too old. While the clock is not set nothing is.
func (s *Spool) dropOld() {
	if s.cfg.MaxAge <= 0 {
		return
	}
	now := s.cfg.Now()
	for now >= s.cfg.NotBefore {
		s.mu.Lock()
		old := false
		if len(s.segs) > 0 {
			g := s.segs[0]
			t := s.wallOf(g.epoch, g.lastTime)
			old = t >= s.cfg.NotBefore && now-t > s.cfg.MaxAge.Milliseconds()
		}
		s.mu.Unlock()
		if !old || !s.dropOldest(&s.stats.droppedAge) {
			return
		}
	}
}

// storePositions makes the positions durable, as far as they moved and there is
// something that they are positions in.
func (s *Spool) storePositions() error {
	for i, receiver := range s.cfg.Receivers {
		s.mu.Lock()
		due := s.moved[i] && (len(s.segs) > 0 || len(s.pending) > 0)
		var b []byte
		if due {
			b = s.positions[i].append(nil, receiver)
			s.moved[i] = false
		}
		s.mu.Unlock()
		if !due {
			continue
		}
		path := filepath.Join(s.cfg.Dir, cursorName(receiver))
		if err := replaceFile(s.fs, s.cfg.Dir, path, b); err != nil {
			s.mu.Lock()
			s.moved[i] = true
			s.mu.Unlock()
			return fmt.Errorf("store the position of %s: %w", receiver, err)
		}
		s.stats.written.Add(int64(len(b)))
	}
	return nil
}
