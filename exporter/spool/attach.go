package spool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// attach makes and locks the directory and reads what is in it.
func (s *Spool) attach() error {
	if err := s.fs.MkdirAll(s.cfg.Dir); err != nil {
		return fmt.Errorf("make the spool's directory: %w", err)
	}
	lock, err := lockDir(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("open the spool: %w", err)
	}
	if err := s.recover(); err != nil {
		_ = lock.Close()
		return fmt.Errorf("read the spool: %w", err)
	}
	s.lock = lock
	return nil
}

// attachLate tries a directory again that could not be used at the start. What former
// sessions left there is for the next start to deliver: by now the senders have gone
// on without it. The disk is read without s.mu, for which the tick loop may wait.
func (s *Spool) attachLate(now time.Time) bool {
	n := newSpool(s.cfg)
	if err := n.attach(); err != nil {
		s.w.broken, s.w.retry = err.Error(), now.Add(attachEvery)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.epoch
	for i := range s.positions {
		p, q := &s.positions[i], &n.positions[i]
		if p.epoch == old && p.seq > 0 {
			q.ahead = append(q.ahead, Range{n.epoch, 0, p.seq})
		}
		for _, r := range p.ahead {
			q.ahead = append(q.ahead, Range{n.epoch, r.From, r.To})
		}
		if len(n.segs) == 0 {
			*q = position{epoch: n.epoch, seq: p.seq, ahead: q.ahead}
			q.ahead = slices.DeleteFunc(q.ahead, func(r Range) bool { return r.To <= p.seq })
		}
		s.moved[i] = true
	}
	s.lock, s.epoch, s.segs, s.positions, s.setAside = n.lock, n.epoch, n.segs, n.positions, n.setAside
	s.owes, s.detached = len(n.segs) > 0, false
	maps.Copy(s.clocks, n.clocks)
	maps.Copy(s.ids, n.ids)
	maps.Copy(s.boots, n.boots)
	s.w.number = n.w.number
	s.stats.torn.Add(n.stats.torn.Load())
	s.stats.quarantined.Add(n.stats.quarantined.Load())
	s.stats.quarantinedTicks.Add(n.stats.quarantinedTicks.Load())
	s.count()
	return true
}

// Owes reports whether former sessions left ticks that are only delivered after the
// next start: a receiver that has all of this session has not all there is.
func (s *Spool) Owes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owes
}

// reopen makes a directory again that is gone, as after another file system was
// mounted over it.
func (s *Spool) reopen() error {
	if err := s.fs.MkdirAll(s.cfg.Dir); err != nil {
		return fmt.Errorf("make the spool's directory: %w", err)
	}
	lock, err := lockDir(s.cfg.Dir)
	if err != nil {
		return err
	}
	err = s.lock.Close()
	s.lock = lock
	return errors.Join(err, s.fs.SyncDir(s.cfg.Dir))
}
