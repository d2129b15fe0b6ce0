package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/storage"

	"github.com/ticktier/ticktier/adapter/backfill"
	"github.com/ticktier/ticktier/adapter/config"
	"github.com/ticktier/ticktier/adapter/store"
	"github.com/ticktier/ticktier/adapter/tier"
)

// backfillCmd moves old samples into an adapter.
type backfillCmd struct {
	From    []string  `arg:"" help:"OpenMetrics files with timestamps, captured bodies of remote-write requests (snappy), or one Prometheus data directory, which is only read." placeholder:"PATH"`
	URL     string    `help:"Running adapter to fill." xor:"to" placeholder:"URL"`
	HTTP    httpFlags `embed:""`
	DataDir string    `name:"data-dir" help:"Data directory to fill, on which no adapter runs." xor:"to" placeholder:"DIR"`

	Raw      config.Duration `name:"retention.raw" help:"With --data-dir: as the adapter has it (default ${default})." default:"48h" placeholder:"TIME"`
	Fine     config.Duration `name:"retention.5m" env:"TICKTIER_ADAPTER_RETENTION_5M" help:"The same (default ${default})." default:"14d" placeholder:"TIME"`
	Coarse   config.Duration `name:"retention.1h" env:"TICKTIER_ADAPTER_RETENTION_1H" help:"The same (default ${default})." default:"90d" placeholder:"TIME"`
	OutOrder config.Duration `name:"out-of-order-window" help:"The same (default ${default})." default:"24h" placeholder:"TIME"`

	Rate  float64 `help:"Samples a second at most; 0 for as many as go (default ${default})." default:"200000" placeholder:"N"`
	Batch int     `help:"Samples handed on at a time, about (default ${default})." default:"500000" placeholder:"N"`
	Temp  string  `name:"temp-dir" help:"Directory for samples on their way; it may come to hold as much as is filled in (default: the system's)." placeholder:"DIR"`
}

func (c *backfillCmd) run(ctx context.Context, out, errout io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	switch {
	case c.URL == "" && c.DataDir == "":
		return errors.New("say where to: --url of a running adapter, or --data-dir where none runs")
	case c.Batch < 1 || c.Batch > maxBackfillSamples/4:
		return fmt.Errorf("--batch: %d is not between 1 and %d", c.Batch, maxBackfillSamples/4)
	case c.Rate < 0:
		return fmt.Errorf("--rate: %g is less than 0", c.Rate)
	}
	src, histograms, err := c.source(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	client, err := c.HTTP.client()
	if err != nil {
		return err
	}
	var sink backfill.Sink = &backfill.Remote{URL: c.URL, Client: client, Wait: 5 * time.Minute}
	if c.DataDir != "" {
		local, err := openLocal(ctx, c, errout)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, local.close(ctx)) }()
		sink = local
	}
	start := time.Now()
	res, err := backfill.Run(ctx, backfill.Config{Batch: c.Batch, Rate: c.Rate, Progress: progress(errout)}, src, sink)
	res.Histograms += histograms
	fmt.Fprintf(out, "%s stored raw, %s folded into %s and %s, in %s\n", counted(res.Stored, "sample"), counted(res.Samples, "sample"),
		counted(int64(res.Fine), "five-minute bucket"), counted(int64(res.Coarse), "hour"), time.Since(start).Round(time.Millisecond))
	return errors.Join(err, leftOut(&res, out))
}

