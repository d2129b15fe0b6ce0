package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
)

// recover reads what former sessions left, cuts what is torn and sets aside what is
// damaged. An error means that the directory cannot be listed.
func (s *Spool) recover() error {
	list, err := names(s.fs, s.cfg.Dir)
	if err != nil {
		return err
	}
	last := uint64(0)
	for _, name := range list {
		path := filepath.Join(s.cfg.Dir, name)
		number, ok := segmentNumber(name)
		switch {
		case strings.HasSuffix(name, ".tmp"):
			_ = s.fs.Remove(path)
		case ok:
			last = max(last, number)
			s.recoverSegment(path)
		}
	}
	s.w.number = last + 1
	s.measureQuarantine()
	for i, r := range s.cfg.Receivers {
		s.positions, s.moved = append(s.positions, s.recoverPosition(r)), append(s.moved, false)
		s.epoch = max(s.epoch, s.positions[i].epoch)
	}
	for _, g := range s.segs {
		s.epoch = max(s.epoch, g.epoch)
	}
	if s.epoch == math.MaxUint64 {
		s.epoch = 0 // only made-up files have it
	}
	s.epoch++
	s.ids[s.epoch] = s.cfg.Session
	s.count()
	if n := len(s.segs); n > 0 {
		ticks := uint64(0)
		for _, g := range s.segs {
			ticks += g.ticks
		}
		s.cfg.Logger.Info("spool holds ticks of former sessions", "ticks", ticks, "segments", n, "bytes", s.stats.bytes.Load())
	}
	return nil
}

// recoverSegment takes what is good of one file.
func (s *Spool) recoverSegment(path string) {
	found, err := scan(s.fs, path)
	name := filepath.Base(path)
	if err != nil {
		s.cfg.Logger.Error("spool segment cannot be read, it is left out", "segment", name, "err", err)
		return
	}
	if n := len(s.segs); found.bad == nil && n > 0 && !follows(s.segs[n-1], &found.segment) {
		found.bad = fmt.Errorf("%w: session %d after session %d, tick %d after tick %d", errBad,
			found.epoch, s.segs[n-1].epoch, found.firstSeq, s.segs[n-1].lastSeq)
		found.frames = 0
	}
	if found.frames > 0 {
		g := found.segment
		s.segs = append(s.segs, &g)
		s.ids[g.epoch] = g.session
		if found.boot.id != "" {
			s.boots[g.epoch] = found.boot
		}
		if len(found.clock) > 0 {
			s.clocks[g.epoch] = found.clock
		}
	}
	switch {
	case found.bad == nil && found.frames == 0:
		_ = s.fs.Remove(path) // begun, and never used
	case found.bad != nil && found.torn:
		s.stats.torn.Add(1)
		s.cfg.Logger.Warn("spool segment has a torn tail, it is cut off", "segment", name, "bytes", found.length-found.size, "err", found.bad)
		s.cut(path, &found)
	case found.bad != nil:
		s.cfg.Logger.Error("spool segment is damaged, it is good up to there and the rest is set aside in quarantine",
			"segment", name, "at", found.size, "bytes", found.length-found.size, "err", found.bad)
		s.quarantineRest(path, &found)
		s.cut(path, &found)
	}
}

// follows reports whether a segment can be the one after another.
func follows(a, b *segment) bool {
	return b.epoch > a.epoch || b.epoch == a.epoch && (b.frames == 0 || b.firstSeq > a.lastSeq)
}

// cut leaves of a file what is good. Where the disk lets nobody write, what is bad
// stays and is not read.
func (s *Spool) cut(path string, found *scanned) {
	if found.frames == 0 {
		if err := s.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.cfg.Logger.Warn("spool segment cannot be removed", "err", err)
		}
		return
	}
	f, err := s.fs.Open(path)
	if err == nil {
		err = f.Truncate(found.size)
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.cfg.Logger.Warn("spool segment cannot be cut", "err", err)
	}
}

