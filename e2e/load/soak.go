package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

const (
	// soakPoints is how often a soak looks at the programs.
	soakPoints = 60
	// soakScrape is the time between two scrapes, as Prometheus' default setup has it.
	soakScrape = 15 * time.Second
	// soakRing is small enough to be full, and to evict, well before the end.
	soakRing = "1MiB"
)

// point is what a soak saw of one program at one time.
type point struct {
	at                           time.Duration
	usage                        usage
	descriptors, threads, gorout int
}

// soaked is one program of a soak.
type soaked struct {
	name   string
	p      *program.Program
	c      *client.Client
	points []point
}

// soak runs an exporter with everything on for a long time: 10 Hz, a real adapter that
// it pushes to, a spool, a scraper and a reader of the stream. It prints what the
// programs hold over the time, and how much of it grew.
func soak(ctx context.Context, o options, out io.Writer) error {
	dir, err := os.MkdirTemp("", "ticktier-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ap, ac, err := startAdapter(ctx, o, filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	defer ap.Kill()
	ep, ec, err := start(ctx, program.Config{
		Name: "exporter", Path: filepath.Join(o.bin, "ticktier-exporter"),
		Args: []string{"run", "--listen=127.0.0.1:0", "--rate=10", "--ring.max-bytes=" + soakRing,
			"--spool.dir=" + filepath.Join(dir, "spool"), "--remote-write.url=" + ac.URL("/api/v1/write")},
	})
	if err != nil {
		return err
	}
	defer ep.Kill()
	programs := []*soaked{{name: "exporter", p: ep, c: ec}, {name: "adapter", p: ap, c: ac}}

	clients, stop := context.WithCancel(ctx)
	defer stop()
	var read counts
	g, clients := errgroup.WithContext(clients)
	g.Go(func() error { return scrape(clients, ec, &read) })
	g.Go(func() error { return follow(clients, ec, &read) })
	if err := watch(clients, o.soak, programs); err != nil {
		return fmt.Errorf("%w; the exporter's log:\n%s", err, ep.Log())
	}
	stop()
	if err := g.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(out, "soak        %s at 10 Hz, a ring of %s, a spool, pushes to the adapter: %d scrapes, %d ticks and %d gaps on the stream\n",
		o.soak, soakRing, read.scrapes, read.ticks, read.gaps)
	if err := tellSoak(ctx, out, ec, ac); err != nil {
		return err
	}
	for _, s := range programs {
		s.print(out)
		if err := s.p.Stop(60 * time.Second); err != nil {
			return err
		}
	}
	return nil
}

// watch looks at the programs until the time is over.
func watch(ctx context.Context, lasts time.Duration, programs []*soaked) error {
	began := time.Now()
	for i := range soakPoints + 1 {
		if err := sleep(ctx, time.Until(began.Add(lasts*time.Duration(i)/soakPoints))); err != nil {
			return err
		}
		for _, s := range programs {
			pt, err := s.look(ctx)
			if err != nil {
				return fmt.Errorf("%s after %s: %w", s.name, time.Since(began).Round(time.Second), err)
			}
			pt.at = time.Since(began)
			s.points = append(s.points, pt)
		}
	}
	return nil
}

func (s *soaked) look(ctx context.Context) (pt point, err error) {
	if pt.usage, err = usageOf(s.p.PID()); err != nil {
		return pt, err
	}
	proc := fmt.Sprintf("/proc/%d/", s.p.PID())
	for _, d := range []struct {
		name string
		to   *int
	}{{"fd", &pt.descriptors}, {"task", &pt.threads}} {
		entries, err := os.ReadDir(proc + d.name)
		if err != nil {
			return pt, err
		}
		*d.to = len(entries)
	}
	n, err := s.c.Metric(ctx, "go_goroutines")
	pt.gorout = int(n)
	return pt, err
}

// counts is what the clients of a soak got.
type counts struct{ scrapes, ticks, gaps int }

func scrape(ctx context.Context, c *client.Client, n *counts) error {
	header := http.Header{"Accept": {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"},
		"Accept-Encoding": {"gzip"}, "User-Agent": {"soak"}}
	for {
		resp, err := c.Do(ctx, http.MethodGet, "/metrics", header, nil)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("scrape: %w", err)
		case resp.Status != http.StatusOK:
			return fmt.Errorf("scrape: status %d", resp.Status)
		}
		n.scrapes++
		if sleep(ctx, soakScrape) != nil {
			return nil
		}
	}
}

// follow reads the stream for as long as the soak lasts.
func follow(ctx context.Context, c *client.Client, n *counts) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL("/api/v1/stream"), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("follow the stream: %w", err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 0, 64<<10)
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, cap(buf))
		}
		m, err := resp.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+m]
		for {
			line, rest, ok := bytes.Cut(buf, []byte("\n"))
			if !ok {
				break
			}
			switch {
			case bytes.HasPrefix(line, []byte("event: tick")):
				n.ticks++
			case bytes.HasPrefix(line, []byte("event: gap")):
				n.gaps++
			}
			buf = buf[:copy(buf, rest)]
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("follow the stream: %w", err)
		}
	}
}
