package send

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Sender delivers the ring's ticks to one URL. Run is its only goroutine; Cursor
// and the functions of SelfMetrics may be called from any.
type Sender struct {
	cfg    Config
	name   string // the URL, redacted
	client *client
	log    *slog.Logger

	// Owned by Run.
	*lane    // that the batch is of
	lanes    lanes
	enc      encoder
	batch    batch
	from     int // first slot of the batch that is not delivered yet
	caughtUp bool
	lim      limits
	proto    negotiation
	metadata time.Time
	state    state
	bisect   bisection
	stop     stopping
	over     overlap
	extra    extra

	trust  *trust
	cursor atomic.Uint64
	stats  stats
}

// metadataEvery is how often 1.0 requests carry metadata, as Prometheus' do.
const metadataEvery = time.Minute

// New makes a sender that begins at the oldest tick held.
func New(c Config) (*Sender, error) {
	u, err := c.setDefaults()
	if err != nil {
		return nil, err
	}
	full := bounds{bytes: c.MaxBytes, samples: c.MaxSamples}
	s := &Sender{
		cfg:   c,
		name:  cmp.Or(c.Name, Redact(u)),
		trust: newTrust(&c),
		lim:   limits{now: full, max: full},
		proto: newNegotiation(c.Mode),
	}
	if s.client, err = newClient(&c, u, s.trust); err != nil {
		return nil, err
	}
	s.lanes.now = newLane(c.Ticks)
	if c.Behind != nil {
		s.lanes.behind = newLane(c.Behind)
	}
	if c.Earlier != nil {
		s.lanes.earlier = newLane(c.Earlier)
		s.lanes.earlier.earlier = c.Earlier
	}
	s.use(s.lanes.now)
	s.log = c.Logger.With("url", s.name)
	s.stats.newest.Store(math.MinInt64)
	s.stats.skew.Store(math.MinInt64)
	s.stats.protocol.Store(int64(s.proto.use))
	if c.TLS.Insecure && u.Scheme == "https" {
		s.log.Warn("ANY CERTIFICATE IS TAKEN: whoever is on the way can read and change what is pushed (--remote-write.tls-insecure-skip-verify)")
	}
	return s, nil
}

// Name is the URL without what may be secret in it.
func (s *Sender) Name() string { return s.name }

// Cursor is the number of the first tick that is not delivered.
func (s *Sender) Cursor() uint64 { return s.cursor.Load() }

// GiveUp counts ticks that are lost with the stop.
func (s *Sender) GiveUp(ticks uint64) { s.stats.lostTicks.Add(int64(ticks)) }

// Run pushes every interval until ctx ends. Then it delivers what is left, and
// sends staleness markers, for at most the shutdown timeout. The ring must get no
// more ticks by then.
func (s *Sender) Run(ctx context.Context) error {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	flush := time.AfterFunc(math.MaxInt64, cancel)
	defer flush.Stop()
	defer context.AfterFunc(ctx, func() { flush.Reset(s.cfg.ShutdownTimeout) })()
	s.stop = stopping{begun: ctx.Done()}
	s.cfg.Ticks.Seek(s.Cursor())

	// Senders that started together push at different times.
	next := time.Now().Add(rand.N(s.cfg.Interval))
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	due := true
	for {
		select {
		case <-ctx.Done():
			return s.finish(sending, s.drain(sending))
		case <-timer.C:
		}
		if err := s.push(sending, due); err != nil {
			return s.finish(sending, err)
		}
		if due {
			s.pushExtra(sending)
		}
		if late := time.Since(next); due {
			next = next.Add((late/s.cfg.Interval + 1) * s.cfg.Interval)
		}
		at := next
		if s.live() && s.backlog() && s.lanes.backAt.Before(at) {
			at = s.lanes.backAt
		}
		due = at.Equal(next)
		timer.Reset(time.Until(at))
	}
}

// push delivers what is due: all there is, or with the live edge first that and some
// of the backlog. An error means that sending is over.
func (s *Sender) push(ctx context.Context, due bool) error {
	if !s.clockGood(ctx) {
		return nil
	}
	if s.live() {
		return s.pushLive(ctx, due)
	}
	return s.pushOrdered(ctx)
}
