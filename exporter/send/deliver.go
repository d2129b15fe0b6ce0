package send

import (
	"context"
	"net/http"
	"time"
)

// deliver sends the batch, request by request, from where it was left.
func (s *Sender) deliver(ctx context.Context) error {
	for s.from < s.batch.slots {
		if s.table.protocol != s.proto.use {
			// The batch keeps the slots it was made for.
			of := s.table.of
			s.newTable(s.table.series)
			s.table.of = of
			s.metadata = time.Time{}
		}
		r := s.encode()
		if r.series == 0 {
			s.advance(r)
			continue
		}
		v, rep, err := s.attempt(ctx, r)
		if err != nil {
			return err
		}
		s.settle(v, rep, r)
	}
	return nil
}

// encode encodes the next request of the batch.
func (s *Sender) encode() *request {
	starts := s.starts
	if s.proto.use == V1 {
		starts = nil
	}
	metadata := s.proto.use == V1 && s.from == 0 && time.Since(s.metadata) >= metadataEvery
	lim := s.lim.now
	s.enc.skip, s.enc.hide = s.lane.skip, s.lane.hide
	lim.series = s.bisect.series
	return s.enc.encode(s.table, &s.batch, s.from, lim, metadata, starts)
}

// attempt sends a request until it has a verdict. That is to retry only where the
// same slots are to be tried again in smaller requests.
func (s *Sender) attempt(ctx context.Context, r *request) (verdict, reply, error) {
	from := origin{seqs: s.seqs(), session: s.session()}
	for n := 0; ; n++ {
		if n > 0 {
			s.stats.retries.Add(1)
		}
		began, mono := time.Now(), s.cfg.Now()
		from.sender = s.identity()
		rep := s.client.post(ctx, s.proto.use, r.body, from)
		if ctx.Err() != nil && rep.err != nil {
			s.state.gaveUp(rep)
			return retry, rep, errUndelivered
		}
		s.stats.requests[codeIndex(rep)].Add(1)
		if rep.err == nil {
			s.stats.bytes.Add(int64(len(r.body)))
			s.stats.bytesDay.add(int64(len(r.body)), mono)
		}
		s.hears(rep, mono)
		v := classify(rep, s.proto.use, s.proto.auto, s.proto.known || s.proto.tried)
		if v != retry {
			s.lim.took(time.Since(began), s.cfg.Timeout)
			s.limitedSince(0)
			return v, rep, nil
		}
		s.state.delayed(s.log, rep)
		if rep.code == http.StatusTooManyRequests {
			s.limitedSince(mono)
		}
		most := maxBackoff
		if denied(rep) {
			most = deniedBackoff
		}
		if err := s.wait(ctx, backoff(n, most, rep.retryAfter), rep.retryAfter > 0); err != nil {
			return retry, rep, err
		}
		if rep.err == errTimeout && s.lim.slower(r) {
			return retry, rep, nil
		}
		if rep.code == http.StatusTooManyRequests && n+1 >= limitTries && s.lim.limited(r, time.Now()) {
			s.log.Warn("receiver's limit does not lift by waiting, sending smaller requests",
				"reason", reason(rep), "samples", s.lim.now.samples, "bytes", s.lim.now.bytes)
			return retry, rep, nil
		}
	}
}

// limitedFor is how long a receiver must answer with nothing but its limit until that
// is no longer taken for a wish to slow down.
const limitedFor = 10 * time.Minute

// limitedSince notes that the receiver answers with its limit, at the monotonic time of
// the request, or with 0 that it does not.
func (s *Sender) limitedSince(mono int64) {
	since := s.stats.limited.Load()
	switch {
	case mono == 0 && since != 0:
		s.stats.limited.Store(0)
		s.state.limited = false
	case mono != 0 && since == 0:
		s.stats.limited.Store(max(mono, 1))
	case mono != 0 && mono-since > int64(limitedFor) && !s.state.limited:
		s.state.limited = true
		s.log.Error("receiver has answered with its limit for ten minutes, smaller requests do not help: somebody has to raise the limit or send less; nothing is lost while there is room",
			"reason", s.state.lastErr)
	}
}

// settle does what a final verdict asks for.
func (s *Sender) settle(v verdict, rep reply, r *request) {
	switch v {
	case downgrade:
		s.log.Info("receiver does not take remote write 2.0, falling back to 1.0", "reason", reason(rep))
		s.proto.downgrade(time.Now(), rep.code == 400)
		s.stats.protocol.Store(int64(s.proto.use))
		return // the same slots again
	case retry:
		return // the same slots, fewer of them
	case tooLarge:
		if s.lim.tooLarge(r) {
			s.log.Warn("receiver finds requests too large, sending smaller ones",
				"samples", s.lim.now.samples, "bytes", s.lim.now.bytes)
			return
		}
		s.refuse(rep, r)
	case refused:
		if s.bisect.refused(rep, r, time.Now()) {
			return // fewer of the same slots
		}
		s.refuse(rep, r)
	default:
		s.accept(rep, r)
		s.bisect.accepted(r)
	}
	s.advance(r)
}

// advance goes on behind a request. What was left out of it is as good as refused.
func (s *Sender) advance(r *request) {
	s.stats.rejected.Add(int64(r.skipped))
	s.stats.saved[savedFlat].Add(int64(r.saved))
	s.stats.saved[savedRate].Add(int64(r.cut))
	s.stats.saved[savedSelector].Add(int64(r.hidden))
	if n := s.stats.samples.Load(); n > 0 {
		each := float64(s.stats.acked.Load()) / float64(n)
		s.stats.savedBytes.Add(int64(each * float64(r.saved+r.cut+r.hidden)))
	}
	s.from = r.to
}

// accept counts a request that the receiver took.
func (s *Sender) accept(rep reply, r *request) {
	s.stats.samples.Add(int64(r.samples))
	s.stats.acked.Add(int64(len(r.body)))
	s.stats.samplesDay.add(int64(r.samples), s.cfg.Now())
	if s.proto.use == V2 {
		s.stats.unconfirmed.Add(max(0, int64(r.samples)-rep.samples))
	} else if r.metadata {
		s.metadata = time.Now()
	}
	s.proto.accepted(s.proto.use)
	s.stats.protocol.Store(int64(s.proto.use))
	s.state.accepted(s.log, s.proto.use, rep, r)
}

// refuse counts a request that the receiver refused for good. Of a 2.0 request it
// may have taken a part, and says how much.
func (s *Sender) refuse(rep reply, r *request) {
	s.proto.refused()
	s.stats.protocol.Store(int64(s.proto.use))
	taken := min(rep.samples, int64(r.samples))
	s.stats.samples.Add(taken)
	s.stats.rejected.Add(int64(r.samples) - taken)
	s.state.refused(s.log, rep, r, int64(r.samples)-taken)
}

// commit moves the cursor behind the batch.
func (s *Sender) commit() {
	s.state.sayLost(s.log, false)
	last := s.batch.ticks[len(s.batch.ticks)-1]
	s.pen.add(s.bisect.finish(len(s.table.series)), s, time.Now())
	s.batch.done()
	s.batch.ticks, s.batch.first = s.batch.ticks[:0], 0
	l := &s.lanes
	switch s.lane {
	case l.now:
		s.stats.newest.Store(last.mono)
		l.nowNext = last.seq + 1
	case l.behind:
		h := &l.holes[0]
		h.from = max(h.from, min(last.seq+1, h.to))
	case l.earlier:
		l.earlier.earlier.Passed(l.earlier.epoch, last.seq+1)
		return
	}
	s.report()
}
