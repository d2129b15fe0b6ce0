package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

type options struct {
	bin       string
	prom      string
	duration  time.Duration
	senders   int
	series    int
	samples   int
	rates     []int
	exporters bool
	receivers bool
	devices   int
	soak      time.Duration

	realDevices int
	realTime    time.Duration
	days        string
	seedArgs    string
	paced       bool
	dir         string
}

func main() {
	o := options{rates: []int{10, 100, 1000}}
	flag.StringVar(&o.bin, "bin", "bin", "folder that holds the two programs")
	flag.StringVar(&o.prom, "prometheus", "", "real Prometheus to compare with; empty means the one that `make peers` built")
	flag.DurationVar(&o.duration, "duration", 20*time.Second, "how long each run lasts")
	flag.IntVar(&o.senders, "senders", 2, "senders that push at once")
	flag.IntVar(&o.series, "series", 500, "series of a sender")
	flag.IntVar(&o.samples, "samples", 50, "samples of a series in a push")
	flag.BoolVar(&o.exporters, "exporter", true, "run the exporter too")
	flag.BoolVar(&o.receivers, "receiver", true, "compare receivers")
	flag.IntVar(&o.devices, "fleet", 200, "devices of the fleet with 7 and with 90 days of history; 0 leaves it out")
	flag.DurationVar(&o.soak, "soak", 0, "run nothing but an exporter with everything on for so long, 1h for one, and print what it and its adapter hold over the time")
	flag.IntVar(&o.realDevices, "real", 200, "devices of the fleet with 500 series each at 1 Hz; 0 leaves it out")
	flag.DurationVar(&o.realTime, "real.time", 10*time.Minute, "how much of that fleet's time, in whole five minutes")
	flag.StringVar(&o.days, "fleet.days", "7,90", "days of history of the fleet, one run each")
	flag.BoolVar(&o.paced, "fleet.paced", false, "have the fleet push at its own pace, every 30 s, not as fast as it is taken")
	flag.StringVar(&o.dir, "fleet.dir", "", "data directory that was seeded before, to be used as it is")
	flag.StringVar(&o.seedArgs, "fleet.seed", "", "more arguments for the fleet's seed, such as --raw-hours=6")
	flag.Parse()
	if err := run(context.Background(), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	if o.soak > 0 {
		if err := soak(ctx, o, out); err != nil {
			return fmt.Errorf("soak: %w", err)
		}
		return nil
	}
	if o.exporters {
		for _, rate := range o.rates {
			if err := exporter(ctx, o, rate, out); err != nil {
				return fmt.Errorf("exporter at %d Hz: %w", rate, err)
			}
		}
	}
	for text := range strings.SplitSeq(o.days, ",") {
		if o.devices == 0 {
			break
		}
		days, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-fleet.days: %w", err)
		}
		if err := fleet(ctx, o, days, out); err != nil {
			return fmt.Errorf("fleet: %w", err)
		}
	}
	if o.realDevices > 0 {
		if err := realFleet(ctx, o, out); err != nil {
			return fmt.Errorf("real fleet: %w", err)
		}
	}
	if !o.receivers {
		return nil
	}
	for _, v := range []client.Version{client.V1, client.V2} {
		if err := receiver(ctx, o, v, "adapter", startAdapter, out); err != nil {
			return fmt.Errorf("adapter: %w", err)
		}
		if err := receiver(ctx, o, v, "prometheus", startPrometheus, out); err != nil {
			return fmt.Errorf("prometheus: %w", err)
		}
	}
	return nil
}

