package send

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/ticktier/ticktier/exporter/frame"
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
	lim      bounds
	proto    negotiation
	lastMs   int64 // wall time of the newest sample put into a batch
	clock    startClock
	starts   []int64 // by slot, wall ms
	metadata time.Time
	state    state
	stop     stopping

	cursor atomic.Uint64
	stats  stats
}

// stopping is what waits need to know of the end.
type stopping struct {
	begun    <-chan struct{} // closed when Run is to end
	deadline time.Time       // when it has to have ended; zero before begun
}

// metadataEvery is how often 1.0 requests carry metadata, as Prometheus' do.
const metadataEvery = time.Minute

// errUndelivered says that the flush at the end did not get through.
var errUndelivered = errors.New("not everything was delivered")

// New makes a sender that begins at the oldest tick held.
func New(c Config) (*Sender, error) {
	u, err := c.setDefaults()
	if err != nil {
		return nil, err
	}
	s := &Sender{
		cfg:    c,
		name:   cmp.Or(c.Name, Redact(u)),
		client: newClient(&c, u),
		lim:    bounds{bytes: c.MaxBytes, samples: c.MaxSamples},
		proto:  newNegotiation(c.Mode),
		lastMs: math.MinInt64,
	}
	s.log = c.Logger.With("url", s.name)
	s.stats.newest.Store(math.MinInt64)
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

// fill takes ticks from the ring into the batch, unless there is one already.
func (s *Sender) fill() {
	if len(s.batch.ticks) > 0 {
		return
	}
	s.from, s.caughtUp = 0, false
	s.ensureTable()
	s.batch.reset(len(s.table.series))
	for !s.batch.full() {
		if !s.held && !s.next() {
			s.caughtUp = true
			break
		}
		t := s.cfg.Ticks.Tick()
		if len(t.Values) > s.batch.slots && s.cfg.Schema.Len() > s.batch.slots {
			if len(s.batch.ticks) > 0 {
				break // the next batch has the new series
			}
			s.ensureTable()
			s.batch.reset(len(s.table.series))
		}
		ms, ok := s.stamp(t)
		if !ok {
			break
		}
		s.batch.add(t, ms)
		s.held = false
	}
	s.batch.prepare()
	s.updateStarts()
}

// next moves to the next tick and counts what was lost before it.
func (s *Sender) next() bool {
	if !s.cfg.Ticks.Next() {
		if err := s.cfg.Ticks.Err(); err != nil {
			s.state.broken(s.log, err)
		}
		return false
	}
	s.held = true
	if n, from, to := s.cfg.Ticks.Lost(); n > 0 {
		s.stats.lostTicks.Add(int64(n))
		s.log.Warn("ticks lost before they could be sent, they were evicted from the ring",
			"ticks", n, "from", s.wallTime(from), "to", s.wallTime(to))
	}
	return true
}

func (s *Sender) wallTime(mono int64) time.Time { return time.UnixMilli(s.cfg.Wall(mono)).UTC() }

// maxNudge is how far in ms a tick's time may be moved. At 1000 Hz two reads that
// began late can fall into one millisecond; a receiver takes one sample for each.
const maxNudge = 2

// stamp is the wall time of a tick. false means that the clock was stepped back
// before it: a batch must be in order, so it begins a new one.
func (s *Sender) stamp(t *frame.Tick) (int64, bool) {
	ms := s.cfg.Wall(t.Time)
	switch {
	case ms > s.lastMs:
	case s.lastMs-ms < maxNudge:
		ms = s.lastMs + 1
	case len(s.batch.ticks) > 0:
		return 0, false
	}
	s.lastMs = ms
	return ms, true
}

// ensureTable makes the table fit the schema and the protocol.
func (s *Sender) ensureTable() {
	series := s.cfg.Schema.Series()
	if s.table == nil || s.table.protocol != s.proto.use || len(series) != len(s.table.series) {
		s.table = newTable(s.proto.use, series, s.cfg.ExternalLabels)
	}
}

// deliver sends the batch, request by request, from where it was left.
func (s *Sender) deliver(ctx context.Context) error {
	for s.from < s.batch.slots {
		if s.table.protocol != s.proto.use {
			// The batch keeps the slots it was made for.
			s.table = newTable(s.proto.use, s.table.series, s.cfg.ExternalLabels)
			s.metadata = time.Time{}
		}
		r := s.encode()
		if r.series == 0 {
			s.from = r.to
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
	return s.enc.encode(s.table, &s.batch, s.from, s.lim, metadata, starts)
}

// attempt sends a request until it has a verdict other than to retry.
func (s *Sender) attempt(ctx context.Context, r *request) (verdict, reply, error) {
	seqs := s.seqs()
	for n := 0; ; n++ {
		if n > 0 {
			s.stats.retries.Add(1)
		}
		rep := s.client.post(ctx, s.proto.use, r.body, seqs)
		if ctx.Err() != nil && rep.err != nil {
			s.state.gaveUp(rep)
			return retry, rep, errUndelivered
		}
		s.stats.requests[codeIndex(rep)].Add(1)
		if rep.err == nil {
			s.stats.bytes.Add(int64(len(r.body)))
		}
		v := classify(rep, s.proto.use, s.proto.auto, s.proto.known || s.proto.tried)
		if v != retry {
			return v, rep, nil
		}
		s.state.delayed(s.log, rep)
		if err := s.wait(ctx, backoff(n, rep.retryAfter), rep.retryAfter > 0); err != nil {
			return retry, rep, err
		}
	}
}

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

// settle does what a final verdict asks for.
func (s *Sender) settle(v verdict, rep reply, r *request) {
	switch v {
	case downgrade:
		s.log.Info("receiver does not take remote write 2.0, falling back to 1.0", "reason", reason(rep))
		s.proto.downgrade(time.Now(), rep.code == 400)
		s.stats.protocol.Store(int64(s.proto.use))
		return // the same slots again
	case tooLarge:
		if s.shrink(r) {
			return
		}
		s.refuse(rep, r)
	case refused:
		s.refuse(rep, r)
	default:
		s.accept(rep, r)
	}
	s.from = r.to
}

// accept counts a request that the receiver took.
func (s *Sender) accept(rep reply, r *request) {
	s.stats.samples.Add(int64(r.samples))
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

// shrink halves the bounds of a request; false means that it is small already.
func (s *Sender) shrink(r *request) bool {
	if r.series == 1 || r.samples <= minSamples {
		return false
	}
	s.lim.samples = max(minSamples, r.samples/2)
	s.lim.bytes = max(minBytes, min(s.lim.bytes, len(r.body)/2))
	s.log.Warn("receiver finds requests too large, sending smaller ones",
		"samples", s.lim.samples, "bytes", s.lim.bytes)
	return true
}

// commit moves the cursor behind the batch.
func (s *Sender) commit() {
	last := s.batch.ticks[len(s.batch.ticks)-1]
	s.batch.done()
	s.batch.ticks = s.batch.ticks[:0]
	s.stats.newest.Store(last.mono)
	s.cursor.Store(last.seq + 1)
	if s.cfg.Delivered != nil {
		s.cfg.Delivered(last.seq + 1)
	}
}

// finish ends every live series, if everything is delivered, and says what came of
// it.
func (s *Sender) finish(ctx context.Context, err error) error {
	if err == nil && s.cfg.StaleOnStop && s.lastMs != math.MinInt64 {
		err = s.endSeries(ctx)
	}
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
	return s.push(ctx)
}

// endSeries sends a staleness marker for every live series, one millisecond after
// the last tick.
func (s *Sender) endSeries(ctx context.Context) error {
	s.from = 0
	s.ensureTable()
	s.batch.reset(len(s.table.series))
	s.lastMs++
	s.batch.add(&frame.Tick{Seq: s.Cursor()}, s.lastMs)
	s.batch.prepare()
	s.updateStarts()
	err := s.deliver(ctx)
	s.batch.done()
	s.batch.ticks = s.batch.ticks[:0]
	return err
}
