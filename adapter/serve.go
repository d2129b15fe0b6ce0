package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	rungroup "github.com/oklog/run"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"

	"github.com/ticktier/ticktier/adapter/access"
	"github.com/ticktier/ticktier/adapter/backfill"
	"github.com/ticktier/ticktier/adapter/config"
	"github.com/ticktier/ticktier/adapter/fleet"
	"github.com/ticktier/ticktier/adapter/fold"
	"github.com/ticktier/ticktier/adapter/listen"
	"github.com/ticktier/ticktier/adapter/live"
	"github.com/ticktier/ticktier/adapter/page"
	"github.com/ticktier/ticktier/adapter/query"
	"github.com/ticktier/ticktier/adapter/receive"
	"github.com/ticktier/ticktier/adapter/ruler"
	"github.com/ticktier/ticktier/adapter/self"
	"github.com/ticktier/ticktier/adapter/store"
	"github.com/ticktier/ticktier/adapter/tier"
)

// The tiers' shapes, in milliseconds: a window, and the ranges of a new and of a
// merged block.
const (
	minute       = int64(time.Minute / time.Millisecond)
	fineWindow   = 5 * minute
	fineBlock    = 2 * 60 * minute
	fineMerged   = 24 * 60 * minute
	coarseWindow = 60 * minute
	coarseBlock  = 24 * 60 * minute
	coarseMerged = 5 * coarseBlock
)

// shapes are the two tiers' shapes, where they are kept so long; 0 is for ever.
func shapes(keepFine, keepCoarse time.Duration) (fine, coarse store.BucketsOptions) {
	return store.BucketsOptions{Resolution: fineWindow, BlockRange: fineBlock, MergeRange: fineMerged, LargeRange: large(fineMerged, keepFine)},
		store.BucketsOptions{Resolution: coarseWindow, BlockRange: coarseBlock, MergeRange: coarseMerged, LargeRange: large(coarseMerged, keepCoarse)}
}

// large is the range of a tier's largest blocks: six merged ones, or as many as make a
// tenth of what is kept, for a block goes as a whole.
func large(merged int64, keep time.Duration) int64 {
	n := int64(6)
	if keep > 0 {
		n = min(n, keep.Milliseconds()/10/merged)
	}
	if n < 2 {
		return 0
	}
	return n * merged
}

// serve runs the adapter until a signal, an error or the end of ctx.
func serve(ctx context.Context, cfg *config.Config, logger *slog.Logger) (err error) {
	// The port first: it is the cheapest thing that can be wrong.
	ln, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer func() {
		if e := ln.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}()
	cfg.Listen = ln.Addr().String() // the same again, if the store has to be reopened
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), self.Disk(cfg.DataDir))

	door, err := newAccess(cfg, logger, reg)
	if err != nil {
		return err
	}
	a, err := open(cfg, door, logger, reg)
	if isFull(err) {
		return waitRoom(ctx, ln, store.NewRoom(cfg.DataDir), err, logger)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()

	mux, err := a.routes(cfg, ln.Addr(), logger, reg)
	if err != nil {
		return err
	}
	conns, err := listen.New(ln, listen.Config{
		MaxConnections: cfg.MaxConnections, MaxAge: time.Duration(cfg.ConnectionAge), TLS: door.TLS() != nil, Logger: logger, Registerer: reg,
	})
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler:   listen.Handler(door.Handler(mux, writePath, "/-/healthy", "/-/ready"), time.Now),
		TLSConfig: door.TLS(), ConnContext: listen.ConnContext,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 5 * time.Minute, IdleTimeout: 5 * time.Minute,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	var g rungroup.Group
	addContext(&g, ctx, func(ctx context.Context) error { return waitSignal(ctx, logger) })
	addContext(&g, ctx, func(ctx context.Context) error { return watchStore(ctx, a.raw, a.room, cfg.DataDir, logger) })
	addContext(&g, ctx, func(ctx context.Context) error { return a.keepSmall(ctx, logger) })
	addContext(&g, ctx, a.driver.Run)
	addContext(&g, ctx, a.fleet.Run)
	addContext(&g, ctx, a.ruler.Run)
	addContext(&g, ctx, a.live.Run)
	if cfg.SelfStore {
		own, err := newSelf(cfg, ln.Addr(), a.raw, logger, reg)
		if err != nil {
			return err
		}
		addContext(&g, ctx, own.Run)
	}
	addContext(&g, ctx, a.reloadOnHangup)
	addContext(&g, ctx, door.Run)
	g.Add(func() error {
		logger.Info("listening", "addr", ln.Addr().String(), "version", version, "data_dir", cfg.DataDir)
		a.ready.Store(true)
		if err := serveOn(srv, conns); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	}, func(error) {
		a.ready.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(cfg.ShutdownTimeout))
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			logger.Warn("requests under way cut off at the stop", "err", err)
			srv.Close() //nolint:errcheck // nothing is left to do about it
		}
	})
	if err := g.Run(); err != nil && !errors.Is(err, errStopped) {
		return err
	}
	logger.Info("stopped")
	return nil
}

