package receive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/storage"
)

// batch appends one decoded request. It is reused from request to request, never by
// two at a time.
type batch struct {
	resolver
	families *families

	// Set for each request.
	app        storage.AppenderV2 // nil: nothing is open
	target     storage.AppendableV2
	ctx        context.Context // of app
	kept       kept            // what is committed
	minT, maxT int64           // oldest and newest timestamp that is accepted
	room       int             // samples the request may still have
	inOrder    bool            // the store takes no out-of-order samples
	index      int             // of the series at hand
	series     series
	seen       seen
	refused    refusals
	samples    int // accepted
	histograms int
	exemplars  int
	oldest     int64 // of what is accepted; oldest > newest: nothing
	newest     int64
	device     string
	gate       Gate      // may be nil
	accounts   *accounts // nil: nothing is bounded
	metrics    *metrics
	account    *account // of the device, once the request was admitted
	entry      Entry    // who the request is from
	claim      Claim    // without Device
	judged     bool     // the gate was asked
	hist       rawHistogram
	raw        rawExemplar
	ordered    []exemplar.Exemplar
	spare      []pair
}

// storeError is an error that is the store's, not the request's: nothing of the
// request is kept and the sender is asked to come back.
type storeError struct{ err error }

func (e storeError) Error() string { return e.err.Error() }
func (e storeError) Unwrap() error { return e.err }

// begin prepares for a request of n series.
func (b *batch) begin(n, room int, minT, maxT int64, inOrder bool) {
	b.kept = kept{}
	b.room, b.minT, b.maxT, b.inOrder = room, minT, maxT, inOrder
	b.seen.reset(n)
	b.refused.reset()
	b.samples, b.histograms, b.exemplars = 0, 0, 0
	b.oldest, b.newest = math.MaxInt64, math.MinInt64
	b.device, b.judged = "", false
	b.account = nil
	b.rename, b.renamed = nil, nil
	b.setForced(b.entry.Labels)
}

// end drops what belongs to the caller.
func (b *batch) end() {
	b.app, b.target, b.ctx = nil, nil, nil
	b.account = nil
	b.claim = Claim{}
	b.entry = Entry{}
	clear(b.forced)
	b.forced = b.forced[:0]
	b.hist = rawHistogram{}
	clear(b.ordered)
	b.ordered = b.ordered[:0]
}

// add appends every series of q. An error means that the whole request is to be
// rolled back: a decoding error, a limitError or a storeError. What is wrong with
// single samples is in b.refused.
func (b *batch) add(q *request) error {
	for i, at := range q.series {
		if i > 0 && i%commitEvery == 0 {
			if err := b.commit(); err != nil {
				return err
			}
			b.app = b.target.AppenderV2(b.ctx)
		}
		if err := b.series.decode(q, at, b.room); err != nil {
			return malformed(i, err)
		}
		b.room -= b.series.cost()
		b.index = i
		if err := b.addSeries(q); err != nil {
			return err
		}
	}
	var f family
	for i, at := range q.families {
		if err := f.decode(q.bytes(at)); err != nil {
			return fmt.Errorf("metadata %d: %w", i, err)
		}
		b.families.set1(&f)
	}
	return nil
}

// kept is how much of a request is committed.
type kept struct{ samples, histograms, exemplars int }

func (k kept) String() string {
	if k == (kept{}) {
		return "nothing is stored"
	}
	return fmt.Sprintf("%d samples, %d histograms and %d exemplars are stored", k.samples, k.histograms, k.exemplars)
}

// commit commits what was appended since the last time. The error is a storeError.
func (b *batch) commit() error {
	app := b.app
	b.app = nil // Commit rolls back by itself
	if err := app.Commit(); err != nil {
		return storeError{fmt.Errorf("commit: %w", err)}
	}
	b.kept = kept{b.samples, b.histograms, b.exemplars}
	return nil
}

