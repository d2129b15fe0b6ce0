package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// probeEvery is how often it is tried whether the directory can be written while
// nothing is.
const probeEvery = 10 * time.Minute

// tryOut tries the directory where that is due: an outage is not to be the first to
// learn that it takes nothing.
func (s *Spool) tryOut(now time.Time) error {
	if s.w.probed.IsZero() {
		s.w.probed = now // Open has done it
	}
	if s.w.broken == "" && now.Sub(s.w.probed) < probeEvery {
		return nil
	}
	s.w.probed = now
	return s.probe()
}

// probe writes a file and removes it.
func (s *Spool) probe() error {
	path := filepath.Join(s.cfg.Dir, "probe.tmp")
	if err := s.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("try the spool's directory: %w", err)
	}
	f, err := s.fs.Create(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is gone, and made again when it is needed
	}
	if err != nil {
		return fmt.Errorf("try the spool's directory: %w", err)
	}
	_, err = f.WriteAt(make([]byte, 512), 0)
	if err = errors.Join(err, f.Close(), s.fs.Remove(path)); err != nil {
		return fmt.Errorf("try the spool's directory: %w", err)
	}
	return nil
}

// dropRing counts what the ring still holds and the disk did not take, at the end.
func (s *Spool) dropRing() {
	s.mu.Lock()
	from := s.undelivered()
	s.mu.Unlock()
	for from != ^uint64(0) {
		f, ok := s.cfg.Sealed(from, s.w.through)
		if !ok {
			return
		}
		s.w.through, from = f.Bytes, f.LastSeq+1
		s.mu.Lock()
		n := s.missing(&segment{header: header{epoch: s.epoch}, ticks: f.Ticks, firstSeq: f.FirstSeq, lastSeq: f.LastSeq})
		s.stats.droppedQ.Add(int64(n))
		s.losses.add(n, s.wallOf(s.epoch, f.FirstTime), s.wallOf(s.epoch, f.LastTime))
		s.spooledTo = max(s.spooledTo, from)
		s.mu.Unlock()
	}
}

// Left is what of the ticks on the disk, written and synced, a receiver does not have,
// and the bounds of their times in Unix ms. After Close it is what the next start finds.
func (s *Spool) Left(receiver int) (ticks uint64, from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum losses
	for _, g := range s.segs {
		if g == s.unsynced {
			continue
		}
		n := min(g.ticks, s.positions[receiver].lacks(g.epoch, g.firstSeq, g.lastSeq))
		sum.add(n, s.wallOf(g.epoch, g.firstTime), s.wallOf(g.epoch, g.lastTime))
	}
	return sum.ticks, sum.from, sum.to
}
