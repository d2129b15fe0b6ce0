package ring

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ticktier/ticktier/exporter/frame"
)

const (
	// MinBytes is the smallest budget: sixteen frames of 4 KiB.
	MinBytes = 64 << 10

	// maxTarget is the size at which a frame is sealed. On a machine with 1,556
	// slots the key row is 5 % of a frame of 32 KiB and 2 % of one of 64 KiB,
	// and larger frames compress no better, but are lost and copied in one piece.
	maxTarget = 64 << 10

	// A frame is also sealed after maxSpan, so that what one eviction loses is
	// bounded on a machine where little moves; but not before minTicks, which
	// keeps key rows rare at 1 Hz.
	maxSpan  = 60 * time.Second
	minTicks = 256

	// spillSpan is how long a frame is left open while frames are written to disk
	// as soon as they are sealed: what is in an open frame is lost with the process.
	// A key row every second costs as much again as 20 ticks of a quiet machine.
	spillSpan = time.Second
)

// Ring is a bounded store of ticks. Append is called by one goroutine at a time;
// everything else is safe for concurrent use. No call holds the lock for longer
// than it takes to encode one tick, or to copy one frame.
type Ring struct {
	// Set before the first Append.

	// Duration is how long a tick is held at least, while there is room for it, and
	// no longer than a frame lasts beyond that; 0 is for as long as there is room.
	Duration time.Duration
	// Evicted, where set, is given each frame that has to go, before its bytes
	// are used again, and says whether it keeps it: then nothing of it is a loss.
	// It is called from Append with the lock held: it may copy and return, no more.
	Evicted func(Eviction) (kept bool)
	// Flag is what the budget is called where people are told to raise it; empty is
	// --ring.max-bytes.
	Flag string
	// Logger takes a line when the budget cannot hold a frame, and when it can
	// again. Nil is silent.
	Logger *slog.Logger

	capacity int
	target   int
	sealed   chan struct{} // wakes Run
	spilling atomic.Bool

	mu    sync.Mutex // guards all below
	arena arena
	enc   frame.Encoder
	open  []byte // the open frame; empty when there is none
	seal  int    // the size at which it is sealed
	cur   span   // of the open frame
	next  uint64 // the open frame's number, or the next one's

	total       uint64 // ticks taken since the start
	lastSeq     uint64
	evicted     evicted
	delivering  bool
	delivered   uint64
	ahead       [][2]uint64 // delivered, too
	refused     uint64
	tooSmall    bool
	smallSaid   int64  // when the log last said so, monotonic ns
	smallLast   int64  // when it was so last
	smallLost   uint64 // ticks of which it did not say so yet
	tooSmallNow uint64 // for the log, once the lock is released: ticks
	recovered   bool
	packed      uint64
}

// New makes a ring that takes maxBytes for frames, reserved now and used as they come.
func New(maxBytes int) (*Ring, error) {
	if maxBytes < MinBytes {
		return nil, fmt.Errorf("--ring.max-bytes=%d is too small: a ring takes at least %d bytes", maxBytes, MinBytes)
	}
	target := min(maxTarget, maxBytes/16)
	reserve := target + target/4 // the open frame: its last row may pass the target
	r := &Ring{
		capacity: maxBytes,
		target:   target,
		sealed:   make(chan struct{}, 1),
		arena:    arena{frames: make([]held, 0, 64)},
		open:     make([]byte, 0, reserve),
	}
	var err error
	r.arena.buf, err = pages(r, maxBytes-reserve)
	return r, err
}

// Append adds a tick, as tick.Sink describes. The slices are only read. A tick
// whose number is not higher than the last one's, or with more than
// frame.MaxSlots values, is refused and counted.
func (r *Ring) Append(seq uint64, mono int64, read uint64, values []int64, present []uint64) {
	t := frame.Tick{Seq: seq, Time: mono, Read: read, Values: values, Present: present}
	r.mu.Lock()
	r.append(&t)
	small, recovered := r.tooSmallNow, r.recovered
	r.tooSmallNow, r.recovered = 0, false
	r.mu.Unlock()
	if r.Logger == nil {
		return
	}
	if small > 0 {
		r.Logger.Warn("ring cannot hold one frame: only the newest ticks are kept, raise "+cmp.Or(r.Flag, "--ring.max-bytes"),
			"max_bytes", r.capacity, "slots", len(values), "ticks", small)
	}
	if recovered {
		r.Logger.Info("ring can hold frames again", "max_bytes", r.capacity, "slots", len(values))
	}
}

