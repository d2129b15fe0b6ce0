package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/oklog/run"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/burst"
	"github.com/ticktier/ticktier/exporter/config"
	"github.com/ticktier/ticktier/exporter/expose"
	"github.com/ticktier/ticktier/exporter/journal"
	"github.com/ticktier/ticktier/exporter/ring"
	"github.com/ticktier/ticktier/exporter/send"
	"github.com/ticktier/ticktier/exporter/spool"
	"github.com/ticktier/ticktier/exporter/tick"
)

// exporter is the parts that run, joined.
type exporter struct {
	cfg     *config.Config
	log     *slog.Logger
	session string
	clock   *tick.Clock
	ring    *ring.Ring
	bursts  *burst.Recorder
	began   *startWall
	spool   *spool.Spool // nil without one
	loop    *tick.Loop
	senders []*send.Sender
	events  journal.Journal
	handler http.Handler
	period  time.Duration // between two ticks on average, where --rate does not say
	scraped *scraped      // nil where nothing is

	sampled chan struct{} // closed when the last tick is in the ring
	sent    chan struct{} // closed when the last sender is done
}

// serve runs the exporter until a signal or an error ends it. What stops, stops in
// the order in which ticks flow.
func serve(ctx context.Context, r *runFlags, log *slog.Logger) error {
	cfg := &r.config
	// The port first: it is the cheapest thing that can be wrong.
	ln, err := listen(cfg.Listen)
	if err != nil {
		return err
	}
	limit := limitMemory(cfg) // before there is garbage
	if err := limitThreads(); err != nil {
		log.Info("timers of the process are not relaxed: a tick costs a little more", "err", err)
	}
	e, err := join(r, log)
	if err != nil {
		if ln != nil {
			_ = ln.Close()
		}
		return err
	}
	e.logConfig(r.enabled(), limit)

	var g run.Group
	// Once a signal came its handler is gone: a second one ends the process.
	g.Add(run.SignalHandler(ctx, os.Interrupt, syscall.SIGTERM))
	e.addLoop(&g)
	e.scraped.addScraper(&g)
	e.addRing(&g)
	// All senders are told to stop before a spool waits for any: they share the time.
	e.addSenders(&g)
	e.scraped.addSenders(&g)
	e.addSpool(&g)
	e.scraped.addSpool(&g)
	if ln != nil {
		e.addServer(&g, ln)
	}
	err = g.Run()
	switch {
	case errors.Is(err, run.ErrSignal) || ctx.Err() != nil:
		log.Info("stopped", "reason", err)
		return nil
	default:
		return err
	}
}

// listen opens the port; without an address there is none.
func listen(addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return ln, nil
}

// join makes the parts and connects them.
func join(r *runFlags, log *slog.Logger) (*exporter, error) {
	cfg, env := &r.config, r.env(log)
	if names := r.besideTicks(env); len(names) > 0 {
		log.Info("sources are read beside the ticks, because a program or a server stands behind their files", "collectors", names)
	}
	specs := r.enabled()
	e := &exporter{cfg: cfg, log: log, session: newSession(), clock: tick.NewClock(),
		sampled: make(chan struct{}), sent: make(chan struct{})}
	var err error
	if e.scraped, err = newScraped(e, r); err != nil {
		return nil, err
	}
	if e.ring, err = ring.New(int(cfg.RingMaxBytes)); err != nil {
		return nil, err
	}
	e.ring.Logger = log
	e.ring.Duration = cfg.RingDuration
	schema := &collectors.Schema{}
	e.bursts = burst.New(schema)
	e.began = &startWall{now: e.clock.Mono, wall: e.clock.Wall}
	start := counterStarts(env, specs, e.clock.Wall(0))
	openSpool(e, schema, start)
	if e.senders, err = newSenders(e, schema, start); err != nil {
		return nil, err
	}
	env.Self = append(e.selfMetrics(), e.scraped.selfMetrics()...)
	env.Event = func(ev collectors.Event) { e.events.Add(e.clock.Mono(), &ev) }
	e.loop, err = tick.New(tick.Config{
		Rate:    cfg.Rate,
		FloorHz: cfg.FloorHz,
		Protect: cfg.RateProtect,
		Specs:   specs,
		Env:     env,
		Schema:  schema,
		Sink:    sinks{e.ring, e.bursts},
		Timing:  e.bursts.Timing,
		Clock:   e.clock,
		Logger:  log,
	})
	if err != nil {
		return nil, err
	}
	h, err := expose.Handler(expose.Config{
		Start: start, StartWall: e.began.of,
		Latest: e.ring, Schema: schema, Bursts: e.bursts, Pprof: cfg.Pprof,
		Reader: func() expose.Reader { return e.ring.Reader() }, Session: e.session, Wall: e.clock.Wall,
		Events: &e.events,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("GET /api/v1/sources", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = writeSources(w, "json", r.sourceInfos(e.loop.Sources()))
	})
	e.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Ticktier-Session", e.session)
		mux.ServeHTTP(w, r)
	})
	return e, nil
}

// sinks hands a tick on to each in turn.
type sinks []tick.Sink

func (s sinks) Append(seq uint64, mono int64, read uint64, values []int64, present []uint64) {
	for _, to := range s {
		to.Append(seq, mono, read, values, present)
	}
}

// addLoop adds the tick loop, which is the first to stop.
func (e *exporter) addLoop(g *run.Group) {
	ctx, cancel := context.WithCancel(context.Background())
	g.Add(func() error {
		defer close(e.sampled)
		if err := e.loop.Run(ctx); err != nil {
			return fmt.Errorf("sample: %w", err)
		}
		return nil
	}, func(error) {
		cancel()
		<-e.sampled
	})
}

// addRing adds the goroutine that compresses frames; nobody waits for it.
func (e *exporter) addRing(g *run.Group) {
	ctx, cancel := context.WithCancel(context.Background())
	g.Add(func() error { return e.ring.Run(ctx) }, func(error) { cancel() })
}

// addSenders adds the senders. They stop when no more ticks come, and take their
// time for what is left.
func (e *exporter) addSenders(g *run.Group) {
	ctx, cancel := context.WithCancel(context.Background())
	g.Add(func() error {
		defer close(e.sent)
		errs := make(chan error)
		for _, s := range e.senders {
			go func() { errs <- s.Run(ctx) }()
		}
		var err error
		for range e.senders {
			err = errors.Join(err, <-errs)
		}
		<-ctx.Done() // there may be none
		e.reportUnsent()
		return err
	}, func(error) { cancel() })
}

// addServer adds the HTTP server. It answers until the senders are done, so that
// their last figures can be scraped.
func (e *exporter) addServer(g *run.Group, ln net.Listener) {
	requests, cancel := context.WithCancel(context.Background())
	srv := &http.Server{
		Handler:           e.handler,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(e.log.Handler(), slog.LevelDebug),
	}
	g.Add(func() error {
		e.log.Info("listening", "addr", ln.Addr().String())
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	}, func(error) {
		<-e.sent
		cancel() // ends streams
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			_ = srv.Close()
		}
	})
}