// exporter runs an exporter of this machine that pushes to a receiver which throws
// everything away, and is scraped once in 15 s.
func exporter(ctx context.Context, o options, rate int, out io.Writer) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: http.HandlerFunc(discard), ReadHeaderTimeout: 10 * time.Second}
	go srv.Serve(ln) //nolint:errcheck // it ends with Close
	defer srv.Close()

	p, c, err := start(ctx, program.Config{
		Name: "exporter", Path: filepath.Join(o.bin, "ticktier-exporter"),
		Args: []string{"run", "--listen=127.0.0.1:0", fmt.Sprint("--rate=", rate), "--remote-write.url=http://" + ln.Addr().String() + "/"},
	})
	if err != nil {
		return err
	}
	defer p.Kill()
	if err := sleep(ctx, 2*time.Second); err != nil { // the start is not what is measured
		return err
	}
	before, err := usageOf(p.PID())
	if err != nil {
		return err
	}
	if err := sleep(ctx, o.duration); err != nil {
		return err
	}
	after, err := usageOf(p.PID())
	if err != nil {
		return err
	}
	missed, err := c.Metric(ctx, "ticktier_exporter_ticks_missed_total")
	if err != nil {
		return err
	}
	series, err := c.Get(ctx, "/metrics")
	if err != nil {
		return err
	}
	n := len(regexp.MustCompile(`(?m)^[a-z]`).FindAll(series, -1))
	fmt.Fprintf(out, "exporter    %4d Hz  %5d series  CPU %5.2f %% of a core  RSS %5.1f MiB  missed %v of %.0f ticks\n",
		rate, n, 100*(after.cpu-before.cpu).Seconds()/o.duration.Seconds(), mib(after.peak), missed, float64(rate)*(o.duration.Seconds()+2))
	return p.Stop(30 * time.Second)
}

// discard answers as a receiver of remote write 2.0 that has stored everything.
func discard(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "1")
	w.WriteHeader(http.StatusNoContent)
}

// receiver pushes to a receiver as fast as it answers.
func receiver(ctx context.Context, o options, v client.Version, name string, begin starter, out io.Writer) error {
	dir, err := os.MkdirTemp("", "ticktier-load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, c, err := begin(ctx, o, dir)
	if errors.Is(err, errNoPrometheus) {
		fmt.Fprintf(out, "%-11s RW %s   not built; `make peers` builds it\n", name, v)
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Kill()
	before, err := usageOf(p.PID())
	if err != nil {
		return err
	}
	began := time.Now()
	sent, err := pushFor(ctx, c, o, v)
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := usageOf(p.PID())
	if err != nil {
		return err
	}
	cpu := after.cpu - before.cpu
	fmt.Fprintf(out, "%-11s RW %s   %d senders × %d series × %d samples  %6.2f M samples/s  %5.2f CPU s a million  %5.2f M samples a CPU s  RSS %6.1f MiB\n",
		name, v, o.senders, o.series, o.samples, float64(sent)/took.Seconds()/1e6,
		cpu.Seconds()/float64(sent)*1e6, float64(sent)/cpu.Seconds()/1e6, mib(after.peak))
	return p.Stop(60 * time.Second)
}

type starter func(ctx context.Context, o options, dir string) (*program.Program, *client.Client, error)

func startAdapter(ctx context.Context, o options, dir string) (*program.Program, *client.Client, error) {
	return start(ctx, program.Config{
		Name: "adapter", Path: filepath.Join(o.bin, "ticktier-adapter"),
		Args: []string{"run", "--listen=127.0.0.1:0", "--data-dir=" + dir},
	})
}

var errNoPrometheus = errors.New("no Prometheus")

func startPrometheus(ctx context.Context, o options, dir string) (*program.Program, *client.Client, error) {
	path := o.prom
	if path == "" {
		out, err := exec.CommandContext(ctx, "sh", "e2e/peers/build.sh").Output()
		if err != nil {
			return nil, nil, errNoPrometheus
		}
		path = filepath.Join(strings.TrimSpace(string(out)), "prometheus")
	}
	config := filepath.Join(dir, "prometheus.yml")
	text := "storage:\n  tsdb:\n    out_of_order_time_window: 24h\n" // as the adapter has it
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, nil, err
	}
	return start(ctx, program.Config{
		Name: "prometheus", Path: path, Listening: regexp.MustCompile(`msg="Listening on".* address=([0-9.:]+)`),
		Args: []string{
			"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
			"--web.listen-address=127.0.0.1:0", "--web.enable-remote-write-receiver",
		},
	})
}

// start starts a program and waits until it is ready.
func start(ctx context.Context, c program.Config) (*program.Program, *client.Client, error) {
	p, err := program.Start(c)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	addr, err := p.Addr(ctx)
	if err != nil {
		p.Kill()
		return nil, nil, fmt.Errorf("%w\n%s", err, p.Log())
	}
	cl := client.New("http://" + addr)
	for {
		if _, err = cl.Get(ctx, "/-/ready"); err == nil {
			return p, cl, nil
		}
		if sleep(ctx, 50*time.Millisecond) != nil {
			p.Kill()
			return nil, nil, fmt.Errorf("%s: not ready: %w", c.Name, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
