package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/ticktier/ticktier/exporter/frame"
)

// writer is what only the writing goroutine uses.
type writer struct {
	number uint64 // of the next segment
	seg    *segment
	f      file
	slots  int    // whose series are in the segment
	of     uint64 // the generation of the schema they are of
	clock  []byte // the table that is in it, encoded
	table  []byte // the present one
	dirty  bool   // written and not synced

	synced, stored, retry time.Time
	probed                time.Time
	broken                string // what the disk answered last; empty while it works

	buf, z, through []byte
	c               frame.Compressor
}

// Run writes what is offered, until ctx is done; Close then writes the rest.
func (s *Spool) Run(ctx context.Context) error {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-tick.C:
		}
		s.cycle(time.Now())
	}
}

// Close writes what waits and what the ring still holds undelivered, makes all of
// it durable and releases the directory. Run must have returned, and the ring must
// get no more ticks and have no open frame.
func (s *Spool) Close() error {
	s.w.retry, s.w.synced, s.w.stored = time.Time{}, time.Time{}, time.Time{}
	s.mu.Lock()
	s.spilling = true
	s.mu.Unlock()
	s.cycle(time.Now())
	s.mu.Lock()
	for len(s.pending) > 0 {
		s.dropPending()
	}
	s.mu.Unlock()
	s.dropRing()
	s.logLosses(time.Time{})
	if s.w.dirty {
		s.unsynced = s.w.seg
	}
	var err error
	if s.w.f != nil {
		err = s.w.f.Close()
		s.w.f = nil
	}
	if s.lock == nil {
		return err
	}
	return errors.Join(err, s.lock.Close())
}

// cycle does what is due.
func (s *Spool) cycle(now time.Time) {
	if s.detached && (now.Before(s.w.retry) || !s.attachLate(now)) {
		s.logLosses(now)
		return
	}
	if !now.Before(s.w.retry) {
		err := s.tryOut(now)
		if err == nil {
			err = s.write()
		}
		if err == nil && s.w.dirty && now.Sub(s.w.synced) >= syncEvery {
			s.w.synced = now
			if err = s.w.f.Sync(); err == nil {
				s.w.dirty = false
			}
		}
		s.removeDelivered()
		if err == nil && now.Sub(s.w.stored) >= syncEvery {
			s.w.stored = now
			err = s.storePositions()
		}
		s.outcome(now, err)
	}
	s.dropOld()
	s.logLosses(now)
}

// outcome notes whether the disk works, with one line in the log per change.
func (s *Spool) outcome(now time.Time, err error) {
	switch {
	case err == nil && s.w.broken != "":
		s.w.broken = ""
		s.stats.failing.Store(false)
		s.cfg.Logger.Info("spool can be written again")
	case err != nil:
		if s.w.broken == "" {
			s.cfg.Logger.Error("spool cannot be written, ticks are kept in memory alone until it can", "err", err)
		}
		s.w.broken, s.w.retry = err.Error(), now.Add(retryEvery)
		s.stats.failing.Store(true)
	}
}

