package expose

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/burst"
	"github.com/ticktier/ticktier/exporter/frame"
)

// metrics answers scrapes. A scrape formats numbers only: all else is in the table,
// which is made anew when the schema grew.
type metrics struct {
	latest Latest
	schema *collectors.Schema
	bursts Bursts  // or nil
	starts *starts // or nil

	table   atomic.Pointer[table]
	scratch sync.Pool // of *scratch
}

// scratch is what one scrape needs and the next one reuses.
type scratch struct {
	tick   frame.Tick
	bursts burst.Snapshot
	body   []byte
}

func (m *metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, _ := m.scratch.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	defer m.scratch.Put(s)

	contentType, f := negotiate(r.Header.Values("Accept"))
	m.render(s, f, scraper(r), r.URL.Query().Get("created") == "1")
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Add("Vary", "Accept, Accept-Encoding")
	enc := encoding(r.Header.Values("Accept-Encoding"))
	if enc == "" {
		h.Set("Content-Length", strconv.Itoa(len(s.body)))
		w.Write(s.body)
		return
	}
	h.Set("Content-Encoding", enc)
	if r.Method == http.MethodHead {
		return
	}
	z, end := compressed(w, enc)
	z.Write(s.body)
	end()
}

// render makes the exposition of the newest tick. created says that OpenMetrics is to
// have when counters began, as series of their own; protobuf always has it.
func (m *metrics) render(s *scratch, f format, scraper string, created bool) {
	tick := &s.tick
	if !m.latest.Latest(tick) {
		tick.Values, tick.Present = tick.Values[:0], tick.Present[:0]
	}
	// The schema is read after the tick, so it knows at least the tick's slots.
	t := m.table.Load()
	if t == nil || len(t.series) != m.schema.Len() {
		t = newTable(m.schema.Series())
		m.table.Store(t)
	}
	if m.bursts != nil {
		m.bursts.Snapshot(&s.bursts, scraper)
	}
	switch f {
	case asProto:
		s.body = t.appendProto(s.body[:0], tick, m.starts)
		s.body = appendProtoBursts(s.body, &s.bursts, m.starts)
	default:
		var known *starts
		if created {
			known = m.starts
		}
		s.body = t.append(s.body[:0], tick, f == asOpen, known)
		s.body = appendBursts(s.body, &s.bursts, f == asOpen, known)
		if f == asOpen {
			s.body = append(s.body, "# EOF\n"...)
		}
	}
}
