package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ticktier/ticktier/adapter/seed"
)

// seedCmd makes up a fleet's history.
type seedCmd struct {
	DataDir  string    `name:"data-dir" help:"Directory to fill; it must hold no samples (default ${default})." default:"./data" placeholder:"DIR"`
	Devices  int       `help:"How many devices, of nine series each (default ${default})." default:"200" placeholder:"N"`
	Days     int       `help:"How many days (default ${default})." default:"90" placeholder:"N"`
	RawHours int       `name:"raw-hours" help:"How many hours at the end are kept raw too (default ${default})." default:"48" placeholder:"N"`
	FineDays int       `name:"5m-days" env:"TICKTIER_ADAPTER_5M_DAYS" help:"How many days at the end are kept in 5-minute buckets too (default ${default})." default:"14" placeholder:"N"`
	Seed     uint64    `help:"The same seed and end give the same samples (default ${default})." default:"1" placeholder:"N"`
	Like     string    `help:"File with a scrape in the text format, whose series get a history too." placeholder:"FILE"`
	LikeAs   string    `name:"like-as" help:"Instance label of those series (default ${default})." default:"machine" placeholder:"NAME"`
	End      time.Time `help:"Time before which the newest sample is, as 2026-11-30T00:00:00Z (default: now). Samples end at the last even hour (UTC) before it, where blocks of two hours end." placeholder:"TIME"`
}

func (c *seedCmd) run(ctx context.Context, out, errout io.Writer) error {
	for _, f := range []struct {
		flag     string
		v, least int
	}{{"--devices", c.Devices, 1}, {"--days", c.Days, 1}, {"--raw-hours", c.RawHours, 0}, {"--5m-days", c.FineDays, 0}} {
		if f.v < f.least {
			return fmt.Errorf("%s: %d is less than %d", f.flag, f.v, f.least)
		}
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if c.End.IsZero() {
		c.End = time.Now()
	}
	var like []byte
	if c.Like != "" {
		var err error
		if like, err = os.ReadFile(c.Like); err != nil {
			return fmt.Errorf("--like: %w", err)
		}
	}
	start := time.Now()
	fine, coarse := shapes(0, 0)
	logger := slog.New(slog.NewTextHandler(errout, &slog.HandlerOptions{Level: slog.LevelWarn}))
	fine.Logger, coarse.Logger = logger, logger
	res, err := seed.Run(ctx, seed.Config{
		Dir: c.DataDir, Devices: c.Devices, Days: c.Days, RawHours: c.RawHours, FineDays: c.FineDays,
		Seed: c.Seed, End: c.End, Fine: fine, Coarse: coarse, Logger: logger, Progress: progress(errout),
		Like: like, LikeInstance: c.LikeAs,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d series of %d devices over %d days in %s: %d raw samples, %d five-minute buckets, %d hours in %s\n",
		res.Series, c.Devices, c.Days, c.DataDir, res.RawSamples, res.FineBuckets, res.Hours, time.Since(start).Round(time.Millisecond))
	return nil
}

// progress draws a bar on a terminal, and says every tenth elsewhere.
func progress(w io.Writer) func(float64) {
	f, ok := w.(*os.File)
	info, err := os.Stdin.Stat()
	if ok {
		info, err = f.Stat()
	}
	terminal := ok && err == nil && info.Mode()&os.ModeCharDevice != 0
	shown := -1
	return func(done float64) {
		const width = 50
		n := int(done * width)
		switch {
		case n == shown:
			return
		case terminal:
			fmt.Fprintf(w, "\r[%s%s] %3.0f %%", strings.Repeat("#", n), strings.Repeat(".", width-n), done*100)
			if n == width {
				fmt.Fprintln(w)
			}
		case n%5 == 0:
			fmt.Fprintf(w, "%.0f %%\n", done*100)
		}
		shown = n
	}
}
