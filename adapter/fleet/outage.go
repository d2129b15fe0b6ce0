package fleet

import (
	"slices"
	"time"
)

// Span is a stretch of time.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// overlap is how much of s lies in o.
func (s Span) overlap(o Span) time.Duration {
	from, to := s.From, s.To
	if o.From.After(from) {
		from = o.From
	}
	if o.To.Before(to) {
		to = o.To
	}
	return max(0, to.Sub(from))
}

const (
	// maxOutages and maxAbsences bound what is kept of a device's outages and of the
	// adapter's own.
	maxOutages  = 200
	maxAbsences = 200
	// outageMemory is the longest time that availability is told for, and a little.
	outageMemory = 92 * 24 * time.Hour
)

// Availability is the share of time in which a device was up, over the last day, week,
// month of 30 days and quarter of 90, or as much of it as is known. What the adapter
// missed because it was down itself counts neither way.
type Availability struct {
	Day     float64 `json:"day"`
	Week    float64 `json:"week"`
	Month   float64 `json:"month"`
	Quarter float64 `json:"quarter"`
}

// history is what is known of when a device was silent.
type history struct {
	// Outages are those that ended, oldest first: each from the last push before it to
	// the first after.
	Outages []Span `json:"outages,omitempty"`
	// OutagesTotal counts them all, also what is forgotten.
	OutagesTotal uint64 `json:"outagesTotal"`
	// Since is when the history begins: the first push, or the end of the last outage
	// that was forgotten.
	Since time.Time `json:"historySince,omitzero"`
}

// ended notes an outage, and forgets what is too old or too much.
func (h *history) ended(s Span) {
	h.Outages = append(h.Outages, s)
	h.OutagesTotal++
	n := 0
	for n < len(h.Outages) && (len(h.Outages)-n > maxOutages || s.To.Sub(h.Outages[n].To) > outageMemory) {
		n++
	}
	if n > 0 {
		h.Since = h.Outages[n-1].To
		h.Outages = slices.Delete(h.Outages, 0, n)
	}
}

// down is the time in which a device was silent for longer than after, within in. last
// is its last push.
func (h *history) down(in Span, last time.Time, after time.Duration, absences []Span) time.Duration {
	sum := time.Duration(0)
	add := func(s Span) {
		sum += s.overlap(in)
		for _, a := range absences {
			if cut := (Span{later(a.From, in.From), earlier(a.To, in.To)}); cut.To.After(cut.From) {
				sum -= s.overlap(cut)
			}
		}
	}
	for _, o := range h.Outages {
		add(o)
	}
	if now := (Span{last, in.To}); seen(now, absences) > after {
		add(now)
	}
	return sum
}

// seen is how much of s the adapter was there for.
func seen(s Span, absences []Span) time.Duration {
	d := max(0, s.To.Sub(s.From))
	for _, a := range absences {
		d -= s.overlap(a)
	}
	return d
}

// availability is that of d at a time.
func (d *Device) availability(now time.Time, after time.Duration, absences []Span) Availability {
	share := func(window time.Duration) float64 {
		in := Span{later(now.Add(-window), d.Since), now}
		whole := seen(in, absences)
		if whole <= 0 {
			return 1 // first seen just now
		}
		return 1 - float64(d.down(in, d.LastPush, after, absences))/float64(whole)
	}
	const day = 24 * time.Hour
	return Availability{Day: share(day), Week: share(7 * day), Month: share(30 * day), Quarter: share(90 * day)}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