// counted is a number with its thing.
func counted(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// leftOut says which samples are missing now and what can be done; any are an error.
func leftOut(res *backfill.Result, out io.Writer) error {
	missing := int64(0)
	for _, left := range []struct {
		n    int64
		what string
	}{
		{res.Refused, "refused, the first because: " + res.Why + "\nMend what that names and fill in the same again."},
		{res.Expired, "left out, older than everything that is kept: a longer --retention.1h of the adapter would keep them."},
		{res.Recent, "left out, of windows that are not in blocks yet: fill in the same again in two hours."},
		{res.Histograms, "left out, native histograms, which cannot be filled in."},
	} {
		if left.n > 0 {
			fmt.Fprintf(out, "%s %s\n", counted(left.n, "sample"), left.what)
			missing += left.n
		}
	}
	if missing > 0 {
		return fmt.Errorf("%s missing in the adapter; the rest was filled in", counted(missing, "sample"))
	}
	return nil
}

// source opens what is to be filled in.
func (c *backfillCmd) source(ctx context.Context) (src *store.Source, histograms int64, err error) {
	if info, err := os.Stat(c.From[0]); err == nil && info.IsDir() {
		if len(c.From) > 1 {
			return nil, 0, errors.New("one data directory at a time")
		}
		src, err := store.OpenSource(c.From[0], c.Temp)
		return src, 0, err
	}
	if src, err = store.NewSource(c.Temp); err != nil {
		return nil, 0, err
	}
	for _, path := range c.From {
		n, h, err := readInto(ctx, path, src)
		if err == nil && n+h == 0 {
			err = backfill.ErrNothing
		}
		if err != nil {
			return nil, 0, errors.Join(fmt.Errorf("%s: %w", path, err), src.Close())
		}
		histograms += h
	}
	return src, histograms, nil
}

func readInto(ctx context.Context, path string, to storage.AppendableV2) (samples, histograms int64, err error) {
	b, err := backfill.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	if backfill.LooksLikeText(b) {
		samples, err = backfill.ReadOpenMetrics(ctx, b, to)
		return samples, 0, err
	}
	return backfill.ReadRemoteWrite(ctx, b, to)
}

// local fills a directory on which no adapter runs.
type local struct {
	a   *adapter
	dir string
}

func openLocal(ctx context.Context, c *backfillCmd, errout io.Writer) (*local, error) {
	cfg := &config.Config{
		Listen: ":0", DataDir: c.DataDir, RetentionRaw: c.Raw, Retention5m: c.Fine, Retention1h: c.Coarse, OutOfOrderWindow: c.OutOrder,
		FoldInterval: config.Duration(time.Minute),
	}
	logger := slog.New(slog.NewTextHandler(errout, &slog.HandlerOptions{Level: slog.LevelWarn}))
	a, err := open(cfg, nil, logger, prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	l := &local{a: a, dir: c.DataDir}
	if err := a.driver.Cycle(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return l, nil
}

func (l *local) Horizon(_ context.Context, newest int64) (int64, error) {
	return l.a.driver.Horizon(newest), nil
}

// Push implements backfill.Sink.
func (l *local) Push(ctx context.Context, list []backfill.Series) (p backfill.Pushed, err error) {
	app := l.a.raw.AppenderV2(ctx)
	for _, s := range list {
		var ref storage.SeriesRef
		for i, t := range s.T {
			ref, err = app.Append(ref, s.Labels, 0, t, s.V[i], nil, nil, storage.AOptions{})
			switch {
			case err == nil:
				p.Stored++
			case errors.Is(err, storage.ErrDuplicateSampleForTimestamp), errors.Is(err, storage.ErrOutOfOrderSample),
				errors.Is(err, storage.ErrTooOldSample), errors.Is(err, storage.ErrOutOfBounds):
				if p.Refused++; p.Why == "" {
					p.Why = fmt.Sprintf("%s at %d: %v", s.Labels, t, err)
				}
			default:
				return backfill.Pushed{}, errors.Join(fmt.Errorf("store %s at %d: %w", s.Labels, t, err), app.Rollback())
			}
		}
	}
	if err := app.Commit(); err != nil {
		return backfill.Pushed{}, err
	}
	return p, nil
}

// Fold implements backfill.Sink.
func (l *local) Fold(ctx context.Context, list []backfill.Series) (backfill.Folded, error) {
	res, err := l.a.driver.Backfill(ctx, olds(list))
	return backfill.Folded(res), err
}

// close folds what was stored raw, and merges blocks.
func (l *local) close(ctx context.Context) error {
	err := l.a.driver.Cycle(ctx)
	return errors.Join(err, l.a.driver.Close(), l.a.close())
}

func olds(list []backfill.Series) []tier.Old {
	out := make([]tier.Old, 0, len(list))
	for _, s := range list {
		out = append(out, tier.Old(s))
	}
	return out
}

// Bounds of a request with old samples.
const (
	maxBackfillBody    = 64 << 20
	maxBackfillSamples = 8_000_000
)

// serveBackfill takes old samples.
func (a *adapter) serveBackfill(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBackfillBody))
	if err != nil {
		answerError(w, http.StatusRequestEntityTooLarge, err)
		return
	}
	list, err := backfill.Decode(body)
	if err == nil {
		err = inOrder(list)
	}
	if err != nil {
		answerError(w, http.StatusBadRequest, err)
		return
	}
	if a.raw.Refuses() {
		w.Header().Set("Retry-After", "5")
		answerError(w, http.StatusServiceUnavailable, a.raw.Cause())
		return
	}
	res, err := a.driver.Backfill(r.Context(), olds(list))
	if err != nil {
		answerError(w, http.StatusInternalServerError, err)
		return
	}
	answerJSON(w, res)
}

func inOrder(list []backfill.Series) error {
	n := 0
	for _, s := range list {
		if !slices.IsSorted(s.T) {
			return fmt.Errorf("%s: samples are not in the order of time", s.Labels)
		}
		if n += len(s.T); n > maxBackfillSamples {
			return fmt.Errorf("more than %d samples", maxBackfillSamples)
		}
	}
	return nil
}

// serveHorizon says from when on samples are to be pushed.
func (a *adapter) serveHorizon(w http.ResponseWriter, r *http.Request) {
	newest, err := strconv.ParseInt(r.FormValue("newest"), 10, 64)
	if err != nil {
		answerError(w, http.StatusBadRequest, fmt.Errorf("newest: %w", err))
		return
	}
	answerJSON(w, map[string]int64{"horizon": a.driver.Horizon(newest)})
}
