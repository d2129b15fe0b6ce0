package burst

import "github.com/ticktier/ticktier/collectors"

// maxScrapers is how many scrapers have a range of their own. One more takes the
// place of the one that was not seen for longest, and both may be told of a range
// that begins too early.
const maxScrapers = 8

// visit is who has a place among the scrapers.
type visit struct {
	scraper string
	at      uint64 // counts visits
}

// Series is one series of a snapshot.
type Series struct {
	// Labels has one or none; it must not be written to.
	Labels []collectors.Label
	Count  uint64
	Sum    float64
	// Zero counts values up to ZeroThreshold. Native[i] counts those in (2^((k-1)/8),
	// 2^(k/8)] with k = First+i.
	Zero   uint64
	First  int
	Native []uint64
	// Classic[i] counts values up to Bounds[i] and above the bound before; there is
	// one more, for all that is larger.
	Classic []uint64
	// Start is the monotonic time in ns at which Count was 0.
	Start int64
	// Min and Max are the lowest and the highest value since the scraper's last
	// snapshot that had the series, where Ranged says that there was one.
	Min, Max float64
	Ranged   bool
}

// Snapshot is all families at one moment. It may be used again.
type Snapshot struct {
	Families []Family
	// Overflow counts series that are not followed, for there are too many.
	Overflow uint64
}

// Snapshot brings dst up to date for a scraper, which is known by any string that
// stays the same, and begins that scraper's next range. Series that never moved are
// left out, and those whose kernel row is gone.
func (r *Recorder) Snapshot(dst *Snapshot, scraper string) {
	if len(dst.Families) != familyCount {
		dst.Families = make([]Family, familyCount)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range dst.Families {
		series := dst.Families[i].Series[:0]
		dst.Families[i] = r.fixed[i]
		dst.Families[i].Series = series
	}
	dst.Overflow = r.overflow()
	place := r.place(scraper)
	for i := range r.cpus {
		c := &r.cpus[i]
		if r.has(c.modes[0].slot) {
			take(&dst.Families[busy], &c.busy, &c.label, place)
			take(&dst.Families[softirq], &c.soft, &c.label, place)
		}
	}
	for i := range r.gauges {
		if g := &r.gauges[i]; r.has(g.slot) {
			take(&dst.Families[g.family], &g.h, &g.label, place)
		}
	}
	for i := range r.times {
		take(&dst.Families[delay+i], &r.times[i], nil, place)
	}
}

// take adds a histogram to a family, and empties the scraper's range.
func take(f *Family, h *histogram, label *collectors.Label, place int) {
	h.roll()
	if !h.moved {
		return
	}
	e := h.before[place]
	h.before[place] = extent{}
	n := len(f.Series)
	if n < cap(f.Series) {
		f.Series = f.Series[:n+1]
	} else {
		f.Series = append(f.Series, Series{})
	}
	s := &f.Series[n]
	s.Labels = s.Labels[:0]
	if label != nil {
		s.Labels = append(s.Labels, *label)
	}
	h.copyTo(s, e)
}

// place is a scraper's place. The lock is held.
func (r *Recorder) place(scraper string) int {
	r.visited++
	oldest := 0
	for i := range r.visits {
		if r.visits[i].at > 0 && r.visits[i].scraper == scraper {
			r.visits[i].at = r.visited
			return i
		}
		if r.visits[i].at < r.visits[oldest].at {
			oldest = i
		}
	}
	r.visits[oldest] = visit{scraper, r.visited}
	return oldest
}
