package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/config"
	"github.com/ticktier/ticktier/exporter/send"
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
	headers, err := e.cfg.Headers()
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	for _, h := range headers {
		header.Add(h.Name, h.Value)
	}
	selected, err := e.cfg.Selected()
	if err != nil {
		return nil, err
	}
	every := uint64(0)
	if e.cfg.RemoteWriteRate > 0 {
		every = uint64(e.cfg.Rate / e.cfg.RemoteWriteRate)
	}
	names := receiverNames(e.cfg)
	d := newDelivered(e.ring, len(e.cfg.RemoteWriteURL))
	mode := map[string]send.Mode{"2.0": send.Only2, "1.0": send.Only1}[e.cfg.RemoteWriteProtocol]
	order := map[string]send.Order{"live": send.Live, "strict": send.Strict}[e.cfg.RemoteWriteOrder]
	var out []*send.Sender
	for i, url := range e.cfg.RemoteWriteURL {
		c := send.Config{
			URL: url, Name: names[i], Interval: e.cfg.RemoteWriteInterval, Timeout: e.cfg.RemoteWriteTimeout, Mode: mode,
			ShutdownTimeout: e.cfg.ShutdownTimeout, StaleOnStop: e.cfg.RemoteWriteStaleOnStop,
			ExternalLabels: labels, Schema: schema,
			Wall: e.clock.Wall, Now: e.clock.Mono, Start: start,
			NotBefore: clockFloor,
			Delivered: func(p send.Progress) { e.progress(d, i, p) },
			Order:     order, BacklogShare: e.cfg.RemoteWriteBacklogShare,
			Edge: func() uint64 { return e.ring.Stats().LastSeq }, Period: time.Second / time.Duration(e.cfg.Rate),
			Every: every, Flat: e.cfg.RemoteWriteFlat, Select: selected,
			Version: thisBuild().version, Session: e.session,
			Header: header, Authorize: authorizer(e.cfg), Logger: e.log,
		}
		e.readFrom(&c, i)
		s, err := send.New(c)
		if err != nil {
			return nil, fmt.Errorf("--remote-write.url: %w", err)
		}
		out = append(out, s)
	}
	return out, nil
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
	if st.Ticks == 0 {
		return
	}
	for _, s := range e.senders {
		if s.Cursor() > st.LastSeq {
			continue
		}
		e.logUnsent(s, &st)
	}
}
