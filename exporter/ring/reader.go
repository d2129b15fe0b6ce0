package ring

import (
	"fmt"
	"sort"

	"github.com/ticktier/ticktier/exporter/frame"
)

// Reader reads ticks in order, at its own pace, from the sealed frames and on into
// the open one. It copies a frame, or the part of it that is new, under the ring's
// lock and decodes outside it. Each reader is used by one goroutine.
type Reader struct {
	r    *Ring
	buf  []byte // the frame being read, as far as it was copied
	z    []byte // its compressed form
	c    frame.Compressor
	it   frame.Iterator
	tick frame.Tick // what Tick returns before the first Next

	in    bool   // a frame is being read
	id    uint64 // its number
	after uint64 // ticks since the start up to the one read last
	known bool   // after is exact

	next   uint64 // ticks with lower numbers are passed over
	lastT  int64  // time of the tick read last
	lost   Loss
	given  bool // the last Next returned a tick
	broken error
}

// Reader makes a reader that begins at the first tick of the session.
func (r *Ring) Reader() *Reader { return &Reader{r: r, known: true} }

// Seek makes the next Next return the first tick held with a number of at least
// seq. Ticks from seq on that are no longer held count as lost.
func (rd *Reader) Seek(seq uint64) {
	rd.r.mu.Lock()
	defer rd.r.mu.Unlock()
	rd.in, rd.next, rd.lastT = false, seq, 0
	rd.after, rd.known = 0, seq == 0
	if rd.r.total > 0 && seq > rd.r.lastSeq {
		rd.after, rd.known = rd.r.total, true
	}
	rd.lost, rd.given, rd.broken = Loss{}, false, nil
}

// SeekAfter is Seek for a reader that knows how many ticks there were before number
// seq since the start, so that what it misses from there on is counted exactly.
func (rd *Reader) SeekAfter(seq, after uint64) {
	rd.Seek(seq)
	rd.after, rd.known = after, true
}

// After is the number of ticks since the start up to the one that Next found,
// inclusive.
func (rd *Reader) After() uint64 { return rd.after }

// Tick is the tick that Next found, valid until the next Next or Seek.
func (rd *Reader) Tick() *frame.Tick {
	if !rd.in {
		return &rd.tick
	}
	return rd.it.Tick()
}

// Lost tells how many ticks were evicted before the reader came to them,
// immediately before the tick that Next found, and bounds of their times in
// nanoseconds since the exporter's start. After a Seek into what was gone already
// the count is an upper bound where slots were missed.
func (rd *Reader) Lost() (ticks uint64, from, to int64) {
	return rd.lost.Ticks, rd.lost.FirstTime, rd.lost.LastTime
}

// Err is why Next returned false: nil when there is no newer tick, else a frame
// that could not be decoded. Its remaining ticks count as lost and the next Next
// goes on behind it; that it happens at all is a bug.
func (rd *Reader) Err() error { return rd.broken }

// Next moves to the next tick. It returns false when there is none yet; a later
// call goes on from there.
func (rd *Reader) Next() bool {
	if rd.given {
		rd.lost, rd.given = Loss{}, false
	}
	rd.broken = nil
	for {
		if rd.in {
			for rd.it.Next() {
				rd.after++
				t := rd.it.Tick()
				if t.Seq < rd.next {
					continue
				}
				rd.next, rd.lastT, rd.given = t.Seq+1, t.Time, true
				return true
			}
			if err := rd.it.Err(); err != nil && len(rd.buf) > 0 {
				return rd.skip(err)
			}
		}
		if !rd.load() {
			return false
		}
	}
}

// skip gives up the rest of a frame.
func (rd *Reader) skip(err error) bool {
	rd.broken = fmt.Errorf("ring frame %d: %w", rd.id, err)
	rd.buf = rd.buf[:0]
	return false
}

// load brings the rest of the frame being read, or the next frame. It returns
// false when there is nothing new, or on a frame that cannot be read.
func (rd *Reader) load() bool {
	r := rd.r
	r.mu.Lock()
	f, stored, ok := rd.find()
	if !ok {
		r.mu.Unlock()
		return false
	}
	fresh := !rd.in || f.id != rd.id
	switch {
	case f.packed:
		rd.z = append(rd.z[:0], stored...)
	case fresh:
		rd.buf = append(rd.buf[:0], stored...)
	default:
		// The header stays that of an open frame, and so the rows end here.
		rd.buf = append(rd.buf, stored[len(rd.buf):f.rows]...)
	}
	r.mu.Unlock()

	var err error
	if f.packed {
		rd.buf, err = rd.c.Expand(rd.buf[:0], rd.z)
	}
	if fresh {
		rd.account(&f)
		rd.in, rd.id = true, f.id
	}
	switch {
	case err != nil:
	case fresh:
		err = rd.it.Reset(rd.buf)
	default:
		err = rd.it.Extend(rd.buf)
	}
	if err != nil {
		return rd.skip(err)
	}
	return true
}

// find is the frame to read next, and its bytes, which are the ring's. The ring's
// lock is held.
func (rd *Reader) find() (held, []byte, bool) {
	r := rd.r
	fs := r.arena.all()
	want := rd.id
	if rd.in {
		if f, b, ok := r.frame(want); ok && len(rd.buf) > 0 && f.rows > rd.it.Pos() {
			return f, b, true
		}
		want++
	} else {
		i := sort.Search(len(fs), func(i int) bool { return fs[i].lastSeq >= rd.next })
		want = r.next
		if i < len(fs) {
			want = fs[i].id
		} else if r.cur.lastSeq < rd.next {
			return held{}, nil, false
		}
	}
	if len(fs) > 0 {
		want = max(want, fs[0].id)
	} else {
		want = max(want, r.next)
	}
	return r.frame(want)
}

// frame is frame number id, sealed or open, and its bytes.
func (r *Ring) frame(id uint64) (held, []byte, bool) {
	fs := r.arena.all()
	switch {
	case id == r.next && len(r.open) > 0:
		return held{id: id, rows: len(r.open), span: r.cur}, r.open, true
	case len(fs) > 0 && id >= fs[0].id && id < r.next:
		f := fs[id-fs[0].id]
		return f, r.arena.bytes(&f), true
	}
	return held{}, nil, false
}

// account notes what was evicted between the tick read last and a frame's first.
func (rd *Reader) account(f *held) {
	lost := uint64(0)
	switch {
	case rd.known:
		lost = f.before - min(f.before, rd.after)
	case f.firstSeq > rd.next:
		lost = min(f.before, f.firstSeq-rd.next)
	}
	rd.after, rd.known = f.before, true
	if lost == 0 {
		return
	}
	if rd.lost.Ticks == 0 {
		rd.lost.FirstSeq, rd.lost.FirstTime = rd.next, rd.lastT
	}
	rd.lost.Ticks += lost
	rd.lost.LastSeq, rd.lost.LastTime = f.firstSeq-1, f.firstTime
}
