package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/ticktier/ticktier/e2e/program"
)

const (
	// readyWithin leaves room for a store that replays two days of raw samples.
	readyWithin = 2 * time.Minute
	// stopExporterWithin lets the last ticks be pushed, stopAdapterWithin lets the
	// store be closed, on a slow disk.
	stopExporterWithin = 15 * time.Second
	stopAdapterWithin  = 60 * time.Second
)

type options struct {
	bin, data                     string
	adapterListen, exporterListen string
	rate                          int
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "folder that holds the two programs")
	flag.StringVar(&o.data, "data", "./data", "the adapter's data directory")
	flag.StringVar(&o.adapterListen, "adapter.listen", ":9748", "where the adapter listens")
	flag.StringVar(&o.exporterListen, "exporter.listen", ":9747", "where the exporter listens")
	flag.IntVar(&o.rate, "rate", 10, "ticks a second")
	flag.Parse()

	// Hang-up ends it too: closing the terminal must leave nothing running.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second Ctrl-C ends at once: the programs are told by the kernel.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "make run: %v\n", err)
		os.Exit(1)
	}
}

// run returns nil when it was told to stop and both programs stopped as they
// should.
func run(ctx context.Context, o options, out, log io.Writer) (err error) {
	var mu sync.Mutex
	adapter, err := program.Start(program.Config{
		Name: "the adapter",
		Path: filepath.Join(o.bin, "ticktier-adapter"),
		Args: []string{"run", "--listen=" + o.adapterListen, "--data-dir=" + o.data},
		Log:  &prefixer{name: "adapter ", w: log, mu: &mu},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, finish(adapter, stopAdapterWithin)) }()
	adapterAddr, err := ready(ctx, adapter)
	if err != nil {
		return stopped(ctx, err)
	}

	exporter, err := program.Start(program.Config{
		Name: "the exporter",
		Path: filepath.Join(o.bin, "ticktier-exporter"),
		Args: []string{
			"run",
			"--listen=" + o.exporterListen,
			"--rate=" + strconv.Itoa(o.rate),
			"--remote-write.url=http://" + adapterAddr + "/api/v1/write",
			// Every tick at once, so that an answer is no older than a tick. Over a
			// network the default of 5 s is kinder.
			"--remote-write.interval=100ms",
		},
		Log: &prefixer{name: "exporter", w: log, mu: &mu},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, finish(exporter, stopExporterWithin)) }()
	exporterAddr, err := ready(ctx, exporter)
	if err != nil {
		return stopped(ctx, err)
	}

	fmt.Fprintf(out, "\nticktier is running; Ctrl-C stops it.\n  page    http://%s/\n  metrics http://%s/metrics\n  data    %s\n\n",
		adapterAddr, exporterAddr, o.data)
	select {
	case <-ctx.Done():
		return nil
	case <-adapter.Exited():
		return ended(adapter)
	case <-exporter.Exited():
		return ended(exporter)
	}
}

// stopped turns an error that only says that the wait was interrupted into none.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func ended(p *program.Program) error {
	if err := p.ExitErr(); err != nil {
		return fmt.Errorf("%s stopped by itself: %w; its last log lines say why", p.Name(), err)
	}
	return fmt.Errorf("%s stopped by itself", p.Name())
}

// finish stops p if it still runs. That it had ended before is reported by
// whoever noticed.
func finish(p *program.Program, within time.Duration) error {
	select {
	case <-p.Exited():
		return nil
	default:
	}
	if err := p.Stop(within); err != nil {
		return fmt.Errorf("%s did not stop cleanly: %w", p.Name(), err)
	}
	return nil
}

// ready waits until p listens and its readiness answers 200, and returns where it
// listens.
func ready(ctx context.Context, p *program.Program) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	addr, err := p.Addr(ctx)
	if err != nil {
		return "", fmt.Errorf("%w; its last log lines say why", err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if probe(ctx, "http://"+addr+"/-/ready") {
			return addr, nil
		}
		select {
		case <-tick.C:
		case <-p.Exited():
			return "", ended(p)
		case <-ctx.Done():
			return "", fmt.Errorf("wait for %s to be ready: %w", p.Name(), ctx.Err())
		}
	}
}

func probe(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
