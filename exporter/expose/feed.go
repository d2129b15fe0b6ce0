package expose

import (
	"strconv"

	"github.com/ticktier/ticktier/exporter/frame"
)

// Reader reads ticks in order; *ring.Reader is one. Its methods are as described
// there.
type Reader interface {
	Seek(seq uint64)
	Next() bool
	Tick() *frame.Tick
	Err() error
	// Lost is how many ticks were evicted immediately before the one that Next
	// found, and bounds of their monotonic times.
	Lost() (ticks uint64, from, to int64)
}

// feed turns ticks into objects for one client.
type feed struct {
	rd Reader
	objects
	out    writer
	events *eventFeed // nil for none

	next   uint64 // the number that should come next
	expect bool   // next means something: a hole before the tick is a gap
	mono   int64  // time of the last tick
}

// writer gathers objects, as lines or as events.
type writer struct {
	buf     []byte
	events  bool
	session string
}

// open begins an object; next is the number to go on with after it, which only
// ticks have.
func (w *writer) open(event string, next uint64) {
	if !w.events {
		return
	}
	w.buf = append(w.buf, "event: "...)
	w.buf = append(w.buf, event...)
	if next > 0 {
		w.buf = append(w.buf, "\nid: "...)
		w.buf = append(w.buf, w.session...)
		w.buf = append(w.buf, '/')
		w.buf = strconv.AppendUint(w.buf, next, 10)
	}
	w.buf = append(w.buf, "\ndata: "...)
}

func (w *writer) close() {
	w.buf = append(w.buf, '\n')
	if w.events {
		w.buf = append(w.buf, '\n')
	}
}

// begin writes what comes before the first tick, and moves to where the client
// wants to begin.
func (f *feed) begin(q *query, session string) {
	f.out.open("hello", 0)
	f.out.buf = appendHello(f.out.buf, session)
	f.out.close()
	if q.session != "" && q.session != session {
		f.out.open("gap", 0)
		f.out.buf = appendSessionGap(f.out.buf, q.session)
		f.out.close()
		f.rd.Seek(0)
		return
	}
	f.rd.Seek(q.since)
	f.next, f.expect = q.since, q.resume
}

// step writes the next tick with what has to come before it. It returns false when
// there is none yet.
func (f *feed) step() bool {
	for !f.rd.Next() {
		if f.rd.Err() == nil {
			return false
		}
	}
	t := f.rd.Tick()
	if f.expect && t.Seq > f.next {
		g := gap{reason: "missed", from: f.next, to: t.Seq - 1, ticks: t.Seq - f.next, fromMono: f.mono, toMono: t.Time}
		if lost, from, to := f.rd.Lost(); lost > 0 {
			g.reason, g.ticks, g.fromMono, g.toMono = "evicted", lost, from, to
		}
		f.gap(g)
	}
	f.next, f.expect, f.mono = t.Seq+1, true, t.Time
	if from, any := f.grow(t); any {
		f.out.open("series", 0)
		f.out.buf = f.appendSeries(f.out.buf, from)
		f.out.close()
	}
	f.out.open("tick", f.next)
	f.out.buf = f.appendTick(f.out.buf, t)
	f.out.close()
	return true
}

func (f *feed) gap(g gap) {
	f.out.open("gap", 0)
	f.out.buf = f.appendGap(f.out.buf, g)
	f.out.close()
}

// skip leaves out everything before tick number seq.
func (f *feed) skip(seq uint64, mono int64) {
	f.gap(gap{reason: "slow", from: f.next, to: seq - 1, ticks: seq - f.next, fromMono: f.mono, toMono: mono})
	f.rd.Seek(seq)
	f.next = seq
}
