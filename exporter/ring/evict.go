package ring

// Eviction is a frame that leaves the ring.
type Eviction struct {
	// Frame is the sealed frame as it was stored. It is only valid during the
	// call.
	Frame []byte
	// Undelivered is the number of its ticks that were not delivered everywhere.
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
		lost = undelivered(f.span, r.delivered)
		r.evicted.add(lost, lost.FirstSeq == f.firstSeq)
	}
	r.evicted.frames++
	r.evicted.ticks += f.ticks
	r.evicted.lastSeq = f.lastSeq
	if r.Evicted != nil {
		r.Evicted(Eviction{Frame: b, Undelivered: lost.Ticks, Before: f.before, Span: f.all()})
	}
}

// all is the whole of a span.
func (s span) all() Loss {
	return Loss{Ticks: s.ticks, FirstSeq: s.firstSeq, LastSeq: s.lastSeq, FirstTime: s.firstTime, LastTime: s.lastTime}
}

// undelivered is the part of a span from tick number from on. Where that is in
// its midst, the part is reckoned as if no slot had been missed.
func undelivered(s span, from uint64) Loss {
	if from > s.lastSeq {
		return Loss{}
	}
	l := s.all()
	if from > s.firstSeq {
		l.FirstSeq = from
		l.Ticks = min(s.ticks, s.lastSeq-from+1)
		share := float64(from-s.firstSeq) / float64(s.lastSeq-s.firstSeq)
		l.FirstTime += int64(share * float64(s.lastTime-s.firstTime))
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
// that whatever is evicted from seq on is a loss. A number lower than before
// changes nothing. Until the first call nothing counts as a loss: whoever means to
// deliver calls Delivered(0) before the first tick.
func (r *Ring) Delivered(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delivering = true
	r.delivered = max(r.delivered, seq)
}

// Losses appends the ranges of ticks that were evicted undelivered to dst, oldest
// first. There are at most 64: beyond that the oldest are joined, and such a range
// covers delivered ticks too while its count stays exact.
func (r *Ring) Losses(dst []Loss) []Loss {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(dst, r.evicted.losses...)
}
