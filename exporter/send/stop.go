package send

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/ticktier/ticktier/exporter/frame"
)

// stopping is what waits need to know of the end.
type stopping struct {
	begun    <-chan struct{} // closed when Run is to end
	deadline time.Time       // when it has to have ended; zero before begun
}

// errUndelivered says that the flush at the end did not get through.
var errUndelivered = errors.New("not everything was delivered")

// stopBackoff bounds the wait between retries during the last flush.
const stopBackoff = 250 * time.Millisecond

// wait waits before a retry. When Run is to end it returns at once, unless the
// receiver asked for the wait.
func (s *Sender) wait(ctx context.Context, d time.Duration, asked bool) error {
	begun := s.stop.begun
	if s.stopping() {
		begun = nil
		if !asked {
			d = min(d, stopBackoff)
		} else if time.Now().Add(d).After(s.stop.deadline) {
			return errUndelivered
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	until := time.Now().Add(d)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errUndelivered
	case <-begun:
		s.stopping()
		if asked {
			return s.wait(ctx, time.Until(until), true)
		}
		return nil
	}
}

// stopping reports whether Run is to end, and notes by when.
func (s *Sender) stopping() bool {
	select {
	case <-s.stop.begun:
		if s.stop.deadline.IsZero() {
			s.stop.deadline = time.Now().Add(s.cfg.ShutdownTimeout)
		}
		return true
	default:
		return false
	}
}

// finish ends every live series, if everything is delivered, and says what came of
// it.
func (s *Sender) finish(ctx context.Context, err error) error {
	if err == nil && s.cfg.StaleOnStop && s.lastMs != math.MinInt64 {
		err = s.endSeries(ctx)
		s.endExtra(ctx)
	}
	s.state.sayLost(s.log, true)
	attrs := []any{"next_seq", s.Cursor(), "samples", s.stats.samples.Load(), "rejected", s.stats.rejected.Load()}
	if err != nil {
		s.log.Warn("remote write stopped before everything was delivered", append(attrs, "reason", s.state.why())...)
	} else {
		s.log.Info("remote write stopped, everything is delivered", attrs...)
	}
	s.client.http.CloseIdleConnections()
	return nil
}

// drain delivers what is left in the ring.
func (s *Sender) drain(ctx context.Context) error {
	s.stopping()
	if ctx.Err() != nil {
		return errUndelivered
	}
	if err := s.push(ctx, true); err != nil {
		return err
	}
	// The rest of the line is the backlog's now.
	for !s.held() && s.backlog() {
		if err := s.pushBacklog(ctx); err != nil {
			return err
		}
	}
	s.use(s.lanes.now)
	if s.held() {
		return errUndelivered
	}
	return nil
}

// endSeries sends a staleness marker for every live series, one millisecond after
// the last tick.
func (s *Sender) endSeries(ctx context.Context) error {
	s.from = 0
	s.fit()
	s.lastMs++
	s.batch.add(&frame.Tick{Seq: s.Cursor()}, s.lastMs)
	s.batch.prepare()
	s.updateStarts()
	err := s.deliver(ctx)
	s.batch.done()
	s.batch.ticks, s.batch.first = s.batch.ticks[:0], 0
	return err
}
