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
	table    *table
	enc      encoder
	batch    batch
	from     int  // first slot of the batch that is not delivered yet
	held     bool // Ticks.Tick is read but in no batch
	caughtUp bool
	lim      limits
	proto    negotiation
	lastMs   int64 // wall time of the newest sample put into a batch
	clock    startClock
	starts   []int64 // by slot, wall ms
	metadata time.Time
	state    state
	bisect   bisection
	pen      quarantine
	stop     stopping

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
		cfg:    c,
		name:   cmp.Or(c.Name, Redact(u)),
		client: newClient(&c, u),
		lim:    limits{now: full, max: full},
		proto:  newNegotiation(c.Mode),
		lastMs: math.MinInt64,
	}
	s.log = c.Logger.With("url", s.name)
	s.stats.newest.Store(math.MinInt64)
	s.stats.skew.Store(math.MinInt64)
	s.stats.protocol.Store(int64(s.proto.use))
	return s, nil
}

// Name is the URL without what may be secret in it.
func (s *Sender) Name() string { return s.name }

// Cursor is the number of the first tick that is not delivered.
func (s *Sender) Cursor() uint64 { return s.cursor.Load() }

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
	for {
		select {
		case <-ctx.Done():
			return s.finish(sending, s.drain(sending))
		case <-timer.C:
		}
		if err := s.push(sending); err != nil {
			return s.finish(sending, err)
		}
		late := time.Since(next)
		next = next.Add((late/s.cfg.Interval + 1) * s.cfg.Interval)
		timer.Reset(time.Until(next))
	}
}

// push delivers batch after batch until it has caught up with the ring. An error
// means that sending is over.
func (s *Sender) push(ctx context.Context) error {
	if s.cfg.Wall(s.cfg.Now()) < s.cfg.NotBefore {
		s.state.clockUnset(s.log)
		return nil
	}
	s.state.clockSet(s.log)
	for {
		s.proto.start(time.Now())
		s.fill()
		if len(s.batch.ticks) == 0 {
			return nil
		}
		if err := s.deliver(ctx); err != nil {
			return err
		}
		s.commit()
		if s.caughtUp {
			return nil
		}
	}
}
