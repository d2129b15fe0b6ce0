package send

import (
	"context"
	"strings"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// lateness is what a receiver was found to do with samples out of order.
type lateness uint8

const (
	lateUnknown lateness = iota // it refused, but not for the order
	lateTaken
	lateRefused
)

// orderProbe is a series with two samples per outage: one of now and an older one.
// What becomes of the second tells whether the receiver takes samples out of order,
// and nothing else is at stake.
func orderProbe() []collectors.Series {
	return []collectors.Series{{Metric: &collectors.Metric{Name: "ticktier_exporter_remote_write_order_probe", Type: collectors.Gauge,
		Help: "Sent out of order to learn whether the receiver takes that."}}}
}

// takesLate asks the receiver whether it takes a sample as old as the oldest of the
// backlog after a newer one. Only a refusal that is about the order decides that it
// does not: one that says so, or one of the older sample alone, between newer ones that
// are taken.
func (s *Sender) takesLate(ctx context.Context) (lateness, error) {
	newest := s.cfg.Wall(s.cfg.Now())
	oldest := newest
	if l := s.lanes.earlier; l != nil && l.reading {
		oldest = l.earlier.Wall(l.earlier.Tick().Time)
	} else {
		s.cfg.Behind.Seek(s.lanes.nowNext)
		s.lanes.entered = false
		if s.cfg.Behind.Next() {
			oldest = s.cfg.Wall(s.cfg.Behind.Tick().Time)
		}
	}
	if oldest >= newest {
		return lateUnknown, nil
	}
	if v, _, err := s.probe(ctx, newest); v != accepted || err != nil {
		return lateUnknown, err
	}
	v, rep, err := s.probe(ctx, oldest)
	switch {
	case err != nil:
		return lateUnknown, err
	case v == accepted:
		return lateTaken, nil
	case ofOrder(rep.message):
		return lateRefused, nil
	}
	// It may refuse everything by now.
	if v, _, err := s.probe(ctx, newest+1); v != accepted || err != nil {
		return lateUnknown, err
	}
	return lateRefused, nil
}

// probe sends one sample of the probe's series until it has a verdict.
func (s *Sender) probe(ctx context.Context, ms int64) (verdict, reply, error) {
	var b batch
	var e encoder
	for {
		b.reset(1)
		b.add(&frame.Tick{Read: 1, Values: []int64{1}, Present: []uint64{1}}, ms)
		b.prepare()
		use := s.proto.use
		r := e.encode(newTable(use, orderProbe(), s.cfg.ExternalLabels), &b, 0, s.lim.now, false, nil)
		v, rep, err := s.attempt(ctx, r)
		switch {
		case err != nil:
			return v, rep, err
		case v == downgrade:
			s.settle(v, rep, r)
			continue
		case v == retry:
			continue
		case v == accepted:
			s.proto.accepted(use)
		}
		s.state.recovered(s.log)
		return v, rep, nil
	}
}

// ofOrder reports whether a receiver's error text is about the order of samples or
// their age.
func ofOrder(message string) bool {
	m := strings.ReplaceAll(strings.ToLower(message), "-", " ")
	for _, words := range [...]string{"out of order", "out of bounds", "too old", "older than", "too far behind", "too far in the past"} {
		if strings.Contains(m, words) {
			return true
		}
	}
	return false
}
