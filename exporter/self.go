package main

import (
	"crypto/rand"
	"encoding/hex"
	"math"
	"runtime"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/config"
	"github.com/ticktier/ticktier/exporter/ring"
)

// newSession is an id that no other run of the exporter has.
func newSession() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// selfMetrics is what the exporter reports of itself, beside its tick loop.
func (e *exporter) selfMetrics() []collectors.SelfMetric {
	b := thisBuild()
	out := []collectors.SelfMetric{
		info("build_info", "The build of the exporter.",
			collectors.Label{Name: "version", Value: b.version},
			collectors.Label{Name: "revision", Value: b.revision},
			collectors.Label{Name: "goversion", Value: b.goVersion}),
		info("session_info", "This run of the exporter; the id is new at each start.",
			collectors.Label{Name: "session", Value: e.session}),
	}
	out = append(out, collectors.SelfMetric{
		Metric: collectors.Metric{Name: "go_goroutines", Type: collectors.Gauge, Help: "Number of goroutines that currently exist."},
		Read:   func() (int64, bool) { return int64(runtime.NumGoroutine()), true },
	})
	out = append(out, collectors.SelfMetric{
		Metric: collectors.Metric{Name: "ticktier_exporter_burst_series_left_out", Type: collectors.Gauge,
			Help: "Series of which /metrics has no histogram of ticks, for there are too many."},
		Read: func() (int64, bool) { return int64(e.bursts.Overflow()), true },
	})
	return append(out, e.streamMetrics()...)
}

// streamMetrics is what the exporter reports of ticks on their way to the receivers.
func (e *exporter) streamMetrics() []collectors.SelfMetric {
	var out []collectors.SelfMetric
	gauge, counter := collectors.Gauge, collectors.Counter
	for _, m := range []struct {
		name, help, unit string
		typ              collectors.Type
		read             func(*ring.Stats) uint64
	}{
		{"ring_bytes", "Memory that ticks take: more than they may only where that cannot hold the newest.", "bytes", gauge, func(s *ring.Stats) uint64 { return uint64(s.Bytes) }},
		{"ring_max_bytes", "Memory that ticks may take.", "bytes", gauge, func(s *ring.Stats) uint64 { return uint64(s.Capacity) }},
		{"ring_frames", "Frames held.", "", gauge, func(s *ring.Stats) uint64 { return uint64(s.Frames) }},
		{"ring_ticks", "Ticks held.", "", gauge, func(s *ring.Stats) uint64 { return s.Ticks }},
		{"ring_slots", "Series that a tick has room for.", "", gauge, func(s *ring.Stats) uint64 { return uint64(s.Slots) }},
		{"ring_ticks_evicted_total", "Ticks that had to make room for newer ones.", "", counter, func(s *ring.Stats) uint64 { return s.EvictedTicks }},
		{"ring_ticks_evicted_undelivered_total", "Of these, ticks that not every receiver had and no spool took: they are lost.", "", counter, func(s *ring.Stats) uint64 { return s.EvictedUndelivered }},
		{"ring_ticks_refused_total", "Ticks that were out of order or too large.", "", counter, func(s *ring.Stats) uint64 { return s.Refused }},
	} {
		out = append(out, collectors.SelfMetric{
			Metric: collectors.Metric{Name: "ticktier_exporter_" + m.name, Help: m.help, Unit: m.unit, Type: m.typ},
			Read:   func() (int64, bool) { s := e.ring.Stats(); return int64(m.read(&s)), true },
		})
	}
	out = append(out, collectors.SelfMetric{
		Metric: collectors.Metric{Name: "ticktier_exporter_ring_span_seconds", Type: gauge, Unit: "seconds", Kind: collectors.Signed, Div: 1e9,
			Help: "Time between the oldest and the newest tick held."},
		Read: func() (int64, bool) { s := e.ring.Stats(); return s.LastTime - s.FirstTime, true },
	})
	for _, s := range e.senders {
		out = append(out, s.SelfMetrics()...)
	}
	if e.spool != nil {
		out = append(out, e.spool.SelfMetrics()...)
	}
	return out
}

func info(name, help string, labels ...collectors.Label) collectors.SelfMetric {
	return collectors.SelfMetric{
		Metric: collectors.Metric{Name: "ticktier_exporter_" + name, Help: help, Type: collectors.Gauge},
		Labels: labels,
		Read:   func() (int64, bool) { return 1, true },
	}
}

// logConfig logs the effective configuration, without what may be secret in it.
func (e *exporter) logConfig(specs []collectors.Spec, limit int64) {
	var names, urls, labels []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	for _, s := range e.senders {
		urls = append(urls, s.Name())
	}
	external, _ := externalLabels(e.cfg) // checked before
	for _, l := range external {
		labels = append(labels, l.Name+"="+l.Value)
	}
	memory := "none"
	if limit != math.MaxInt64 {
		memory = config.Bytes(limit).String()
	}
	b, cfg := thisBuild(), e.cfg
	e.log.Info("configuration", "version", b.version, "revision", b.revision, "session", e.session,
		"rate", cfg.Rate, "procfs", cfg.PathProcfs, "sysfs", cfg.PathSysfs, "rootfs", cfg.PathRootfs,
		"ring_max_bytes", cfg.RingMaxBytes.String(), "memory_limit", memory, "collectors", names,
		"remote_write", urls, "remote_write_interval", cfg.RemoteWriteInterval,
		"remote_write_protocol", cfg.RemoteWriteProtocol, "external_labels", labels,
		"spool", cfg.SpoolDir, "scrape", e.scraped.targetNames())
}