// addContext adds an actor that runs until its context is done.
func addContext(g *rungroup.Group, ctx context.Context, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	g.Add(func() error { return f(ctx) }, func(error) { cancel() })
}

// waitSignal returns when the adapter is told to stop; a second signal ends the
// process at once.
func waitSignal(ctx context.Context, logger *slog.Logger) error {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(c)
	select {
	case <-ctx.Done():
	case s := <-c:
		logger.Info("stopping", "signal", s.String())
	}
	return errStopped
}

// adapter is what main has opened.
type adapter struct {
	unlock       func() error // gives the data directory back
	room         *store.Room
	raw          *store.Raw
	fine, coarse *store.Buckets
	driver       *tier.Driver
	receive      *receive.Handler
	access       *access.Access
	fleet        *fleet.Fleet
	live         *live.Hub
	ruler        *ruler.Ruler // made by routes, as the tiers are joined for queries there
	ready        atomic.Bool
}

// open opens the stores and joins the packages on the way from a push to a bucket.
func open(cfg *config.Config, door *access.Access, logger *slog.Logger, reg prometheus.Registerer) (a *adapter, err error) {
	a = &adapter{access: door}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if a.unlock, err = store.LockDir(cfg.DataDir); err != nil {
		return a, err
	}
	full, err := a.makeRoom(cfg.DataDir)
	if err != nil {
		return a, err
	}
	if a.raw, err = store.OpenRaw(filepath.Join(cfg.DataDir, "raw"), store.RawOptions{
		Retention: time.Duration(cfg.RetentionRaw), OutOfOrderWindow: time.Duration(cfg.OutOfOrderWindow),
		Logger: logger.With("part", "raw"), Registerer: reg,
	}); err != nil {
		return a, err
	}
	if full {
		a.raw.Refuse(store.ErrNoRoom)
	}
	counter := func(metric string) bool { return a.receive.IsCounter(metric) }
	fine, coarse := shapes(time.Duration(cfg.Retention5m), time.Duration(cfg.Retention1h))
	for _, t := range []struct {
		name string
		o    store.BucketsOptions
		to   **store.Buckets
	}{{"5m", fine, &a.fine}, {"1h", coarse, &a.coarse}} {
		t.o.Counter, t.o.Lacks, t.o.Logger, t.o.Registerer = counter, a.lacks, logger.With("part", t.name), reg
		if *t.to, err = store.OpenBuckets(filepath.Join(cfg.DataDir, t.name), t.o); err != nil {
			return a, err
		}
	}
	if a.fleet, err = fleet.New(fleet.Config{
		Path: filepath.Join(cfg.DataDir, "devices.json"), DownAfter: time.Duration(cfg.DevicesDownAfter), Clones: fleet.Clones(cfg.DevicesClones),
		Logger: logger, Registerer: reg,
	}); err != nil {
		return a, err
	}
	a.live = live.New(live.Config{Source: liveSource(a.raw), Now: time.Now, Logger: logger.With("part", "live")})
	pushed := func(p receive.Push) {
		a.fleet.Pushed(fleet.Push(p))
		a.live.Pushed(p.Device)
		if a.ruler != nil {
			a.ruler.Late(p.Oldest, p.Newest)
		}
	}
	a.receive = receive.New(receive.Config{
		Store: a.raw, Door: entrance(door), Gate: gate{a.fleet}, Observer: receive.ObserverFunc(pushed), InOrder: cfg.OutOfOrderWindow == 0,
		MaxBehind: behind(cfg), MaxAhead: time.Duration(cfg.DeviceAhead), MaxLabels: cfg.DeviceLabels,
		Quota: receive.Quota{
			DeviceSamples: float64(cfg.DeviceSamples), Samples: float64(cfg.AllSamples),
			DeviceSeries: cfg.DeviceSeries, Series: cfg.AllSeries, Held: a.raw.NumSeries,
		},
		Logger: logger.With("part", "receive"), Registerer: reg,
	})
	overrides, err := cfg.Overrides()
	if err != nil {
		return a, err
	}
	var keeps []store.Keep
	for _, o := range overrides {
		keeps = append(keeps, store.Keep{Matchers: o.Matchers, Age: time.Duration(o.Age).Milliseconds()})
	}
	a.driver, err = tier.New(tier.Config{
		Raw: a.raw, Fine: a.fine, Coarse: a.coarse,
		RetentionFine: time.Duration(cfg.Retention5m), RetentionCoarse: time.Duration(cfg.Retention1h),
		Hold: a.raw.Refuses, Keeps: keeps, MaxBytes: int64(cfg.RetentionSize), RawNeeds: cfg.RawNeeds(),
		Interval: time.Duration(cfg.FoldInterval), Lag: time.Duration(cfg.FoldLag), OutOfOrderWindow: time.Duration(cfg.OutOfOrderWindow),
		Journal: filepath.Join(cfg.DataDir, "late.journal"), Now: time.Now, Logger: logger, Registerer: reg,
	})
	return a, err
}

