package expose

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ticktier/ticktier/exporter/frame"
)

const (
	// maxClients is how many clients may read ticks at once: each holds a copy of
	// a frame and the means to expand it, a few hundred KiB.
	maxClients = 16
	// flushSize is how much is gathered before it is written.
	flushSize = 32 << 10
	// poll is how often a stream looks for new ticks.
	poll = 50 * time.Millisecond
	// beat is how often a stream without ticks says that it is there.
	beat = 15 * time.Second
	// maxLag is how far a stream that has once caught up may fall behind.
	maxLag = 10 * time.Second
	// stalled is how long a client may take for one write before it is given up.
	stalled = time.Minute
)

// ticks answers /api/v1/samples and /api/v1/stream.
type ticks struct {
	c       Config
	clients chan struct{} // holds one element for each
	readers sync.Pool     // of Reader
}

func newTicks(c Config) *ticks {
	return &ticks{c: c, clients: make(chan struct{}, maxClients)}
}

// open checks a request and makes its feed; done gives it back. It answers itself
// and returns nil where the request cannot be served.
func (s *ticks) open(w http.ResponseWriter, r *http.Request, events bool) (f *feed, q *query, done func()) {
	known := []string{"since", "session", matchParam}
	if events {
		known = append(known, "events")
	} else {
		known = append(known, "max")
	}
	q, err := parseQuery(r, known...)
	if err == nil && events {
		err = q.lastEvent(r.Header.Get("Last-Event-ID"))
	}
	if err != nil {
		plain(w, http.StatusBadRequest, err.Error()+"\n")
		return nil, nil, nil
	}
	select {
	case s.clients <- struct{}{}:
	default:
		w.Header().Set("Retry-After", "5")
		plain(w, http.StatusServiceUnavailable, "too many clients read ticks\n")
		return nil, nil, nil
	}
	rd, _ := s.readers.Get().(Reader)
	if rd == nil {
		rd = s.c.Reader()
	}
	f = &feed{
		rd:      rd,
		objects: objects{schema: s.c.Schema, wall: s.c.Wall, match: q.match},
		out:     writer{events: events, session: s.c.Session},
	}
	return f, q, func() {
		s.readers.Put(rd)
		<-s.clients
	}
}

func (s *ticks) samples(w http.ResponseWriter, r *http.Request) {
	f, q, done := s.open(w, r, false)
	if f == nil {
		return
	}
	defer done()
	h := w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept-Encoding")
	enc := encoding(r.Header.Values("Accept-Encoding"))
	if enc != "" {
		h.Set("Content-Encoding", enc)
	}
	out, end := compressed(w, enc)
	defer end()
	// The connection may serve another request when this one is done.
	defer http.NewResponseController(w).SetWriteDeadline(time.Time{})
	f.begin(q, s.c.Session)
	n, more := 0, true
	for ; n < q.max && more; n++ {
		more = f.step()
		if len(f.out.buf) >= flushSize && !flush(w, out, &f.out) {
			return
		}
	}
	f.out.open("end", 0)
	f.out.buf = appendEnd(f.out.buf, f.next, more && f.rd.Next())
	f.out.close()
	flush(w, out, &f.out)
}

// flush writes what was gathered. It returns false when the client is gone, or
// took too long.
func flush(w http.ResponseWriter, out io.Writer, b *writer) bool {
	// Not every ResponseWriter has deadlines; those of net/http do.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stalled))
	_, err := out.Write(b.buf)
	b.buf = b.buf[:0]
	return err == nil
}

func (s *ticks) stream(w http.ResponseWriter, r *http.Request) {
	f, q, done := s.open(w, r, true)
	if f == nil {
		return
	}
	defer done()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would gather events
	var newest frame.Tick
	if !q.resume && s.c.Latest.Latest(&newest) {
		q.since = newest.Seq
	}
	if r.Method == http.MethodHead {
		return
	}
	f.begin(q, s.c.Session)
	if q.events && s.c.Events != nil {
		f.events = &eventFeed{events: s.c.Events, wall: s.c.Wall, next: s.c.Events.Last() + 1, expect: true}
	}
	s.follow(r.Context(), w, f, &newest)
}

// follow writes ticks as they come until the client is gone.
func (s *ticks) follow(ctx context.Context, w http.ResponseWriter, f *feed, newest *frame.Tick) {
	rc := http.NewResponseController(w)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	live, wrote := false, time.Now()
	for {
		caughtUp := false
		for len(f.out.buf) < flushSize && !caughtUp {
			caughtUp = !f.step()
		}
		live = live || caughtUp
		for f.events != nil && len(f.out.buf) < flushSize && f.events.step(&f.out) {
		}
		if len(f.out.buf) == 0 && time.Since(wrote) >= beat {
			f.out.buf = append(f.out.buf, ": still here\n\n"...)
		}
		if len(f.out.buf) > 0 {
			if !flush(w, w, &f.out) || rc.Flush() != nil {
				return
			}
			wrote = time.Now()
		}
		if !caughtUp {
			// Whoever asked for the past may take its time to come to the present.
			if live && s.c.Latest.Latest(newest) && newest.Time-f.mono > int64(maxLag) && newest.Seq > f.next {
				f.skip(newest.Seq, newest.Time)
			}
			if ctx.Err() != nil {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
