package spool

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

const (
	// MinBytes is the smallest budget: a few segments.
	MinBytes = 256 << 10

	// A segment holds its series once, about 10 KiB of 1,500: in one of a MiB that
	// is 1 %. Segments are dropped whole, so there are at least sixteen.
	maxSegment = 1 << 20
	minSegment = 16 << 10

	// maxPending is what waits in memory for the disk, at most: minutes at 10 Hz.
	maxPending = 512 << 10

	// syncEvery is how much a power cut may cost, retryEvery how soon a disk that
	// failed is tried again.
	syncEvery  = time.Second
	retryEvery = 5 * time.Second
	// attachEvery is how soon a directory is tried again that could not be used.
	attachEvery = 15 * time.Second
)

// Config is what a Spool needs. It is not changed after Open.
type Config struct {
	Dir      string
	MaxBytes int64         // of all files
	MaxAge   time.Duration // of ticks; 0 is any
	// MaxPending bounds what waits in memory for the disk, beside the newest frame; 0
	// is 512 KiB.
	MaxPending int
	Session    string // the id of this run
	// Receivers are the names of those that everything is kept for.
	Receivers []string
	// Schema names the slots of this session's frames; Start is the monotonic time
	// at which a counter started, where that is known, and may be nil.
	Schema *collectors.Schema
	Start  func(*collectors.Series) (mono int64, ok bool)
	// Clock is the table of this session: from each time on, the offset that makes
	// it wall time, both in ns. Now is Unix ms by that clock. Safe for concurrent
	// use.
	Clock func() iter.Seq2[int64, int64]
	Now   func() int64
	// NotBefore is a wall time in ms that is past: an earlier one is of a clock that
	// was not set.
	NotBefore int64
	// Sealed copies the ring's first sealed frame with a tick of number seq or
	// later, reusing buf; false means that there is none. Safe for concurrent use.
	Sealed func(seq uint64, buf []byte) (Frame, bool)
	// Spilling is told when frames begin to be written as soon as they are sealed,
	// and when that ends. It must not block, nor wait for whoever calls Offer. Nil
	// is allowed.
	Spilling func(on bool)
	// Boot is an id of this boot of the machine, and BootTime the time since then in ns
	// at which the session's monotonic time was 0. A former session of the same boot
	// whose clock was never set gets its times by this one's clock. Empty is unknown.
	Boot     string
	BootTime int64
	Logger   *slog.Logger

	fs fsys
}

// Spool is an open spool. Offer and Passed may be called from any goroutine and
// never touch the disk; Run is the only goroutine that writes.
type Spool struct {
	cfg    Config
	fs     fsys
	lock   *os.File
	epoch  uint64 // of this session; they rise from start to start
	wake   chan struct{}
	target int64 // at which a segment is closed
	w      writer

	mu        sync.Mutex // guards all below
	pending   []Frame    // evicted and not yet written, oldest first
	writing   *Frame     // before them: the one that is being written
	waiting   int        // bytes of pending
	free      [][]byte
	spooledTo uint64 // this session's ticks before it are written or dropped
	spilling  bool
	segs      []*segment // oldest first, those of earlier sessions before this one's
	clocks    map[uint64][]offset
	ids       map[uint64]string
	boots     map[uint64]boot
	detached  bool       // the directory could not be used yet
	owes      bool       // it held ticks of former sessions when it could, which nobody reads
	positions []position // by receiver
	moved     []bool     // since it was stored, by receiver
	setAside  int64      // bytes in quarantine
	losses    losses
	unsynced  *segment // at the end: it may not be on the disk

	stats stats
}

// Open opens a directory, which is made where it is missing, and looks at what
// former sessions left there. Whatever that is, it is no error. A directory that
// cannot be used is tried again now and then while Run runs; an error is of the
// configuration.
func Open(c Config) (*Spool, error) {
	if c.fs == nil {
		c.fs = disk{}
	}
	if c.MaxBytes < MinBytes {
		return nil, fmt.Errorf("--spool.max-bytes=%d is too small: a spool takes at least %d bytes", c.MaxBytes, MinBytes)
	}
	if c.MaxPending <= 0 {
		c.MaxPending = maxPending
	}
	if c.Schema == nil || c.Clock == nil || c.Now == nil || c.Sealed == nil || c.Logger == nil {
		return nil, errors.New("spool: Schema, Clock, Now, Sealed and Logger are needed")
	}
	if len(c.Session) > maxSession || len(c.Boot) > maxBoot {
		return nil, fmt.Errorf("spool: session %q has more than %d bytes, or boot %q more than %d", c.Session, maxSession, c.Boot, maxBoot)
	}
	s := newSpool(c)
	if err := s.attach(); err != nil {
		c.Logger.Error("spool cannot be used, ticks are kept in memory alone until it can", "err", err)
		s = newSpool(c)
		s.detached, s.epoch = true, 1
		s.w.broken = err.Error()
		s.stats.failing.Store(true)
		s.positions, s.moved = make([]position, len(c.Receivers)), make([]bool, len(c.Receivers))
	} else if err := s.probe(); err != nil {
		s.outcome(time.Time{}, err)
	}
	return s, nil
}