func (r *Ring) append(t *frame.Tick) {
	if r.total > 0 && t.Seq <= r.lastSeq || len(t.Values) > frame.MaxSlots {
		r.refused++
		return
	}
	if len(r.open) > 0 && r.full(t) {
		r.close()
	}
	r.expire(t.Time)
	if len(r.open) == 0 {
		r.open = r.enc.Begin(r.open, t)
		r.cur = span{firstSeq: t.Seq, firstTime: t.Time, before: r.total}
		// A key row that is large for the budget is followed by as many bytes of
		// rows at least, while that fits.
		r.seal = min(max(r.target, 2*len(r.open)), len(r.arena.buf)-frame.TrailerLen)
		if half := r.capacity/2 - r.target/4; len(r.open) < half {
			r.seal = min(r.seal, half) // the frame before is to stay beside it
		}
	} else {
		r.open = r.enc.Append(r.open, t)
	}
	r.cur.lastSeq, r.cur.lastTime = t.Seq, t.Time
	r.cur.ticks++
	r.total++
	r.lastSeq = t.Seq
	// Not for one small row between two large ones.
	if r.tooSmall && t.Time-r.smallLast >= int64(smallEvery) && len(r.open)+frame.TrailerLen <= len(r.arena.buf) {
		r.tooSmall, r.recovered = false, true
	}
	// What one row takes is not known before it is encoded.
	for r.arena.used+len(r.open) > r.capacity && len(r.arena.all()) > 0 {
		r.evictOldest()
	}
}

// full reports whether the open frame is to be sealed before the tick.
func (r *Ring) full(t *frame.Tick) bool {
	return len(r.open) >= r.seal ||
		len(t.Values) != len(r.enc.Last().Values) ||
		r.cur.ticks >= minTicks && t.Time-r.cur.firstTime >= int64(maxSpan) ||
		t.Time-r.cur.firstTime >= int64(spillSpan) && r.spilling.Load()
}

// close seals the open frame into the arena, evicting what is in its way.
func (r *Ring) close() {
	f := held{id: r.next, rows: len(r.open), span: r.cur}
	r.next++
	b := r.enc.Seal(r.open)
	r.open = b[:0]
	if len(b) > len(r.arena.buf) {
		r.small(&f)
		for len(r.arena.all()) > 0 {
			r.evictOldest()
		}
		r.evict(&f, b)
		return
	}
	off, ok := r.arena.place(len(b))
	for !ok {
		r.evictOldest()
		off, ok = r.arena.place(len(b))
	}
	r.arena.push(off, b, f)
	select {
	case r.sealed <- struct{}{}:
	default:
	}
}

// smallEvery is the time between two lines about a budget that is too small, and for
// how long it must do until it is said to.
const smallEvery = time.Minute

// small notes a frame that the budget cannot hold.
func (r *Ring) small(f *held) {
	r.smallLost += f.ticks
	r.smallLast = f.lastTime
	if !r.tooSmall || f.lastTime-r.smallSaid >= int64(smallEvery) {
		r.tooSmallNow, r.smallSaid, r.smallLost = r.smallLost, f.lastTime, 0
	}
	r.tooSmall = true
}

func (r *Ring) evictOldest() {
	f := r.arena.pop()
	r.evict(&f, r.arena.bytes(&f))
}

// Latest copies the newest tick into t, whose slices are reused where they are
// large enough. It returns false while there is none.
func (r *Ring) Latest(t *frame.Tick) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total == 0 {
		return false
	}
	last := r.enc.Last()
	t.Seq, t.Time, t.Read = last.Seq, last.Time, last.Read
	t.Values = append(t.Values[:0], last.Values...)
	t.Present = append(t.Present[:0], last.Present...)
	return true
}
