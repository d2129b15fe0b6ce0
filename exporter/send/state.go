package send

import (
	"log/slog"
	"time"
)

// state is what the receiver does, for a log with one line per change.
type state struct {
	down      bool // the last request got no verdict
	denied    bool // because the endpoint or the identity is wrong
	downSince time.Time
	downSaid  time.Time // when the log last said so
	retries   int
	lastErr   string

	refusing     bool
	refusedAt    time.Time // the last time
	refusedSaid  time.Time // when the log last said so
	refusedCount int64     // samples since refusing began
	gone         uint64    // ticks lost of which the log did not say so yet
	goneFrom     int64     // their times, Unix ms
	goneTo       int64
	goneSaid     time.Time
	short        bool // wrote less than it accepted
	brokenLogged bool
	unset        bool // the clock is not set
	limited      bool // said that a limit does not lift
}

// calm is how long a receiver must refuse nothing until it is said to accept
// again: one bad series among good ones would otherwise log with every push.
const calm = time.Minute

// delayed is told of a request that will be retried.
func (st *state) delayed(log *slog.Logger, r reply) {
	st.lastErr = reason(r)
	now, begins := time.Now(), !st.down
	if begins {
		st.down, st.downSince, st.retries = true, now, 0
	}
	st.retries++
	turns := !begins && denied(r) != st.denied
	st.denied = denied(r)
	if !begins && !turns && now.Sub(st.downSaid) < sayAgain {
		return
	}
	st.downSaid = now
	attrs := []any{"reason", st.lastErr}
	if st.denied {
		attrs = append(attrs, "check", check(r.code))
	}
	if !begins {
		attrs = append(attrs, "for", now.Sub(st.downSince).Round(time.Second), "retries", st.retries)
	}
	switch {
	case st.denied:
		log.Error("receiver does not let this exporter write, ticks are kept and it is tried again", attrs...)
	case begins:
		log.Warn("remote write delayed, retrying", attrs...)
	default:
		log.Warn("remote write is still delayed, retrying", attrs...)
	}
}

// sayAgain is how often the log repeats what lasts.
const sayAgain = 10 * time.Minute

// recovered is told that the receiver gave a verdict.
func (st *state) recovered(log *slog.Logger) {
	if st.down {
		st.down, st.denied = false, false
		log.Info("remote write goes on", "after", time.Since(st.downSince).Round(time.Millisecond), "retries", st.retries)
	}
}

// accepted is told of a request that was taken.
func (st *state) accepted(log *slog.Logger, p Protocol, rep reply, r *request) {
	st.recovered(log)
	st.lastErr = ""
	if st.refusing && time.Since(st.refusedAt) >= calm {
		st.refusing = false
		log.Info("receiver refuses no more samples", "rejected", st.refusedCount)
	}
	short := p == V2 && rep.samples < int64(r.samples)
	if short && !st.short {
		log.Warn("receiver accepted a request but wrote fewer samples", "sent", r.samples, "written", rep.samples)
	}
	st.short = short
}

// refused is told of a request of which n samples were refused for good.
func (st *state) refused(log *slog.Logger, rep reply, r *request, n int64) {
	st.recovered(log)
	st.lastErr = reason(rep)
	st.refusedAt = time.Now()
	begins := !st.refusing
	if begins {
		st.refusing, st.refusedCount, st.refusedSaid = true, 0, st.refusedAt
		log.Error("receiver refuses samples, they are counted and dropped", "reason", st.lastErr, "samples", n,
			"from", time.UnixMilli(r.first).UTC(), "to", time.UnixMilli(r.last).UTC())
	}
	st.refusedCount += n
	if !begins && st.refusedAt.Sub(st.refusedSaid) >= sayAgain {
		st.refusedSaid = st.refusedAt
		log.Error("receiver still refuses samples, they are counted and dropped", "reason", st.lastErr, "rejected", st.refusedCount)
	}
}

// gaveUp is told of a request that was cut off by the end.
func (st *state) gaveUp(r reply) {
	if st.lastErr == "" {
		st.lastErr = reason(r)
	}
}

// broken is told that the ring gave a frame that cannot be read.
func (st *state) broken(log *slog.Logger, err error) {
	if !st.brokenLogged {
		st.brokenLogged = true
		log.Error("ring cannot be read, its damaged frames are passed over", "err", err)
	}
}

// why is the last reason for not delivering.
func (st *state) why() string {
	if st.lastErr == "" {
		return "the shutdown timeout was too short"
	}
	return st.lastErr
}

// reason says in words why a request got no further.
func reason(r reply) string {
	switch {
	case r.err != nil:
		return r.err.Error()
	case r.code/100 == 3:
		return httpStatus(r.code) + " to " + r.location + ", redirects are not followed"
	case r.code/100 == 2:
		return httpStatus(r.code) + " without a Written header: it knows no remote write 2.0"
	case r.message != "":
		return httpStatus(r.code) + ": " + r.message
	default:
		return httpStatus(r.code)
	}
}

// clockUnset is told that the clock is not set yet.
func (st *state) clockUnset(log *slog.Logger) {
	if !st.unset {
		st.unset = true
		st.lastErr = "the clock is not set"
		log.Warn("clock is not set, nothing is sent until it is")
	}
}

// clockContradicted is told that the receiver's clock is another by more than a day.
func (st *state) clockContradicted(log *slog.Logger, skew time.Duration) {
	if !st.unset {
		st.unset = true
		st.lastErr = "the clock is wrong by more than a day"
		log.Warn("clock is contradicted by the receiver's by more than a day, nothing is sent until they agree",
			"receiver_minus_this", skew.Round(time.Second))
	}
}

// clockSet is told that the clock is right.
func (st *state) clockSet(log *slog.Logger) {
	if st.unset {
		st.unset, st.lastErr = false, ""
		log.Info("clock is set, what was sampled before has its right time")
	}
}

// lost is told of ticks for which there was no room, and their times in Unix ms.
func (st *state) lost(n uint64, from, to int64) {
	if st.gone == 0 {
		st.goneFrom, st.goneTo = from, to
	}
	st.gone += n
	st.goneFrom, st.goneTo = min(st.goneFrom, from), max(st.goneTo, to)
}

// lostEvery is the time between two lines about ticks that are lost.
const lostEvery = time.Minute

// sayLost writes what was lost to the log, the first at once and then the sum once a
// minute, or at the end.
func (st *state) sayLost(log *slog.Logger, end bool) {
	if st.gone == 0 || !end && !st.goneSaid.IsZero() && time.Since(st.goneSaid) < lostEvery {
		return
	}
	log.Warn("ticks lost before they could be sent, there was no room to keep them",
		"ticks", st.gone, "from", time.UnixMilli(st.goneFrom).UTC(), "to", time.UnixMilli(st.goneTo).UTC())
	st.gone, st.goneSaid = 0, time.Now()
}