// addSeries appends the series that was just decoded.
func (b *batch) addSeries(q *request) error {
	s := &b.series
	r, why := b.resolve(q, s)
	if why == reasonNone && q.proto == proto2 && s.elements() == 0 && s.meta == (seriesMeta{}) {
		why = reasonNoSamples
	}
	if why == reasonNone && s.meta != (seriesMeta{}) && !b.metadata(q, r) {
		why = reasonReference
	}
	if why != reasonNone {
		if err := b.checkRest(q); err != nil {
			return err
		}
		b.refuse(why, max(1, s.elements()), 0)
		return nil
	}
	if !b.judged {
		var err error
		if r, err = b.admit(q, r); err != nil {
			return err
		}
	} else if b.device == "" {
		b.device = r.ls.Get("instance")
	}
	if why := b.admitSeries(r); why != reasonNone {
		if err := b.checkRest(q); err != nil {
			return err
		}
		b.refuse(why, max(1, s.elements()), 0)
		return nil
	}
	if err := b.addSamples(r); err != nil {
		return err
	}
	if len(s.histograms) > 0 {
		if err := b.addHistograms(q, r); err != nil {
			return err
		}
	}
	if len(s.exemplars) > 0 {
		return b.addExemplars(q, r)
	}
	return nil
}

// checkRest decodes what a refused series has left, so that a message is malformed or
// not whatever its labels are.
func (b *batch) checkRest(q *request) error {
	for _, at := range b.series.histograms {
		if err := b.hist.decode(q.bytes(at), q.proto); err != nil {
			return malformed(b.index, err)
		}
	}
	for _, at := range b.series.exemplars {
		if err := b.raw.decode(q.bytes(at), q.proto); err != nil {
			return malformed(b.index, err)
		}
	}
	return nil
}

// refuse counts n elements of the series at hand.
func (b *batch) refuse(why reason, n int, t int64) {
	b.refused.add(why, n, func() string { return place(b.index, b.pairs, t) })
}

// timely judges a timestamp by itself.
func (b *batch) timely(t int64) reason {
	if t <= 0 {
		return reasonTimestamp
	}
	if t > b.maxT {
		return reasonFuture
	}
	if t < b.minT {
		return reasonPast
	}
	return reasonNone
}

// stored notes the time of an accepted sample or histogram.
func (b *batch) stored(t int64) {
	b.oldest = min(b.oldest, t)
	b.newest = max(b.newest, t)
}

// addSamples appends the float samples of the series at hand, in the order of their
// time.
func (b *batch) addSamples(r *resolved) error {
	samples := b.series.samples
	if len(samples) == 0 {
		return nil
	}
	byTime := func(a, b sample) int { return cmp.Compare(a.t, b.t) }
	if !slices.IsSortedFunc(samples, byTime) {
		slices.SortStableFunc(samples, byTime)
	}
	prev := b.seen.of(r)
	ref := r.seriesRef()
	for i := range samples {
		s := &samples[i]
		if why := b.timely(s.t); why != reasonNone {
			b.refuse(why, 1, s.t)
			continue
		}
		if prev.kind != kindNone && s.t <= prev.t {
			if s.t == prev.t && prev.kind == kindFloat && prev.bits == math.Float64bits(s.v) {
				b.samples++ // it is stored already
				continue
			}
			if s.t == prev.t || b.inOrder {
				b.refuse(contradiction(s.t == prev.t), 1, s.t)
				continue
			}
		}
		got, err := b.app.Append(ref, r.ls, start(s.st, s.t), s.t, s.v, nil, nil, storage.AOptions{})
		if err != nil && !errors.Is(err, (*storage.AppendPartialError)(nil)) {
			why, ok := refusalOf(err)
			if !ok {
				return storeError{err}
			}
			b.refuse(why, 1, s.t)
			continue
		}
		ref = got
		if prev.kind == kindNone || s.t > prev.t {
			prev.kind, prev.t, prev.bits = kindFloat, s.t, math.Float64bits(s.v)
		}
		b.samples++
		b.stored(s.t)
	}
	r.setRef(ref)
	return nil
}

func contradiction(sameTime bool) reason {
	if sameTime {
		return reasonDuplicate
	}
	return reasonOutOfOrder
}

// start is a start timestamp the store may see: 0, unknown, if it makes no sense.
func start(st, t int64) int64 {
	if st > t {
		return 0
	}
	return st
}
