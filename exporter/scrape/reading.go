package scrape

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ticktier/ticktier/collectors"
)

// entry is what is known of the bytes that a target names a series with.
type entry struct {
	s       *series
	typ     collectors.Type // that the family was said to be
	created bool            // it tells when other series started, and is none itself
	base    uint64          // of what it tells of
	seen    uint64          // the target's scrape that it was in last
}

// point is one sample of a scrape.
type point struct {
	s     *series
	value float64
	time  int64 // Unix ms, where timed
	start int64 // Unix ms; 0 is not known
	timed bool
}

// family is what is known of the family being read. Its texts are slices of the body.
type family struct {
	name, help, unit []byte
	typ              collectors.Type
	from             int // its first point
}

// reading is one answer of a target while it is read, and what is kept for the next.
type reading struct {
	t       *table
	target  int
	labels  []collectors.Label // of the target, sorted
	entries map[string]*entry
	metrics map[string]*collectors.Metric
	points  []point
	prev    []*series // those of the last scrape
	round   uint64    // number of the scrape
	good    uint64    // number of the last that came to something
	ignore  bool      // samples' own times
	now     int64     // monotonic ns

	key     []byte
	scratch []collectors.Label
	fam     family

	samples, added    int
	exemplars, native uint64
}

func newReading(t *table, target int, labels []collectors.Label) *reading {
	return &reading{t: t, target: target, labels: labels, entries: map[string]*entry{}, metrics: map[string]*collectors.Metric{}}
}

// begin begins a scrape.
func (r *reading) begin(now int64) {
	r.round++
	r.now = now
	r.points = r.points[:0]
	r.samples, r.added, r.exemplars, r.native = 0, 0, 0, 0
	r.fam = family{}
}

// known finds the entry of a series by the bytes that name it.
func (r *reading) known(key []byte, typ collectors.Type) *entry {
	e := r.entries[string(key)]
	if e == nil || e.typ != typ || e.s != nil && e.s.slot < 0 {
		return nil
	}
	return e
}

// add makes a series known. own are its labels, sorted; they are not kept.
func (r *reading) add(key []byte, name, help, unit string, own []collectors.Label, sh shape) (*entry, error) {
	typ := r.fam.typ
	labels := exported(own, r.labels)
	if !utf8.ValidString(name) || name == "" {
		return nil, fmt.Errorf("%.100q is no name of a metric", name)
	}
	s, err := r.t.series(r.target, r.metric(name, help, unit, typ), labels, sh, r.now)
	if err != nil {
		return nil, err
	}
	e := &entry{s: s, typ: typ}
	s.base = r.t.hash.baseOf(typ, own)
	if old := r.entries[string(key)]; old != nil && old.s == s {
		e.seen = old.seen
	}
	r.entries[string(key)] = e
	return e, nil
}

// metric is the metric of that name; what was said of it first holds.
func (r *reading) metric(name, help, unit string, typ collectors.Type) *collectors.Metric {
	if m := r.metrics[name]; m != nil && m.Type == typ {
		return m
	}
	if len(r.metrics) > r.t.max {
		clear(r.metrics) // it is only there to share them
	}
	m := &collectors.Metric{Name: name, Help: cutText(help), Unit: cutText(unit), Type: typ, Kind: collectors.Float}
	r.metrics[name] = m
	return m
}

// cutText keeps as much of a text as is kept.
func cutText(s string) string {
	if len(s) <= maxHelp {
		return s
	}
	s = s[:maxHelp]
	for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) && len(s) > maxHelp-utf8.UTFMax {
		s = s[:len(s)-1]
	}
	return strings.Clone(s)
}

// take notes a sample of a known series.
func (r *reading) take(e *entry, p point) error {
	r.samples++
	if e.seen == 0 || e.seen < r.good {
		r.added++ // the last good one did not have it
	}
	e.seen = r.round
	p.s = e.s
	if p.s.seen == r.round {
		r.t.dropped.duplicate.Add(1)
		return nil
	}
	p.s.seen = r.round
	r.points = append(r.points, p)
	if !r.t.room(r.target, len(r.points)) {
		return errTooMany
	}
	return nil
}

// begun notes when, in Unix seconds, the metrics of the family with the base labels
// started.
func (r *reading) begun(base uint64, at float64) {
	if !(at > 0 && at < 1e11) {
		return
	}
	ms := int64(at * 1000)
	found := false
	for i := len(r.points) - 1; i >= r.fam.from; i-- {
		if r.points[i].s.base == base {
			r.points[i].start, found = ms, true
		} else if found {
			return // a metric's samples stand together
		}
	}
}
