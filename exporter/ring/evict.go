package ring

// Eviction is a frame that leaves the ring.
type Eviction struct {
	// Frame is the sealed frame as it was stored. It is only valid during the
	// call.
	Frame []byte
	// Undelivered is the number of its ticks that were not delivered everywhere; where
	// a part of it was and slots were missed, it is an upper bound.
	Undelivered uint64
	// Before is the number of ticks since the start that came before it.
	Before uint64
	// Span is all that the frame covers.
	Span Loss
}

// Loss is a range of ticks, mostly of ones that are gone.
type Loss struct {
	Ticks uint64
	// FirstSeq and LastSeq bound the numbers of the lost ticks, inclusive.
	FirstSeq, LastSeq uint64
	// FirstTime and LastTime bound their times, in nanoseconds since the
	// exporter's start.
	FirstTime, LastTime int64
}

// maxLosses bounds the list of losses; beyond it the two oldest become one range.
const maxLosses = 64

// evicted counts what left the ring.
type evicted struct {
	frames, ticks, undelivered uint64
	lastSeq                    uint64 // of the newest tick evicted
	losses                     []Loss
}

// evict counts a frame as gone and gives it to the hook.
func (r *Ring) evict(f *held, b []byte) {
	var lost Loss
	if r.delivering {
		lost = undelivered(f.span, r.delivered, r.ahead)
	}
	kept := false
	if r.Evicted != nil {
		kept = r.Evicted(Eviction{Frame: b, Undelivered: lost.Ticks, Before: f.before, Span: f.all()})
	}
	if !kept {
		r.evicted.add(lost, lost.FirstSeq == f.firstSeq)
	}
	r.evicted.frames++
	r.evicted.ticks += f.ticks
	r.evicted.lastSeq = f.lastSeq
}

// all is the whole of a span.
func (s span) all() Loss {
	return Loss{Ticks: s.ticks, FirstSeq: s.firstSeq, LastSeq: s.lastSeq, FirstTime: s.firstTime, LastTime: s.lastTime}
}

// undelivered is the part of a span from tick number from on, without what is in
// ahead. Where that is not all of it, the part is reckoned as if no slot had been
// missed.
func undelivered(s span, from uint64, ahead [][2]uint64) Loss {
	first, last := max(from, s.firstSeq), s.lastSeq
	missing := last + 1 - min(first, last+1)
	for _, a := range ahead {
		lo, hi := max(a[0], first), min(a[1], s.lastSeq+1)
		if lo >= hi {
			continue
		}
		missing -= min(missing, hi-lo)
	}
	if missing == 0 {
		return Loss{}
	}
	for _, a := range ahead { // they are in order
		if a[0] <= first && first < a[1] {
			first = a[1]
		}
	}
	for i := len(ahead) - 1; i >= 0; i-- {
		if a := ahead[i]; a[0] <= last && last < a[1] {
			last = a[0] - 1
		}
	}
	l := Loss{Ticks: min(s.ticks, missing), FirstSeq: first, LastSeq: last, FirstTime: s.firstTime, LastTime: s.lastTime}
	if slots := float64(s.lastSeq - s.firstSeq); slots > 0 {
		long := float64(s.lastTime - s.firstTime)
		l.FirstTime += int64(float64(first-s.firstSeq) / slots * long)
		l.LastTime -= int64(float64(s.lastSeq-last) / slots * long)
	}
	return l
}

// add appends a loss to the list. One that begins with its frame is joined to a
// loss that ended with the frame before: no tick between them was delivered.
func (e *evicted) add(l Loss, fromStart bool) {
	if l.Ticks == 0 {
		return
	}
	e.undelivered += l.Ticks
	n := len(e.losses)
	if n > 0 && fromStart && e.losses[n-1].LastSeq == e.lastSeq {
		e.losses[n-1].join(l)
		return
	}
	if e.losses == nil {
		e.losses = make([]Loss, 0, maxLosses)
	}
	if n == maxLosses {
		e.losses[0].join(e.losses[1])
		e.losses = append(e.losses[:1], e.losses[2:]...)
	}
	e.losses = append(e.losses, l)
}

// join widens a loss by a later one.
func (l *Loss) join(later Loss) {
	l.Ticks += later.Ticks
	l.LastSeq, l.LastTime = later.LastSeq, later.LastTime
}

// Delivered tells that every tick before number seq was delivered everywhere, and
// those in ahead, each from its first number to before its second, in order and
// apart; whatever else is evicted is a loss, unless Evicted keeps it. A number lower
// than before changes nothing. Until the first call nothing counts as a loss: whoever
// means to deliver calls Delivered(0) before the first tick.
func (r *Ring) Delivered(seq uint64, ahead ...[2]uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delivering = true
	r.delivered = max(r.delivered, seq)
	r.ahead = append(r.ahead[:0], ahead...)
}

// Losses appends the ranges of ticks that were evicted undelivered to dst, oldest
// first. There are at most 64: beyond that the oldest are joined, and such a range
// covers delivered ticks too while its count stays exact.
func (r *Ring) Losses(dst []Loss) []Loss {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(dst, r.evicted.losses...)
}