// quarantineRest puts what is bad of a segment into quarantine: the file itself
// where nothing of it is good.
func (s *Spool) quarantineRest(path string, found *scanned) {
	s.stats.quarantined.Add(1)
	s.stats.quarantinedTicks.Add(int64(ticksIn(s.fs, path, found)))
	dir := s.quarantineDir()
	err := s.fs.MkdirAll(dir)
	to := filepath.Join(dir, filepath.Base(path))
	switch {
	case err != nil:
	case found.frames == 0:
		if err = s.fs.Rename(path, to); err == nil {
			err = errors.Join(s.fs.SyncDir(dir), s.fs.SyncDir(s.cfg.Dir))
		}
	default:
		err = s.copyRest(path, fmt.Sprintf("%s.%d", to, found.size), found)
	}
	if err != nil {
		s.cfg.Logger.Warn("spool cannot put what is damaged into quarantine", "err", err)
	}
}

// copyRest copies a file from where it is bad.
func (s *Spool) copyRest(path, to string, found *scanned) error {
	from, err := s.fs.OpenRead(path)
	if err != nil {
		return err
	}
	defer from.Close()
	b := make([]byte, min(found.length-found.size, s.cfg.MaxBytes/quarantineShare))
	n, err := from.ReadAt(b, found.size)
	if n == 0 {
		return err
	}
	return replaceFile(s.fs, s.quarantineDir(), to, b[:n])
}

// ticksIn reckons how many ticks are lost with what is bad of a segment, as far as
// its records can still be told apart.
func ticksIn(fsys fsys, path string, found *scanned) (ticks uint64) {
	f, err := fsys.OpenRead(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	rr := recordReader{r: f, size: found.length, off: max(headerLen, found.size)}
	for {
		at := rr.off
		rec, err := rr.next()
		switch {
		case err == nil || errors.Is(err, errBad) && rec.payload != nil:
		default:
			return ticks
		}
		if rec.kind == kindFrame {
			if fr, err := parseFrame(rec.payload); err == nil && fr.Ticks < 1<<20 {
				ticks += fr.Ticks
			}
		}
		rr.off = at + headLen + int64(len(rec.payload))
	}
}

// quarantineShare of the budget is the most that quarantine may take.
const quarantineShare = 8

// measureQuarantine adds up what is in quarantine, and removes the oldest where
// that is too much.
func (s *Spool) measureQuarantine() {
	list, err := names(s.fs, s.quarantineDir())
	if err != nil {
		return
	}
	s.setAside = 0
	for i := len(list) - 1; i >= 0; i-- {
		path := filepath.Join(s.quarantineDir(), list[i])
		size := int64(0)
		if f, err := s.fs.OpenRead(path); err == nil {
			size, _ = f.Size()
			_ = f.Close()
		}
		if s.setAside+size > s.cfg.MaxBytes/quarantineShare {
			_ = s.fs.Remove(path)
			continue
		}
		s.setAside += size
	}
}

// recoverPosition reads how far a receiver had come; where that is not known it
// gets everything.
func (s *Spool) recoverPosition(receiver string) position {
	path := filepath.Join(s.cfg.Dir, cursorName(receiver))
	b, err := readFile(s.fs, path, maxCursorFile)
	if errors.Is(err, fs.ErrNotExist) {
		return position{}
	}
	var p position
	if err == nil {
		p, _, err = parsePosition(b)
	}
	if err != nil {
		s.cfg.Logger.Error("spool position cannot be read, the receiver gets everything", "receiver", receiver, "err", err)
		_ = s.fs.MkdirAll(s.quarantineDir())
		if s.fs.Rename(path, filepath.Join(s.quarantineDir(), filepath.Base(path))) == nil {
			s.stats.quarantined.Add(1)
		}
		return position{}
	}
	return p
}

// count brings the figures up to date. s.mu is held, or nobody else is there yet.
func (s *Spool) count() {
	total := s.setAside
	for _, g := range s.segs {
		total += g.size
	}
	s.stats.bytes.Store(total)
	s.stats.segments.Store(int64(len(s.segs)))
}
