package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

// Every device of the real fleet pushes a value of each series a second, five seconds at
// a time, as exporters do.
const (
	realSeries = 500
	realPush   = 5
)

// realFleet has a fleet push as fast as it is taken, to an adapter and then to a real
// Prometheus, the same samples, and compares what they cost.
func realFleet(ctx context.Context, o options, out io.Writer) error {
	fmt.Fprintf(out, "real fleet  %d devices × %d series at 1 Hz, %s of it\n", o.realDevices, realSeries, o.realTime)
	for _, r := range []struct {
		name  string
		begin starter
	}{{"adapter", startFolding}, {"prometheus", startPrometheus}} {
		err := realInto(ctx, o, r.name, r.begin, out)
		if errors.Is(err, errNoPrometheus) {
			fmt.Fprintf(out, "  %-10s not built; `make peers` builds it\n", r.name)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// startFolding starts an adapter that folds once, at its start: the fleet's time goes
// faster than the clock, so a window would be folded while its samples still come.
func startFolding(ctx context.Context, o options, dir string) (*program.Program, *client.Client, error) {
	return start(ctx, program.Config{
		Name: "adapter", Path: filepath.Join(o.bin, "ticktier-adapter"),
		Args: []string{"run", "--listen=127.0.0.1:0", "--data-dir=" + dir, "--fold.interval=24h", "--no-self.store"},
	})
}

func realInto(ctx context.Context, o options, name string, begin starter, out io.Writer) error {
	dir, err := os.MkdirTemp("", "ticktier-load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, c, err := begin(ctx, o, dir)
	if err != nil {
		return err
	}
	defer p.Kill()
	before, err := usageOf(p.PID())
	if err != nil {
		return err
	}
	began := time.Now()
	sent, err := pushReal(ctx, c, o, bar(out, "  "+name))
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := usageOf(p.PID())
	if err != nil {
		return err
	}
	if err := p.Stop(2 * time.Minute); err != nil {
		return err
	}
	raw, err := size(filepath.Join(dir, map[string]string{"adapter": "raw", "prometheus": "data"}[name]))
	if err != nil {
		return err
	}
	cpu := (after.cpu - before.cpu).Seconds()
	fmt.Fprintf(out, "  %-10s %.1f M samples in %s  %.2f CPU s a million  RSS %.0f MiB (highest %.0f)  %.2f bytes a raw sample (log and chunks)",
		name, float64(sent)/1e6, took.Round(time.Second), cpu/float64(sent)*1e6, mib(after.rss), mib(after.peak), float64(raw)/float64(sent))
	fmt.Fprintln(out)
	if name != "adapter" {
		return nil
	}
	return foldAgain(ctx, o, dir, cpu, out)
}

// foldAgain starts an adapter on what was pushed, which folds all of it, once.
func foldAgain(ctx context.Context, o options, dir string, ingest float64, out io.Writer) error {
	p, c, err := startFolding(ctx, o, dir)
	if err != nil {
		return err
	}
	defer p.Kill()
	fold, windows, err := folded(ctx, c, o)
	if err != nil {
		return err
	}
	u, err := settled(ctx, p.PID())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  fold       %.2f CPU s for %.0f windows: %.2f s for 5 minutes, %.1f %% of what ingest took  RSS after a start %.0f MiB\n",
		fold, windows, fold/windows, 100*fold/ingest, mib(u.rss))
	return p.Stop(2 * time.Minute)
}

// folded waits until the closed windows are folded.
func folded(ctx context.Context, c *client.Client, o options) (cpu, windows float64, err error) {
	want := float64(o.realTime / (5 * time.Minute))
	for {
		if windows, err = c.Metric(ctx, "ticktier_adapter_fold_windows_total"); err != nil {
			return 0, 0, err
		}
		pending, err := c.Metric(ctx, "ticktier_adapter_fold_pending_windows")
		if err != nil {
			return 0, 0, err
		}
		if windows >= want && pending == 0 {
			cpu, err = c.Metric(ctx, "ticktier_adapter_fold_cpu_seconds_total")
			return cpu, windows, err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return 0, 0, err
		}
	}
}

// pushReal pushes the fleet's time, which ends now, from four devices at once.
func pushReal(ctx context.Context, c *client.Client, o options, progress func(float64)) (sent int64, err error) {
	// The end is the end of a window, that all of it is folded.
	end := time.Now().Truncate(5 * time.Minute)
	from := end.Add(-o.realTime).UnixMilli()
	devices := make([]*realDevice, o.realDevices)
	for d := range devices {
		devices[d] = newRealDevice(d)
	}
	for at := from; at < end.UnixMilli(); at += realPush * 1000 {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(4)
		for _, d := range devices {
			g.Go(func() error {
				resp, err := c.Push(ctx, client.V2, d.next(at))
				if err != nil {
					return err
				}
				if resp.Status/100 != 2 {
					return fmt.Errorf("push: status %d: %.200s", resp.Status, resp.Body)
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return sent, err
		}
		sent += int64(o.realDevices) * realSeries * realPush
		progress(float64(at+realPush*1000-from) / float64(end.UnixMilli()-from))
	}
	return sent, nil
}

// realDevice makes a device's samples: half of its series do not move, as interface
// counters of idle ports, a quarter are counters, a quarter gauges.
type realDevice struct {
	series []client.Series
	values []float64
	state  uint64
}

func newRealDevice(d int) *realDevice {
	r := &realDevice{values: make([]float64, realSeries), state: uint64(d)*2654435761 + 1}
	for i := range realSeries {
		name := "node_network_receive_errs_total"
		switch i % 4 {
		case 2:
			name = "node_network_receive_bytes_total"
		case 3:
			name = "node_hwmon_temp_celsius"
		}
		r.values[i] = float64(r.random() % 1_000_000)
		r.series = append(r.series, client.Series{
			Labels: map[string]string{
				"__name__": name, "job": "node", "instance": fmt.Sprintf("router-%05d", d), "device": fmt.Sprintf("port%d", i),
			},
			Samples: make([]client.Sample, realPush),
		})
	}
	return r
}

func (r *realDevice) random() uint64 {
	r.state ^= r.state << 13
	r.state ^= r.state >> 7
	r.state ^= r.state << 17
	return r.state
}

// next are the samples of the seconds from a time on. The slice is good until the next
// call.
func (r *realDevice) next(at int64) []client.Series {
	for k := range int64(realPush) {
		for i := range r.series {
			switch i % 4 {
			case 2:
				r.values[i] += float64(r.random() % 200_000)
			case 3:
				r.values[i] = float64(40_000+r.random()%1000) / 1000
			}
			r.series[i].Samples[k] = client.Sample{T: at + k*1000, V: r.values[i]}
		}
	}
	return r.series
}

// bar draws progress on a terminal and says every quarter elsewhere.
func bar(out io.Writer, what string) func(float64) {
	shown := -1
	f, ok := out.(*os.File)
	info, err := os.Stdout.Stat()
	terminal := ok && f == os.Stdout && err == nil && info.Mode()&os.ModeCharDevice != 0
	return func(done float64) {
		n := int(done * 100)
		switch {
		case terminal && n != shown:
			fmt.Fprintf(os.Stderr, "\r%s %3d %%", what, n)
			if n >= 100 {
				fmt.Fprint(os.Stderr, "\r\033[K")
			}
		case !terminal && n/25 != shown/25:
			fmt.Fprintf(os.Stderr, "%s %d %%\n", what, n)
		}
		shown = n
	}
}