// gate asks the fleet who may write.
type gate struct{ fleet *fleet.Fleet }

// Admit implements receive.Gate.
func (g gate) Admit(c receive.Claim) receive.Verdict {
	return receive.Verdict(g.fleet.Admit(fleet.Claim(c)))
}

// makeRoom sets room aside on the disk, or gives it up where the disk is full, which it
// reports.
func (a *adapter) makeRoom(dir string) (full bool, err error) {
	a.room = store.NewRoom(dir)
	enough, err := a.room.Enough()
	if err != nil {
		return false, err
	}
	if enough {
		return false, a.room.Keep()
	}
	if err := a.room.GiveUp(); err != nil {
		return true, err
	}
	if enough, err = a.room.Enough(); err == nil && !enough {
		err = store.ErrNoRoom
	}
	return true, err
}

// behind is how old a sample may be: as old as what is kept longest. Where that is
// for ever, it is ten years, which no clock that was never set comes near.
func behind(cfg *config.Config) time.Duration {
	const ever = 10 * 365 * 24 * time.Hour
	if cfg.DeviceBehind > 0 {
		return time.Duration(cfg.DeviceBehind)
	}
	longest := cfg.Longest()
	if longest == 0 {
		return ever
	}
	return min(longest, ever)
}

// lacks is what a bucket need not keep of a metric whose senders say what it is: a
// counter's sum, a gauge's resets. Of any other everything is kept.
func (a *adapter) lacks(metric string) fold.Parts {
	switch a.receive.TypeOf(metric) {
	case model.MetricTypeCounter:
		return fold.PartSum
	case model.MetricTypeGauge:
		return fold.PartCounter
	}
	return 0
}

