package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/oklog/run"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/config"
	"github.com/ticktier/ticktier/exporter/ring"
	"github.com/ticktier/ticktier/exporter/scrape"
	"github.com/ticktier/ticktier/exporter/send"
)

// scraped is what other exporters on the device serve, on its way to the receivers:
// the same parts that ticks go through, in a stream of its own. A nil one does
// nothing.
type scraped struct {
	stream  *exporter // its ring, its spool and its senders
	scraper *scrape.Scraper
}

// scrapeStream is the label that tells metrics of the two streams apart, and the
// directory in that of the spool.
const scrapeStream = "scrape"

// targets are those of --scrape.url.
func (r *runFlags) targets() ([]scrape.Target, error) {
	var out []scrape.Target
	for i, s := range r.config.ScrapeURL {
		t, err := scrape.ParseTarget(s)
		if err != nil {
			return nil, fmt.Errorf("--scrape.url: number %d: %w", i+1, err)
		}
		out = append(out, t)
	}
	if len(out) > scrape.MaxTargets {
		return nil, fmt.Errorf("--scrape.url: %d targets, at most %d can be", len(out), scrape.MaxTargets)
	}
	return out, nil
}

// newScraped makes the stream of what is scraped, where anything is. A quarter of the
// spool is for it then.
func newScraped(e *exporter, r *runFlags) (*scraped, error) {
	targets, err := r.targets()
	if err != nil || len(targets) == 0 {
		return nil, err
	}
	ticks, cfg := *e.cfg, *e.cfg
	cfg.RingMaxBytes, cfg.RingDuration = cfg.ScrapeRingMaxBytes, 0
	cfg.ClockSource = "system" // the senders of ticks correct it
	if cfg.SpoolDir != "" {
		cfg.SpoolDir = filepath.Join(cfg.SpoolDir, scrapeStream)
		cfg.SpoolMaxBytes /= 4
		ticks.SpoolMaxBytes -= cfg.SpoolMaxBytes
	}
	e.cfg = &ticks
	s := &exporter{cfg: &cfg, log: e.log.With("stream", scrapeStream), session: e.session, clock: e.clock,
		sampled: make(chan struct{}), sent: make(chan struct{}), period: period(targets)}
	if s.ring, err = ring.New(int(cfg.RingMaxBytes)); err != nil {
		return nil, fmt.Errorf("--scrape.ring-max-bytes: %w", err)
	}
	s.ring.Logger, s.ring.Flag = s.log, "--scrape.ring-max-bytes"
	schema := &collectors.Schema{}
	openSpool(s, schema, nil)
	if s.senders, err = newSenders(s, schema, nil); err != nil {
		return nil, err
	}
	scraper, err := scrape.New(scrape.Config{
		Targets: targets, MaxSeries: cfg.ScrapeMaxSeries, MaxBytes: int64(cfg.ScrapeMaxBytes), Schema: schema,
		Append: s.ring.Append, Seal: s.ring.Seal, Delivered: func() uint64 { return firstUnsent(s.senders) },
		Now: e.clock.Mono, Wall: e.clock.Wall, Instance: deviceName(&cfg), Version: thisBuild().version, Logger: e.log,
	})
	if err != nil {
		return nil, err
	}
	return &scraped{stream: s, scraper: scraper}, nil
}

// period is the time between two rows on average.
func period(targets []scrape.Target) time.Duration {
	perSecond := 0.0
	for i := range targets {
		perSecond += 1 / targets[i].Interval.Seconds()
	}
	return time.Duration(float64(time.Second) / perSecond)
}

// firstUnsent is the first tick that some sender has not delivered.
func firstUnsent(senders []*send.Sender) uint64 {
	first := ^uint64(0)
	for _, s := range senders {
		first = min(first, s.Cursor())
	}
	return first
}

// deviceName is the instance label of ticks.
func deviceName(cfg *config.Config) string {
	labels, _ := externalLabels(cfg) // checked before
	for _, l := range labels {
		if l.Name == "instance" {
			return l.Value
		}
	}
	return ""
}

// addScraper adds the scraper, which stops when the ticks do.
func (s *scraped) addScraper(g *run.Group) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.Add(func() error {
		defer close(s.stream.sampled)
		err := s.scraper.Run(ctx)
		<-ctx.Done()
		return err
	}, func(error) {
		cancel()
		<-s.stream.sampled
	})
}

// addSenders adds what rows go through.
func (s *scraped) addSenders(g *run.Group) {
	if s == nil {
		return
	}
	s.stream.addRing(g)
	s.stream.addSenders(g)
}

// addSpool adds the spool of rows.
func (s *scraped) addSpool(g *run.Group) {
	if s != nil {
		s.stream.addSpool(g)
	}
}

// targetNames are the targets without what may be secret.
func (s *scraped) targetNames() []string {
	if s == nil {
		return nil
	}
	return s.scraper.Names()
}

// selfMetrics are the figures of scraping. Those that ticks have too get a label.
func (s *scraped) selfMetrics() []collectors.SelfMetric {
	if s == nil {
		return nil
	}
	out := s.scraper.SelfMetrics()
	for _, m := range s.stream.streamMetrics() {
		m.Labels = append(m.Labels[:len(m.Labels):len(m.Labels)], collectors.Label{Name: "stream", Value: scrapeStream})
		out = append(out, m)
	}
	return out
}
