package send

import (
	"context"
	"time"

	"github.com/golang/snappy"
)

// Extra is what a push carries beside ticks: the newest state of something that counts
// since the start, so that one that gets lost is made up for by the next. It is sent
// once, in a request of its own behind the ticks, and never again. Only the sender's
// goroutine calls it.
type Extra interface {
	// Encode appends a whole request that is not compressed, in 2.0 or 1.0, and says
	// how many samples and native histograms are in it. Nothing appended is nothing to
	// send.
	Encode(dst []byte, v2 bool) (body []byte, samples, histograms int)
	// End is as Encode, with what ends every series that was sent: a clean stop.
	End(dst []byte, v2 bool) (body []byte, samples, histograms int)
	// Done tells whether the receiver took the last one.
	Done(took bool)
}

// extraPause is how long a receiver that refuses what is extra is left alone with it.
const extraPause = 10 * time.Minute

// extra is the state of what is sent beside ticks.
type extra struct {
	raw, body []byte
	after     time.Time // it is not sent before
}

// pushExtra sends what goes with a push, once the receiver has shown which protocol it
// speaks.
func (s *Sender) pushExtra(ctx context.Context) {
	x := s.cfg.Extra
	if x == nil || s.stats.samples.Load() == 0 || s.held() || time.Now().Before(s.extra.after) {
		return
	}
	s.postExtra(ctx, x.Encode)
}

// endExtra ends the series of what was sent beside ticks.
func (s *Sender) endExtra(ctx context.Context) {
	if s.cfg.Extra != nil && s.stats.extraSamples.Load()+s.stats.extraHistograms.Load() > 0 && ctx.Err() == nil {
		s.postExtra(ctx, s.cfg.Extra.End)
	}
}

// postExtra sends what encode gives.
func (s *Sender) postExtra(ctx context.Context, encode func(dst []byte, v2 bool) ([]byte, int, int)) {
	x := s.cfg.Extra
	raw, samples, histograms := encode(s.extra.raw[:0], s.proto.use == V2)
	if s.extra.raw = raw; len(raw) == 0 {
		return
	}
	s.extra.body = snappy.Encode(s.extra.body[:cap(s.extra.body)], raw)
	rep := s.client.post(ctx, s.proto.use, s.extra.body, origin{session: s.session(), sender: s.identity()})
	s.stats.requests[codeIndex(rep)].Add(1)
	took := rep.err == nil && rep.code/100 == 2
	x.Done(took)
	if rep.err == nil {
		s.stats.bytes.Add(int64(len(s.extra.body)))
	}
	if took {
		s.stats.extraSamples.Add(int64(samples))
		s.stats.extraHistograms.Add(int64(histograms))
		return
	}
	s.stats.extraFailed.Add(1)
	if rep.err == nil && ofContent(rep.code) {
		s.extra.after = time.Now().Add(extraPause)
		s.log.Warn("receiver refuses histograms, they are not sent for a while", "reason", reason(rep), "for", extraPause)
	}
}
