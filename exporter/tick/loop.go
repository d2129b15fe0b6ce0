package tick

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ticktier/ticktier/collectors"
)

const (
	// MaxSources is how many sources a tick's Read mask has bits for.
	MaxSources = 64
	// MaxRate is the highest rate, in Hz.
	MaxRate = 1000
	// nap is the longest the tick thread sleeps without looking at its context.
	nap = int64(200 * time.Millisecond)
	// retryEvery is how long a source that is not there is left alone.
	retryEvery = 10 * time.Second
	// stopWait is how long Run waits for blocking reads when it ends.
	stopWait = 250 * time.Millisecond
)

// Sink takes ticks. Append is called from the tick goroutine with ever growing seq;
// it must copy what it keeps, for both slices are reused. mono is the tick's
// monotonic time in nanoseconds, bit i of read says that source i was read, and
// values and present are collectors.Row's.
type Sink interface {
	Append(seq uint64, mono int64, read uint64, values []int64, present []uint64)
}

// Timer is the time that a loop runs on; a *Clock, or a test's own.
type Timer interface {
	// Mono is monotonic time in nanoseconds.
	Mono() int64
	// SleepUntil blocks until that time.
	SleepUntil(mono int64)
	// Observe notes the wall clock and returns wall − monotonic time, ns.
	Observe() int64
}

// Config is what a loop is made of. Rate, Schema, Sink and Clock are needed.
type Config struct {
	// Rate is the number of slots a second, 1 to MaxRate.
	Rate int
	// FloorHz is how often a second every source is read at least, whatever its
	// cadence; 0 to Rate.
	FloorHz int
	// Protect, where it is more than 0, is the share of the tick thread's time that one
	// source may take, at most 1: one that takes more is read less often.
	Protect float64
	// Specs are the sources to read, at most MaxSources, in reading order.
	Specs []collectors.Spec
	// Env is given to each source. Self of the loop is put before Env.Self, so that
	// the exporter source reports both.
	Env    collectors.Env
	Schema *collectors.Schema
	Sink   Sink
	Clock  Timer
	Logger *slog.Logger
	// Timing, where set, is called after each tick, from the tick goroutine, with how
	// long after its slot it began, how long it took, and how long after it was to
	// wake the loop did, in ns; −1 where it had no time to sleep.
	Timing func(late, took, wake int64)
	// RetryEvery is how long a source that is not there is left alone; 0 is 10 s.
	RetryEvery time.Duration
}

// Loop is the tick loop. Run it once.
type Loop struct {
	cfg     Config
	log     *slog.Logger
	env     collectors.Env
	plan    schedule
	tol     int64
	begin   int64 // monotonic time when it was made
	wake    int64 // how late the last sleep ended; −1 where there was none
	row     collectors.Row
	sources []*source
	absent  absent
	pace    pace

	// Atomic: written by the tick goroutine, read by anyone.
	ticks, missed, late atomic.Uint64
	lateness, busy      atomic.Uint64 // ns
}

// New checks the configuration and opens the sources that are there; the others are
// tried again while the loop runs.
func New(cfg Config) (*Loop, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	l := &Loop{cfg: cfg, log: cfg.Logger, begin: cfg.Clock.Mono()}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if l.cfg.RetryEvery <= 0 {
		l.cfg.RetryEvery = retryEvery
	}
	l.plan = schedule{rate: int64(cfg.Rate)}
	l.tol = l.plan.tolerance()
	for i := range cfg.Specs {
		cadence := floored(cfg.Specs[i].Cadence, cfg.FloorHz)
		s := &source{spec: cfg.Specs[i], bit: 1 << i, own: l.plan.slots(cadence)}
		s.every = s.own
		s.cadence.Store(int64(cadence))
		l.sources = append(l.sources, s)
	}
	phases(l.sources)
	l.env = cfg.Env
	for i, s := range l.sources {
		row := &l.row
		if s.spec.Blocking {
			s.worker = newWorker()
			row = &s.worker.row
		}
		s.out = collectors.NewOut(cfg.Schema, row, uint8(i))
	}
	l.env.Self = append(l.Self(), cfg.Env.Self...)
	for _, s := range l.sources {
		if s.worker == nil {
			l.open(s, cfg.Clock.Mono())
		}
	}
	return l, nil
}

// envOf is what a source is given.
func (l *Loop) envOf(s *source) collectors.Env {
	env := l.env
	env.Every = time.Duration(s.every * second / l.plan.rate)
	return env
}

func (c *Config) check() error {
	switch {
	case c.Rate < 1 || c.Rate > MaxRate:
		return fmt.Errorf("--rate=%d: the rate must be 1 to %d Hz", c.Rate, MaxRate)
	case c.FloorHz < 0 || c.FloorHz > c.Rate:
		return fmt.Errorf("--floor-hz=%d: it must be 0 to the rate, %d", c.FloorHz, c.Rate)
	case !(c.Protect >= 0 && c.Protect <= 1):
		return fmt.Errorf("--rate.protect=%v: it must be 0 to 1", c.Protect)
	case len(c.Specs) > MaxSources:
		return fmt.Errorf("%d sources are enabled, at most %d can be read: disable some with --no-collector.NAME",
			len(c.Specs), MaxSources)
	case c.Sink == nil || c.Clock == nil || c.Schema == nil:
		return errors.New("tick: Sink, Clock and Schema are needed")
	}
	return nil
}

