package send

import (
	"math/bits"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

// bisection looks for the series on whose account a receiver refuses whole
// requests: the others are good, and are delivered. The requests get smaller by
// halves while they are refused and larger again while they are accepted, so one
// series among n is found with about 2 log₂ n requests.
type bisection struct {
	series   int       // most to a request; 0 while nothing is looked for
	end      int       // slot behind the request that was refused first
	vain     int       // refusals since the search began, while nothing was accepted
	limit    int       // how many of these there may be
	requests int       // refused during the search of this batch
	good     bool      // something of this batch was accepted
	bad      []badSlot // refused alone
	off      time.Time // no search before that
}

// badSlot is a series that was refused alone, and what for.
type badSlot struct {
	slot   int
	reason string
}

const (
	// maxBisect bounds the refused requests of one batch: forty bad series among
	// thousands would take more.
	maxBisect = 256
	// bisectRest is how long nothing is looked for after everything was refused: it
	// is not for the series then, but for their times or for who sends them.
	bisectRest = time.Minute
)

// refused is told of a refused request, and reports whether to try the same slots
// again in smaller requests.
func (b *bisection) refused(rep reply, r *request, now time.Time) bool {
	// What was written in part leaves nothing to look for: all that is good in it
	// was taken.
	if !divisible(rep.code) || rep.samples > 0 || now.Before(b.off) {
		return false
	}
	if b.series == 0 {
		if r.series == 1 {
			return false
		}
		b.end, b.vain, b.limit = r.to, 0, bits.Len(uint(r.series))+3
	}
	b.requests++
	if b.vain++; !b.good && b.vain > b.limit || b.requests > maxBisect {
		b.series, b.off, b.bad = 0, now.Add(bisectRest), b.bad[:0]
		return false
	}
	if r.series == 1 {
		b.bad = append(b.bad, badSlot{slot: r.to - 1, reason: reason(rep)})
		b.ended(r)
		return false
	}
	b.series = max(1, r.series/2)
	return true
}

// accepted is told of an accepted request.
func (b *bisection) accepted(r *request) {
	b.good = true
	b.series *= 2
	b.ended(r)
}

func (b *bisection) ended(r *request) {
	if r.to >= b.end {
		b.series = 0
	}
}

// finish ends the search of a batch and returns what was found, unless that is so
// much of n series that the fault must be another.
func (b *bisection) finish(n int) []badSlot {
	bad := b.bad
	if !b.good || len(bad) > max(8, n/10) {
		bad = nil
	}
	b.series, b.requests, b.good, b.bad = 0, 0, false, b.bad[:0]
	return bad
}

// quarantine is the series that are left out for a while, by slot.
type quarantine struct {
	until map[int]time.Time
	wait  map[int]time.Duration // of each slot that ever was in it
}

const (
	firstQuarantine = 10 * time.Minute
	maxQuarantine   = 6 * time.Hour
)

// add leaves series out, longer each time.
func (q *quarantine) add(bad []badSlot, s *Sender, now time.Time) {
	for _, b := range bad {
		if q.until == nil {
			q.until, q.wait = map[int]time.Time{}, map[int]time.Duration{}
		}
		wait := min(max(2*q.wait[b.slot], firstQuarantine), maxQuarantine)
		q.wait[b.slot], q.until[b.slot] = wait, now.Add(wait)
		for len(s.lane.skip) <= b.slot>>6 {
			s.lane.skip = append(s.lane.skip, 0)
		}
		s.lane.skip[b.slot>>6] |= 1 << (b.slot & 63)
		s.log.Warn("receiver refuses a series, it is left out for a while and counted",
			"series", describe(&s.table.series[b.slot]), "reason", b.reason, "for", wait)
	}
	s.stats.quarantined.Store(int64(len(q.until)))
}

// release lets series back in whose time is over.
func (q *quarantine) release(s *Sender, now time.Time) {
	for slot, until := range q.until {
		if !now.Before(until) {
			delete(q.until, slot)
			s.lane.skip[slot>>6] &^= 1 << (slot & 63)
		}
	}
	s.stats.quarantined.Store(int64(len(q.until)))
}

// describe writes a series as PromQL does.
func describe(s *collectors.Series) string {
	var sb strings.Builder
	sb.WriteString(s.Name)
	for i, l := range s.Labels {
		sb.WriteByte("{,"[min(i, 1)])
		sb.WriteString(l.Name + "=" + strconv.Quote(l.Value))
	}
	if len(s.Labels) > 0 {
		sb.WriteByte('}')
	}
	return sb.String()
}

// divisible reports whether a status may be on account of a few series of a request.
func divisible(code int) bool {
	return code == http.StatusBadRequest || code == http.StatusConflict || code == http.StatusUnprocessableEntity
}
