package expose

import (
	"net/http"
	"strconv"
	"time"

	"github.com/ticktier/ticktier/exporter/journal"
)

// Events gives the newest events by number; *journal.Journal is one.
type Events interface {
	// Next copies the oldest event held whose ID is id or more, and returns false when
	// there is none.
	Next(id uint64, e *journal.Entry) bool
	// Last is the ID of the newest event, 0 while there is none.
	Last() uint64
}

// events answers /api/v1/events.
type events struct{ c Config }

func (s *events) list(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r, "since", "session", "max")
	if err != nil {
		plain(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	defer http.NewResponseController(w).SetWriteDeadline(time.Time{})
	f := eventFeed{events: s.c.Events, wall: s.c.Wall}
	out := writer{session: s.c.Session}
	out.buf = append(appendHello(out.buf, s.c.Session), '\n')
	if q.session != "" && q.session != s.c.Session {
		out.buf = append(appendSessionGap(out.buf, q.session), '\n')
	} else {
		f.next, f.expect = q.since, q.resume
	}
	more := true
	for n := 0; n < q.max && more; n++ {
		more = f.step(&out)
		if len(out.buf) >= flushSize && !flush(w, w, &out) {
			return
		}
	}
	out.buf = append(appendEnd(out.buf, f.next, more && f.next <= s.c.Events.Last()), '\n')
	flush(w, w, &out)
}

// eventFeed writes events for one client.
type eventFeed struct {
	events Events
	wall   func(mono int64) int64
	entry  journal.Entry
	next   uint64 // the event that should come next
	expect bool   // next means something: a hole before the event is a gap
}

// step writes the next event with what has to come before it. It returns false when
// there is none yet.
func (f *eventFeed) step(out *writer) bool {
	e := &f.entry
	if !f.events.Next(f.next, e) {
		f.next = max(f.next, 1)
		return false
	}
	if f.next = max(f.next, 1); f.expect && e.ID > f.next {
		out.open("gap", 0)
		out.buf = appendEventGap(out.buf, "evicted", "", f.next, e.ID-1)
		out.close()
	}
	f.next, f.expect = e.ID+1, true
	if e.Lost > 0 {
		out.open("gap", 0)
		out.buf = appendEventGap(out.buf, "lost", e.Source, e.Seq-e.Lost, e.Seq-1)
		out.close()
	}
	out.open("event", 0)
	out.buf = f.appendEvent(out.buf, e)
	out.close()
	return true
}

// appendEventGap tells of events that are not there: by their IDs where they were
// held once, by the numbers of their source where they never were.
func appendEventGap(dst []byte, reason, source string, from, to uint64) []byte {
	dst = append(dst, `{"gap":{"reason":"`...)
	dst = append(dst, reason...)
	if source != "" {
		dst = append(dst, `","source":"`...)
		dst = append(dst, source...)
	}
	dst = append(dst, `","from":`...)
	dst = strconv.AppendUint(dst, from, 10)
	dst = append(dst, `,"to":`...)
	dst = strconv.AppendUint(dst, to, 10)
	dst = append(dst, `,"events":`...)
	dst = strconv.AppendUint(dst, to-from+1, 10)
	return append(dst, `}}`...)
}

func (f *eventFeed) appendEvent(dst []byte, e *journal.Entry) []byte {
	dst = append(dst, `{"event":{"id":`...)
	dst = strconv.AppendUint(dst, e.ID, 10)
	dst = append(dst, `,"t":`...)
	dst = strconv.AppendInt(dst, f.wall(e.Seen), 10)
	dst = append(dst, `,"source":`...)
	dst = appendString(dst, e.Source)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = append(dst, `,"uptime":`...)
	dst = strconv.AppendFloat(dst, float64(e.Mono)/1e9, 'f', 6, 64)
	dst = append(dst, `,"level":"`...)
	dst = append(dst, levelName(e.Level)...)
	dst = append(dst, `","facility":"`...)
	dst = append(dst, facilityName(e.Facility)...)
	dst = append(dst, `","devices":[`...)
	for i, d := range e.Devices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, d)
	}
	dst = append(dst, `],"text":`...)
	dst = appendString(dst, string(e.Text))
	if e.Cut {
		dst = append(dst, `,"cut":true`...)
	}
	return append(dst, `}}`...)
}

// levelName and facilityName are syslog's (RFC 5424, 6.2.1), by the names of syslog(3).
func levelName(level int) string {
	names := [...]string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"}
	return names[level&7]
}

func facilityName(facility int) string {
	names := [...]string{"kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"}
	if facility >= 0 && facility < len(names) {
		return names[facility]
	}
	return strconv.Itoa(facility)
}
