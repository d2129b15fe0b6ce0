package send

import (
	"context"
	"sync"
	"time"
)

// maxContradiction is how far the receiver's clock may be from this machine's.
const maxContradiction = 24 * time.Hour

// trust is what is known of whether this machine's clock is right. Run and, while a
// connection is made, the transport use it.
type trust struct {
	cfg *Config

	mu           sync.Mutex
	steps        uint64 // when the receiver was asked last
	ask          bool   // before anything is sent
	confirmed    bool   // by the receiver, and not stepped since
	contradicted bool
	skew         time.Duration
	// Wall time in ms when it was confirmed last, and the monotonic time then; before
	// that a time that was past at the start.
	goodWall int64
	goodMono int64
}

func newTrust(c *Config) *trust {
	return &trust{cfg: c, steps: c.steps(), goodWall: c.NotBefore,
		ask: c.Correct != nil || c.Doubt != nil && c.Doubt()}
}

func (c *Config) steps() uint64 {
	if c.Steps == nil {
		return 0
	}
	return c.Steps()
}

// heard notes the time of a reply, which is cut to seconds, and that the request was
// sent at the monotonic time sent.
func (t *trust) heard(date time.Time, sent int64) {
	now := t.cfg.Now()
	if t.cfg.Correct != nil && date.UnixMilli() >= t.cfg.NotBefore {
		t.cfg.Correct(date.UnixNano()-now, date.UnixNano()+int64(time.Second)-sent)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	wall := t.cfg.Wall(now)
	t.skew = time.Duration(date.UnixMilli()-wall) * time.Millisecond
	// A receiver whose own clock was never set can say nothing of ours.
	t.contradicted = t.skew.Abs() > maxContradiction && date.UnixMilli() >= t.cfg.NotBefore
	t.steps, t.ask = t.cfg.steps(), t.contradicted
	if t.confirmed = !t.contradicted && wall >= t.cfg.NotBefore; t.confirmed {
		t.goodWall, t.goodMono = wall, now
	}
}

// unsure reports whether the receiver is to be asked for the time first.
func (t *trust) unsure() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.cfg.steps(); n != t.steps {
		t.steps, t.ask, t.confirmed = n, true, false
	}
	return t.ask
}

// toldNothing is told that the receiver was asked and answered without a time.
func (t *trust) toldNothing() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ask, t.contradicted = false, false
}

// wrong is how far the receiver's clock is from this one's, if that is too far.
func (t *trust) wrong() (skew time.Duration, contradicted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.skew, t.contradicted
}

// times are what a certificate is checked against: this machine's time, a time that
// is past for sure, and whether the first is known to be right.
func (t *trust) times() (now, past time.Time, sure bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mono := t.cfg.Now()
	wall := t.cfg.Wall(mono)
	sure = wall >= t.cfg.NotBefore && !t.contradicted &&
		(t.confirmed && t.cfg.steps() == t.steps || t.cfg.Synced == nil || t.cfg.Synced())
	return time.UnixMilli(wall), time.UnixMilli(t.goodWall + (mono-t.goodMono)/1e6), sure
}

// hears notes the time in a reply to a request that was sent at the monotonic time sent.
func (s *Sender) hears(rep reply, sent int64) {
	if rep.date.IsZero() {
		return
	}
	s.trust.heard(rep.date, sent)
	skew, _ := s.trust.wrong()
	s.stats.skew.Store(skew.Milliseconds())
}

// held reports whether the receiver's clock says that this one is wrong.
func (s *Sender) held() bool {
	_, contradicted := s.trust.wrong()
	return contradicted || s.state.unset
}

// clockGood reports whether the clock is right as far as anybody can tell; without
// that nothing is sent. Where there is doubt it asks the receiver.
func (s *Sender) clockGood(ctx context.Context) bool {
	set := s.cfg.Wall(s.cfg.Now()) >= s.cfg.NotBefore
	if (set || s.cfg.Correct != nil) && s.trust.unsure() {
		sent := s.cfg.Now()
		rep := s.client.ask(ctx)
		s.hears(rep, sent)
		if rep.err == nil && rep.date.IsZero() {
			s.trust.toldNothing()
		}
		if rep.err != nil {
			s.log.Debug("receiver cannot be asked for the time", "err", rep.err)
		}
		set = s.cfg.Wall(s.cfg.Now()) >= s.cfg.NotBefore
	}
	if !set {
		s.state.clockUnset(s.log)
		return false
	}
	if skew, contradicted := s.trust.wrong(); contradicted {
		s.state.clockContradicted(s.log, skew)
		return false
	}
	s.state.clockSet(s.log)
	return true
}