// write writes what waits, and while frames are spilled what the ring has sealed.
func (s *Spool) write() error {
	for {
		s.mu.Lock()
		if len(s.pending) == 0 {
			on, from := s.spilling, s.undelivered()
			s.mu.Unlock()
			if !on {
				return nil
			}
			if more, err := s.writeThrough(from); !more || err != nil {
				return err
			}
			continue
		}
		f := s.pending[0]
		s.writing = &f
		s.pending[0] = Frame{}
		s.pending = s.pending[1:]
		done := f.LastSeq < s.spooledTo || s.delivered(s.epoch, f.FirstSeq, f.LastSeq)
		s.mu.Unlock()

		var err error
		if !done {
			err = s.append(&f)
		}
		s.mu.Lock()
		s.writing = nil
		if err != nil {
			s.pending = append([]Frame{f}, s.pending...)
		} else {
			s.waiting -= len(f.Bytes)
			s.recycle(f.Bytes)
		}
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// undelivered is the first tick of this session that may have to be written. s.mu
// is held.
func (s *Spool) undelivered() uint64 {
	least := ^uint64(0)
	for i := range s.positions {
		p := &s.positions[i]
		if p.epoch != s.epoch {
			least = 0
			break
		}
		least = min(least, p.seq)
	}
	return max(least, s.spooledTo)
}

// writeThrough writes the ring's first sealed frame with a tick of number from or
// later, and reports whether there may be more.
func (s *Spool) writeThrough(from uint64) (bool, error) {
	if from == ^uint64(0) {
		return false, nil // there is no receiver
	}
	f, ok := s.cfg.Sealed(from, s.w.through)
	if !ok {
		return false, nil
	}
	s.w.through = f.Bytes
	s.mu.Lock()
	// What was evicted since is older, and comes first.
	older := len(s.pending) > 0
	has := s.delivered(s.epoch, f.FirstSeq, f.LastSeq)
	if has && !older {
		s.spooledTo = max(s.spooledTo, f.LastSeq+1)
	}
	s.mu.Unlock()
	if older || has {
		return true, nil
	}
	return true, s.append(&f)
}

// spill notes whether frames are written as soon as they are sealed. s.mu is held.
func (s *Spool) spill(on bool) {
	if s.spilling == on {
		return
	}
	s.spilling = on
	if s.cfg.Spilling != nil {
		s.cfg.Spilling(on)
	}
}

// append writes a frame of this session, with whatever is needed to understand it.
func (s *Spool) append(f *Frame) error {
	b := compressed(&s.w.c, s.w.z, f.Bytes)
	if in, err := frame.Parse(b); err != nil {
		s.cfg.Logger.Error("spool is given a frame that is none", "err", err) // a bug
		return nil
	} else if err := s.room(in.Slots, len(b)); err != nil {
		return err
	} else {
		s.begin(in.Slots)
	}
	if cap(b) > cap(s.w.z) && len(b) > 0 && len(f.Bytes) > 0 && &b[0] != &f.Bytes[0] {
		s.w.z = b
	}
	at := len(s.w.buf)
	stored := *f
	stored.Bytes = b
	s.w.buf = stored.append(beginRecord(s.w.buf, kindFrame))
	endRecord(s.w.buf, at)
	if err := s.writeAt(s.w.buf); err != nil {
		return err
	}
	if cap(s.w.buf) > 4*maxSegment {
		s.w.buf = nil // of one huge schema or frame
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.w.seg
	if g.damaged {
		s.forgetFile()
		return fmt.Errorf("segment %d was found damaged while it was written", g.number)
	}
	if g.frames == 0 {
		s.segs = append(s.segs, g)
	}
	g.size += int64(len(s.w.buf))
	g.add(&stored)
	s.spooledTo = f.LastSeq + 1
	s.stats.spooled.Add(int64(f.Ticks))
	s.count()
	return nil
}

// begin puts the series and the clock, where they changed, into the buffer.
func (s *Spool) begin(slots int) {
	s.w.buf = s.w.buf[:0]
	if s.w.slots == 0 && s.cfg.Boot != "" {
		b := boot{s.cfg.Boot, s.cfg.BootTime}
		s.w.buf = b.append(beginRecord(s.w.buf, kindBoot))
		endRecord(s.w.buf, 0)
	}
	if slots > s.w.slots {
		s.w.of = s.cfg.Schema.Generation() // before the series: they are no older
		series := s.cfg.Schema.Series()
		at := len(s.w.buf)
		s.w.buf = appendSchema(beginRecord(s.w.buf, kindSchema), s.w.slots, series[min(s.w.slots, len(series)):], s.cfg.Start)
		endRecord(s.w.buf, at)
		s.w.slots = len(series)
	}
	s.w.table = appendClock(s.w.table[:0], s.cfg.Clock())
	if !bytes.Equal(s.w.table, s.w.clock) {
		at := len(s.w.buf)
		s.w.buf = append(beginRecord(s.w.buf, kindClock), s.w.table...)
		endRecord(s.w.buf, at)
		s.w.clock = append(s.w.clock[:0], s.w.table...)
	}
}

// room makes room for a frame: a new segment where the present one is full, and
// within the budget by dropping the oldest.
func (s *Spool) room(slots, size int) error {
	if s.w.f != nil && s.isDamaged(s.w.seg) {
		s.forgetFile()
	}
	// Where slots were given to other series, the segment's series are old.
	old := s.w.slots > 0 && s.w.of != s.cfg.Schema.Generation()
	if s.w.f != nil && s.w.seg.frames > 0 && (old || s.w.seg.size+int64(size) > s.target) {
		if err := s.closeSegment(); err != nil {
			return err
		}
	}
	need := int64(size) + headLen + metaLen
	if s.w.f == nil {
		need += headerLen
	}
	if slots > s.w.slots {
		need += int64(slots) * 16 // about; the end of the budget need not be met to a byte
	}
	for s.stats.bytes.Load()+need > s.cfg.MaxBytes {
		if !s.dropOldest(&s.stats.droppedCap) {
			break
		}
	}
	if s.w.f != nil {
		return nil
	}
	return s.openSegment()
}

// openSegment begins a segment.
func (s *Spool) openSegment() error {
	h := header{number: s.w.number, epoch: s.epoch, created: s.cfg.Now(), session: s.cfg.Session}
	path := filepath.Join(s.cfg.Dir, segmentName(h.number))
	f, err := s.fs.Create(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.reopen(); err == nil {
			f, err = s.fs.Create(path)
		}
	}
	if err != nil {
		return fmt.Errorf("begin segment %d: %w", h.number, err)
	}
	s.w.number++
	b := h.append(nil)
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = s.fs.SyncDir(s.cfg.Dir)
	}
	if err != nil {
		_ = f.Close()
		_ = s.fs.Remove(path)
		return fmt.Errorf("begin segment %d: %w", h.number, err)
	}
	s.stats.written.Add(int64(len(b)))
	s.w.seg, s.w.f = &segment{header: h, path: path, size: headerLen}, f
	s.w.slots, s.w.clock, s.w.dirty = 0, s.w.clock[:0], true
	return nil
}

// closeSegment ends the present segment.
func (s *Spool) closeSegment() error {
	if s.w.dirty {
		if err := s.w.f.Sync(); err != nil {
			return fmt.Errorf("sync segment %d: %w", s.w.seg.number, err)
		}
	}
	s.forgetFile()
	return nil
}

func (s *Spool) forgetFile() {
	_ = s.w.f.Close() // synced, or not wanted
	s.w.f, s.w.seg, s.w.dirty = nil, nil, false
}

// writeAt writes at the end of the present segment, all or nothing: what a failed
// write left behind is cut, now or when the segment is read again.
func (s *Spool) writeAt(b []byte) error {
	g := s.w.seg
	n, err := s.w.f.WriteAt(b, g.size)
	s.stats.written.Add(int64(n))
	if err == nil {
		s.w.dirty = true
		return nil
	}
	err = fmt.Errorf("write segment %d: %w", g.number, err)
	// What begin put into the buffer is not there: the next attempt is in a new
	// segment, or in this one anew.
	s.w.slots, s.w.clock = 0, s.w.clock[:0]
	if g.frames > 0 {
		if e := s.w.f.Truncate(g.size); e != nil {
			err = errors.Join(err, e)
		}
		_ = s.w.f.Sync()
	}
	path, used := g.path, g.frames > 0
	s.forgetFile()
	if !used {
		_ = s.fs.Remove(path)
	}
	return err
}