func newSpool(c Config) *Spool {
	return &Spool{cfg: c, fs: c.fs, wake: make(chan struct{}, 1),
		target: max(minSegment, min(maxSegment, c.MaxBytes/16)),
		clocks: map[uint64][]offset{}, ids: map[uint64]string{}, boots: map[uint64]boot{}}
}

// Epoch is the number of this session.
func (s *Spool) Epoch() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// quarantineDir is where damaged files go.
func (s *Spool) quarantineDir() string { return filepath.Join(s.cfg.Dir, "quarantine") }

// Offer takes a frame that leaves the ring before every receiver has it. It copies
// the frame and returns; where the disk cannot keep up the oldest that wait are
// dropped and counted. It is called with the ring's lock held.
func (s *Spool) Offer(f Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.LastSeq < s.spooledTo || s.delivered(s.epoch, f.FirstSeq, f.LastSeq) {
		return
	}
	var buf []byte
	if n := len(s.free); n > 0 {
		buf, s.free = s.free[n-1], s.free[:n-1]
	}
	f.Bytes = append(buf[:0], f.Bytes...)
	s.pending = append(s.pending, f)
	s.waiting += len(f.Bytes)
	s.spill(true)
	for s.waiting > s.cfg.MaxPending && len(s.pending) > 1 {
		s.dropPending()
	}
	s.signal()
}

func (s *Spool) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// dropPending gives up the oldest frame that waits.
func (s *Spool) dropPending() {
	f := s.pending[0]
	n := s.missing(&segment{header: header{epoch: s.epoch}, ticks: f.Ticks, firstSeq: f.FirstSeq, lastSeq: f.LastSeq})
	s.stats.droppedQ.Add(int64(n))
	s.losses.add(n, s.wallOf(s.epoch, f.FirstTime), s.wallOf(s.epoch, f.LastTime))
	s.spooledTo = max(s.spooledTo, f.LastSeq+1)
	s.popPending()
}

// popPending forgets the oldest frame that waits and keeps its memory for the next.
func (s *Spool) popPending() {
	f := s.pending[0]
	s.waiting -= len(f.Bytes)
	s.recycle(f.Bytes)
	s.pending[0] = Frame{}
	s.pending = s.pending[1:]
	if len(s.pending) == 0 {
		s.pending = nil
	}
}

func (s *Spool) recycle(b []byte) {
	if len(s.free) < 2 {
		s.free = append(s.free, b)
	}
}

// delivered reports whether every receiver has these ticks. s.mu is held.
func (s *Spool) delivered(epoch, first, last uint64) bool {
	for i := range s.positions {
		if !s.positions[i].has(epoch, first, last) {
			return false
		}
	}
	return true
}

// Passed tells that a receiver has every tick of the sessions before epoch, and of
// that one those before seq. It is made durable within a second or two.
func (s *Spool) Passed(receiver int, epoch, seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.positions[receiver]
	if epoch < p.epoch || epoch == p.epoch && seq <= p.seq {
		return
	}
	p.epoch, p.seq, s.moved[receiver] = epoch, seq, true
	p.ahead = slices.DeleteFunc(p.ahead, func(r Range) bool { return r.Epoch < epoch || r.Epoch == epoch && r.To <= seq })
}

// Ahead tells which ticks of this session a receiver has beyond what Passed says:
// each from its first number to before its second. They replace those told before.
func (s *Spool) Ahead(receiver int, ranges [][2]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.positions[receiver]
	n := len(p.ahead)
	p.ahead = slices.DeleteFunc(p.ahead, func(r Range) bool { return r.Epoch == s.epoch })
	for _, r := range ranges {
		if len(p.ahead) < maxAhead && r[0] < r[1] {
			p.ahead = append(p.ahead, Range{s.epoch, r[0], r[1]})
		}
	}
	if n > 0 || len(p.ahead) > 0 {
		s.moved[receiver] = true
	}
}

// compressed is the compressed form of a frame that has none yet, in dst's memory.
func compressed(c *frame.Compressor, dst, b []byte) []byte {
	in, err := frame.Parse(b)
	if err != nil || in.Codec != frame.Raw {
		return b
	}
	out, err := c.Compress(dst[:0], b)
	if err != nil || len(out) >= len(b) {
		return b
	}
	return out
}
