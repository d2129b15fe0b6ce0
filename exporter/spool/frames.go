package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/ticktier/ticktier/exporter/frame"
)

// frames reads the spool's frames one after the other: those of former sessions or,
// with their copies in memory, those of this one. It holds memory for one frame,
// and none before the first.
type frames struct {
	sp      *Spool
	earlier bool

	g     *segment // being read
	epoch uint64
	f     file
	rr    recordReader
	sch   schema
	last  uint64 // the last tick of the frame loaded last, of g

	meta Frame // of the frame that it is over
	mem  []byte
	raw  []byte
	c    frame.Compressor
	it   frame.Iterator
}

// place is where a frame is.
type place struct {
	g    *segment
	size int64
	mem  bool
	f    Frame // in memory; its bytes are copied
}

// locate finds what holds the first tick of a session with number seq or later, or
// for former sessions of a later one.
func (fr *frames) locate(epoch, seq uint64) (place, bool) {
	s := fr.sp
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.segs {
		if g.epoch < epoch || g.epoch == epoch && g.lastSeq < seq || fr.earlier == (g.epoch == s.epoch) {
			continue
		}
		return place{g: g, size: g.size}, true
	}
	if fr.earlier {
		return place{}, false
	}
	if f := s.writing; f != nil && f.LastSeq >= seq {
		return fr.inMemory(*f), true
	}
	for _, f := range s.pending {
		if f.LastSeq >= seq {
			return fr.inMemory(f), true
		}
	}
	return place{}, false
}

func (fr *frames) inMemory(f Frame) place {
	fr.mem = append(fr.mem[:0], f.Bytes...)
	f.Bytes = fr.mem
	return place{mem: true, f: f}
}

// load begins the first frame with a tick of number seq or later. What is damaged
// on the way is set aside.
func (fr *frames) load(epoch, seq uint64) bool {
	for {
		p, ok := fr.locate(epoch, seq)
		if !ok {
			fr.close()
			return false
		}
		if p.mem {
			fr.close()
			fr.meta, fr.epoch = p.f, fr.sp.epoch
			if err := fr.begin(); err != nil {
				// The ring gave it so; that it happens at all is a bug.
				fr.sp.cfg.Logger.Error("spool is given a frame that cannot be read", "err", err)
				seq = p.f.LastSeq + 1
				continue
			}
			return true
		}
		want := seq
		if p.g.epoch > epoch {
			want = 0 // the first of a later session
		}
		err := fr.read(p, want)
		switch {
		case err == nil:
			return true
		case errors.Is(err, fs.ErrNotExist) && !fr.sp.holds(p.g):
			// Dropped meanwhile.
		default:
			fr.close()
			fr.sp.damage(p.g, err)
		}
	}
}

// read reads on in a segment up to the first frame with a tick of number seq or
// later.
func (fr *frames) read(p place, seq uint64) error {
	if p.g.epoch != fr.epoch || fr.g != p.g || seq <= fr.last {
		if err := fr.open(p.g); err != nil {
			return err
		}
	}
	fr.rr.size = p.size
	for {
		rec, err := fr.rr.next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: tick %d is not in it", errBad, seq)
		}
		if err != nil {
			return err
		}
		switch rec.kind {
		case kindSchema:
			// Frames of this session are read by the schema in memory.
			if fr.earlier {
				err = fr.sch.add(rec.payload)
			}
		case kindFrame:
			var f Frame
			if f, err = parseFrame(rec.payload); err == nil {
				fr.last = f.LastSeq
				if f.LastSeq < seq {
					continue
				}
				fr.meta = f
				if err = fr.begin(); err == nil {
					return nil
				}
			}
		}
		if err != nil {
			return err
		}
	}
}

// begin starts on the frame in meta.
func (fr *frames) begin() error {
	slots := frame.MaxSlots
	if fr.earlier {
		slots = len(fr.sch.series)
	}
	if err := fits(&fr.meta, slots); err != nil {
		return err
	}
	raw := fr.meta.Bytes
	if in, err := frame.Parse(raw); err == nil && in.Codec != frame.Raw {
		if fr.raw, err = fr.c.Expand(fr.raw[:0], raw); err != nil {
			return fmt.Errorf("%w: %w", errBad, err)
		}
		raw = fr.raw
	}
	if err := fr.it.Reset(raw); err != nil {
		return fmt.Errorf("%w: %w", errBad, err)
	}
	return nil
}

func (fr *frames) open(g *segment) error {
	fr.close()
	f, err := fr.sp.fs.OpenRead(g.path)
	if err != nil {
		return err
	}
	fr.f, fr.g, fr.epoch = f, g, g.epoch
	fr.rr = recordReader{r: f, off: headerLen, buf: fr.rr.buf}
	fr.sch = schema{}
	return nil
}

func (fr *frames) close() {
	if fr.f != nil {
		_ = fr.f.Close() // only read
	}
	fr.f, fr.g, fr.last = nil, nil, 0
}

func (s *Spool) holds(g *segment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.segs {
		if h == g {
			return true
		}
	}
	return false
}

func (s *Spool) isDamaged(g *segment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.damaged
}

// damage sets aside what is bad of a segment that could not be read.
func (s *Spool) damage(g *segment, cause error) {
	name := filepath.Base(g.path)
	found, err := scan(s.fs, g.path)
	if err == nil && found.bad == nil && found.size < s.sizeOf(g) {
		found.bad = fmt.Errorf("%w: %d bytes are left of %d", errBad, found.size, s.sizeOf(g))
	}
	if err != nil || found.bad == nil {
		// The disk does not give it back, or not twice the same.
		found.frames, found.size, found.bad = 0, 0, cause
	}
	s.cfg.Logger.Error("spool segment is damaged, it is good up to there and the rest is set aside in quarantine",
		"segment", name, "at", found.size, "err", cause)
	s.mu.Lock()
	lost := g.ticks - min(g.ticks, found.ticks)
	if found.frames == 0 {
		lost = g.ticks
		for i, h := range s.segs {
			if h == g {
				s.segs = append(s.segs[:i:i], s.segs[i+1:]...)
				break
			}
		}
	}
	g.damaged = true
	g.size, g.frames, g.ticks = found.size, found.frames, found.ticks
	g.lastSeq, g.lastTime = found.lastSeq, found.lastTime
	s.count()
	s.mu.Unlock()
	before := s.stats.quarantinedTicks.Load()
	s.quarantineRest(g.path, &found)
	s.stats.quarantinedTicks.Store(before + int64(lost))
	if found.frames > 0 {
		s.cut(g.path, &found)
	}
}

func (s *Spool) sizeOf(g *segment) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.size
}