// close closes what is open, the stores last.
func (a *adapter) close() error {
	var errs []error
	if a.coarse != nil {
		errs = append(errs, a.coarse.Close())
	}
	if a.fine != nil {
		errs = append(errs, a.fine.Close())
	}
	if a.raw != nil {
		errs = append(errs, a.raw.Close())
	}
	if a.unlock != nil {
		errs = append(errs, a.unlock())
	}
	return errors.Join(errs...)
}

// routes is the adapter's HTTP surface.
func (a *adapter) routes(cfg *config.Config, addr net.Addr, logger *slog.Logger, reg *prometheus.Registry) (http.Handler, error) {
	api, err := query.New(query.Config{
		Raw: a.raw, Tiers: []query.Tier{a.fine, a.coarse}, Metadata: a.metadata(cfg.SelfStore, reg), Rules: ruling{a}, Alertmanagers: ruling{a},
		LookbackDelta: time.Duration(cfg.QueryLookback), Timeout: time.Duration(cfg.QueryTimeout),
		MaxSamples: cfg.QueryMaxSamples, MaxConcurrency: cfg.QueryConcurrency,
		MaxSeries: cfg.QueryMaxSeries, MaxResponseBytes: cfg.QueryMaxBytes, LogSlowerThan: time.Duration(cfg.QueryLogSlower),
		Clients: query.ClientLimits{
			By: query.ClientBy(cfg.ClientBy), MaxConcurrency: cfg.ClientConcurrency, MaxSamples: cfg.ClientSamples,
			MaxSeries: cfg.ClientSeries, MaxTime: time.Duration(cfg.ClientTime), MaxResponseBytes: cfg.ClientBytes,
		},
		Build: buildInfo(), Flags: cfg.Flags(), Runtime: runtimeInfo(cfg, time.Now()),
		TSDB: a.raw, Logger: logger.With("part", "query"), Registerer: reg, Gatherer: reg,
	})
	if err != nil {
		return nil, err
	}
	if a.ruler, err = newRuler(cfg, addr, api, a, logger, reg); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	admin := func(pattern string, h http.Handler) { mux.Handle(pattern, a.access.Admin(h)) }
	mux.Handle("/api/v1/", api.Handler())
	admin("/api/v1/admin/", api.Handler())
	admin("POST /-/reload", http.HandlerFunc(a.serveReload))
	admin("POST "+snapshotPath, a.serveSnapshot(cfg.DataDir, logger))
	admin("PUT "+snapshotPath, a.serveSnapshot(cfg.DataDir, logger))
	admin("POST "+backfill.Path, http.HandlerFunc(a.serveBackfill))
	admin("GET "+backfill.Path, http.HandlerFunc(a.serveHorizon))
	mux.HandleFunc("/api/v1/rules/backfill", a.ruler.ServeBackfill)
	admin("POST /api/v1/rules/backfill", http.HandlerFunc(a.ruler.ServeBackfill))
	admin("DELETE /api/v1/devices/{id...}", a.fleet.Handler())
	mux.Handle("/federate", api.Handler())
	mux.Handle(writePath, a.receive)
	mux.HandleFunc("GET /api/v1/devices/{id}/cardinality", a.serveCardinality(cfg.DeviceSeries))
	mux.Handle("GET "+live.Path, a.live)
	mux.Handle("/api/v1/devices", a.fleet.Handler())
	mux.Handle("/api/v1/devices/", a.fleet.Handler())
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true, Registry: reg}))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ticktier-adapter is healthy.") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if !a.ready.Load() {
			http.Error(w, "ticktier-adapter is starting or stopping.", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ticktier-adapter is ready.")
	})
	if cfg.Pprof {
		admin("/debug/pprof/", http.HandlerFunc(pprof.Index))
		admin("/debug/pprof/profile", http.HandlerFunc(pprof.Profile))
		admin("/debug/pprof/trace", http.HandlerFunc(pprof.Trace))
	}
	mux.Handle("/", page.Handler(a.fleet.Names))
	return mux, nil
}
