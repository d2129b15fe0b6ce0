package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/burst"
	"github.com/ticktier/ticktier/exporter/config"
	"github.com/ticktier/ticktier/exporter/send"
	"github.com/ticktier/ticktier/exporter/tick"
)

// clockFloor is a wall time in ms before which no clock is right: the start of 2025,
// which was before the first release. A build's own date would be nearer, but a
// build machine with a clock that is ahead would then keep routers silent.
const clockFloor = 1_735_689_600_000

// newSenders makes a sender for each URL.
func newSenders(e *exporter, schema *collectors.Schema, start func(*collectors.Series) (int64, bool)) ([]*send.Sender, error) {
	labels, err := externalLabels(e.cfg)
	if err != nil {
		return nil, err
	}
	receivers, err := e.cfg.Receivers()
	if err != nil {
		return nil, err
	}
	names := receiverNames(e.cfg)
	d := newDelivered(e.ring, len(receivers))
	correct := e.corrections()
	var out []*send.Sender
	for i, cfg := range receivers {
		c, err := senderConfig(cfg)
		if err != nil {
			return nil, err
		}
		c.Name, c.ExternalLabels, c.Schema, c.Start = names[i], labels, schema, start
		c.Wall, c.Now, c.Steps, c.Synced, c.NotBefore = e.clock.Wall, e.clock.Mono, e.clock.Steps, tick.Synced, clockFloor
		c.Doubt = func() bool { return e.clock.SinceBoot(0) < freshBoot && !tick.Synced() }
		if cfg.ClockSource == "receiver" {
			c.Correct = func(lo, hi int64) { correct(i, lo, hi) }
		}
		c.Delivered = func(p send.Progress) { e.progress(d, i, p) }
		c.Edge = func() uint64 { return e.ring.Stats().LastSeq }
		if e.period > 0 {
			c.Period, c.Every = e.period, 0
		}
		c.Version, c.Session, c.Logger = thisBuild().version, e.session, e.log
		if cfg.RemoteWriteBursts {
			c.Extra = &burst.Writer{Recorder: e.bursts, Name: "remote write " + names[i], External: labels, Select: c.Select,
				Now: func() int64 { return e.clock.Wall(e.clock.Mono()) }, Start: e.began.of}
		}
		e.readFrom(c, i)
		s, err := send.New(*c)
		if err != nil {
			return nil, fmt.Errorf("--remote-write.url: %s: %w", names[i], err)
		}
		out = append(out, s)
	}
	return out, nil
}

// freshBoot is how long after boot a clock may yet have to be set.
const freshBoot = 10 * time.Minute

// corrections lets the receiver that answers first set the clock.
func (e *exporter) corrections() func(receiver int, lo, hi int64) {
	var by atomic.Int64
	by.Store(-1)
	return func(receiver int, lo, hi int64) {
		if by.CompareAndSwap(-1, int64(receiver)) || by.Load() == int64(receiver) {
			e.clock.Correct(lo, hi)
		}
	}
}

// senderConfig is what the configuration of one receiver says of its sender.
func senderConfig(cfg *config.Config) (*send.Config, error) {
	headers, err := cfg.Headers()
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	for _, h := range headers {
		header.Add(h.Name, h.Value)
	}
	selected, err := cfg.Selected()
	if err != nil {
		return nil, err
	}
	proxy, err := cfg.Proxy()
	if err != nil {
		return nil, err
	}
	every := uint64(0)
	if cfg.RemoteWriteRate > 0 {
		every = uint64(cfg.Rate / cfg.RemoteWriteRate)
	}
	return &send.Config{
		URL: cfg.RemoteWriteURL[0], Interval: cfg.RemoteWriteInterval, Timeout: cfg.RemoteWriteTimeout,
		Mode:            map[string]send.Mode{"2.0": send.Only2, "1.0": send.Only1}[cfg.RemoteWriteProtocol],
		ShutdownTimeout: cfg.ShutdownTimeout, StaleOnStop: cfg.RemoteWriteStaleOnStop,
		Order:        map[string]send.Order{"live": send.Live, "strict": send.Strict}[cfg.RemoteWriteOrder],
		BacklogShare: cfg.RemoteWriteBacklogShare, Period: time.Second / time.Duration(cfg.Rate),
		Every: every, Flat: cfg.RemoteWriteFlat, Select: selected,
		Header: header, Authorize: authorizer(cfg), Proxy: proxy,
		TLS: send.TLS{CAFile: cfg.RemoteWriteTLSCAFile, CertFile: cfg.RemoteWriteTLSCertFile, KeyFile: cfg.RemoteWriteTLSKeyFile,
			ServerName: cfg.RemoteWriteTLSServerName, Insecure: cfg.RemoteWriteTLSInsecure},
	}, nil
}

// externalLabels are the labels for all that is pushed.
func externalLabels(cfg *config.Config) ([]collectors.Label, error) {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	labels, err := cfg.LabelsOf(host)
	if err != nil {
		return nil, err
	}
	var out []collectors.Label
	for _, l := range labels {
		out = append(out, collectors.Label{Name: l.Name, Value: l.Value})
	}
	return out, nil
}

// authorizer adds the credentials of the configuration to a request. The files are
// read for each: they are small, a push is rare, and so a new token needs no
// restart.
func authorizer(cfg *config.Config) func(http.Header) error {
	read := func(file string) (string, error) {
		b, err := os.ReadFile(file)
		return strings.TrimSpace(string(b)), err
	}
	switch {
	case cfg.RemoteWriteTokenFile != "":
		return func(h http.Header) error {
			token, err := read(cfg.RemoteWriteTokenFile)
			if err != nil {
				return fmt.Errorf("read bearer token: %w", err)
			}
			h.Set("Authorization", "Bearer "+token)
			return nil
		}
	case cfg.RemoteWriteUsername != "":
		return func(h http.Header) error {
			password, err := read(cfg.RemoteWritePasswordFile)
			if err != nil {
				return fmt.Errorf("read password: %w", err)
			}
			r := http.Request{Header: h}
			r.SetBasicAuth(cfg.RemoteWriteUsername, password)
			return nil
		}
	}
	return nil
}

// reportUnsent logs what each sender leaves in the ring.
func (e *exporter) reportUnsent() {
	st := e.ring.Stats()
	if st.Ticks == 0 || e.spool != nil {
		return // a spool takes it, and tells
	}
	for _, s := range e.senders {
		if s.Cursor() > st.LastSeq {
			continue
		}
		e.logUnsent(s, &st)
	}
}