// Run reads until ctx is done, on a thread of its own, and then closes the sources.
// It returns within a period or 250 ms, whichever is shorter, plus one read and at
// most 250 ms for reads that block. A blocked read cannot be broken off: its goroutine
// ends when the kernel lets go of it.
func (l *Loop) Run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Timers of a thread may be a little late to be fired together. Ours may not;
	// where the kernel refuses, they are 50 µs late.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	for _, s := range l.sources {
		if s.worker != nil {
			go s.worker.run(&s.spec, l.envOf(s), s.out, l.cfg.Clock.Mono)
		}
	}
	defer l.stop()
	l.plan = newSchedule(l.cfg.Rate, l.cfg.Clock.Mono(), l.cfg.Clock.Observe())
	for last := int64(-1); ; {
		slot, ok := l.wait(ctx, last)
		if !ok {
			return nil
		}
		l.missed.Add(uint64(slot - last - 1))
		l.tick(slot)
		last = slot
	}
}

// wait sleeps until a slot after last is due and returns the newest that is.
func (l *Loop) wait(ctx context.Context, last int64) (slot int64, ok bool) {
	target := l.plan.at(last + 1)
	for l.wake = -1; ; {
		if ctx.Err() != nil {
			return 0, false
		}
		now := l.cfg.Clock.Mono()
		if now >= target {
			if l.wake >= 0 {
				l.wake = now - target
			}
			return l.plan.due(now), true
		}
		l.cfg.Clock.SleepUntil(min(target, now+nap))
		l.wake = 0
	}
}

// tick reads the sources that are due in the slot and hands the row on.
func (l *Loop) tick(slot int64) {
	l.cfg.Clock.Observe()
	begin := l.cfg.Clock.Mono()
	at := l.plan.at(slot)
	behind := begin - at
	if behind > l.tol {
		at = begin
		l.late.Add(1)
		l.lateness.Add(uint64(behind))
	}
	var mask uint64
	now := begin
	for _, s := range l.sources {
		due := s.due(slot)
		switch {
		case s.worker != nil:
			if l.collect(s, now) {
				mask |= s.bit
			}
			if due || s.src == nil {
				l.ask(s, now)
			}
		case now < s.retryAt:
		case s.src == nil && !l.open(s, now):
		case due || s.fresh:
			s.fresh = false
			now = l.readNow(s, now)
			mask |= s.bit
		}
	}
	if !l.absent.told && l.settled(now) {
		l.absent.tell(l.log)
	}
	l.cfg.Sink.Append(uint64(slot), at, mask, l.row.Values, l.row.Present)
	l.ticks.Add(1)
	end := l.cfg.Clock.Mono()
	took := max(end-begin, 0)
	l.watchPace(end)
	l.busy.Add(uint64(took))
	if l.cfg.Timing != nil {
		l.cfg.Timing(behind, took, l.wake)
	}
}

// readNow reads a source on the tick thread and returns the time after it.
func (l *Loop) readNow(s *source, now int64) int64 {
	err := read(s.src, s.out)
	end := l.cfg.Clock.Mono()
	again := s.slow // once may be the machine's fault: it stood still, and all with it
	if s.slow = end-now > deadline(&s.spec); s.slow && err == nil {
		err = fmt.Errorf("read %s: it took %v, longer than its deadline", s.spec.Name, time.Duration(end-now))
	}
	if err != nil {
		s.out.ClearAll()
		if errors.Is(err, errPanic) || errors.Is(err, collectors.ErrTooLarge) || s.slow && again {
			s.retryAt = end + int64(l.cfg.RetryEvery) // the next tick would fare no better
		}
	}
	s.took(end-now, err)
	if l.cfg.Protect > 0 {
		l.protect(s, end-now, end)
	}
	s.series.Store(int64(s.out.Len()))
	l.report(s, err)
	return end
}

// open opens a source on the tick thread, or notes when to try again.
func (l *Loop) open(s *source, now int64) bool {
	src, err := open(&s.spec, l.envOf(s))
	if err != nil {
		s.retryAt = now + int64(l.cfg.RetryEvery)
		s.took(0, err)
		l.report(s, err)
		return false
	}
	s.src, s.fresh = src, true
	return true
}

// report logs once when a source begins to fail and once when it works again.
func (l *Loop) report(s *source, err error) {
	switch {
	case err != nil && !s.failing:
		s.failing = true
		s.noteProblem(err)
		if s.src == nil && !s.late && !errors.Is(err, errPanic) {
			l.absent.add(l.log, s.spec.Name, err)
			return
		}
		l.log.Warn("source fails, its series are absent until it works again", "collector", s.spec.Name, "err", err)
	case err == nil && s.failing:
		s.failing = false
		s.noteProblem(nil)
		l.log.Info("source works again", "collector", s.spec.Name, "failures", s.failures.Load())
	}
}
