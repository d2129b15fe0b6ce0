package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

// server is a program that answers the queries.
type server struct {
	name    string
	devices int
	days    int // that it holds
	config  program.Config
	ready   string
	dir     string // its data
	// fill gives it the samples once, where it cannot open a seeded directory.
	fill func(ctx context.Context, o *options, c *client.Client) error
}

func (o *options) servers() []*server {
	peer := filepath.Join(o.dir, "peer", "raw")
	listening := regexp.MustCompile(`msg="Listening on".* address=([0-9.:]+)`)
	victoria := filepath.Join(o.dir, "victoria")
	own := func(name, dir string, days int) *server {
		dir = filepath.Join(o.dir, dir)
		return &server{name: name, devices: o.devices, days: days, ready: "/-/ready", dir: dir, config: program.Config{
			Path: filepath.Join(o.bin, "ticktier-adapter"),
			Args: []string{"run", "--listen=127.0.0.1:0", "--no-self.store", "--data-dir=" + dir, "--retention.raw=0", "--retention.5m=0", "--retention.1h=0"},
		}}
	}
	list := []*server{own("ticktier", "fleet", o.days)}
	if o.longDays > 0 {
		list = append(list, own(fmt.Sprintf("ticktier, %d days held", o.longDays), "long", o.longDays))
	}
	return append(list,
		&server{name: "Prometheus", devices: o.peerDevices, days: o.days, ready: "/-/ready", dir: peer, config: program.Config{
			Path: filepath.Join(o.peers, "prometheus"), Listening: listening,
			Args: []string{"--config.file=/dev/null", "--storage.tsdb.path=" + peer, "--storage.tsdb.retention.time=10y", "--web.listen-address=127.0.0.1:0"},
		}},
		&server{name: "VictoriaMetrics", devices: o.peerDevices, days: o.days, ready: "/health", dir: victoria, fill: fillVictoria, config: program.Config{
			Path: filepath.Join(o.peers, "victoria-metrics"), Listening: regexp.MustCompile(`started server at http://([0-9.:]+)/`),
			Args: []string{"-storageDataPath=" + victoria, "-httpListenAddr=127.0.0.1:0", "-search.latencyOffset=0s", "-retentionPeriod=10y", "-search.disableCache"},
		}},
	)
}

// prometheus is the peer that the other one is filled from.
func (o *options) prometheus() *server {
	list := o.servers()
	return list[len(list)-2]
}

// start starts the program and waits until it is ready.
func (s *server) start(ctx context.Context) (*program.Program, *client.Client, error) {
	c := s.config
	c.Name = s.name
	p, err := program.Start(c)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	addr, err := p.Addr(ctx)
	if err != nil {
		p.Kill()
		return nil, nil, fmt.Errorf("%w\n%s", err, p.Log())
	}
	cl := client.New("http://" + addr)
	for {
		if r, err := cl.Do(ctx, http.MethodGet, s.ready, nil, nil); err == nil && r.Status == http.StatusOK {
			return p, cl, nil
		}
		select {
		case <-ctx.Done():
			p.Kill()
			return nil, nil, fmt.Errorf("not ready: %w\n%s", ctx.Err(), p.Log())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// fillVictoria gives VictoriaMetrics what Prometheus holds, a day at a time.
func fillVictoria(ctx context.Context, o *options, c *client.Client) error {
	mark := filepath.Join(o.dir, "victoria.full")
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	prom := o.prometheus()
	p, from, err := prom.start(ctx)
	if err != nil {
		return err
	}
	defer p.Kill()
	const day = int64(86_400_000)
	end := o.end.UnixMilli()
	for at := end - int64(o.days)*day + day; at <= end; at += day {
		r, err := from.Query(ctx, `{job="node"}[1d]`, at)
		if err != nil {
			return fmt.Errorf("read what Prometheus holds: %w", err)
		}
		resp, err := c.Push(ctx, client.V1, r.Series)
		if err != nil {
			return err
		}
		if resp.Status/100 != 2 {
			return fmt.Errorf("fill VictoriaMetrics: status %d: %.200s", resp.Status, resp.Body)
		}
	}
	if _, err := c.Get(ctx, "/internal/force_flush"); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o644)
}
