package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/run"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/config"
	"github.com/ticktier/ticktier/exporter/ring"
	"github.com/ticktier/ticktier/exporter/send"
	"github.com/ticktier/ticktier/exporter/spool"
)

// spoolVerb is the command that looks at a spool.
const spoolVerb = "spool"

// openSpool opens the spool, if there is to be one. A device whose disk is broken
// goes on with its memory.
func openSpool(e *exporter, schema *collectors.Schema, start func(*collectors.Series) (int64, bool)) {
	cfg := e.cfg
	if cfg.SpoolDir == "" || len(cfg.RemoteWriteURL) == 0 {
		return
	}
	names := receiverNames(cfg)
	var err error
	e.spool, err = spool.Open(spool.Config{
		Dir: cfg.SpoolDir, MaxBytes: int64(cfg.SpoolMaxBytes), MaxAge: cfg.SpoolMaxAge,
		Session: e.session, Receivers: names, Schema: schema, Start: start,
		Clock: e.clock.Table, Now: func() int64 { return e.clock.Wall(e.clock.Mono()) }, NotBefore: clockFloor,
		MaxPending: int(max(64<<10, min(512<<10, cfg.RingMaxBytes/8))),
		Sealed: func(seq uint64, buf []byte) (spool.Frame, bool) {
			ev, ok := e.ring.Sealed(seq, buf)
			return spoolFrame(ev), ok
		},
		Spilling: e.ring.Spill, Logger: e.log,
		Boot: bootID(cfg.PathProcfs), BootTime: int64(e.clock.SinceBoot(0)),
	})
	if err != nil {
		e.log.Error("spool cannot be used, ticks are kept in memory alone", "err", err)
		return
	}
	// What the spool cannot take it counts itself.
	e.ring.Evicted = func(ev ring.Eviction) bool {
		if ev.Undelivered > 0 {
			e.spool.Offer(spoolFrame(ev))
		}
		return true
	}
}

// bootID is an id that every boot of the machine has to itself; empty is unknown.
func bootID(procfs string) string {
	b, err := os.ReadFile(filepath.Join(procfs, "sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b[:min(len(b), 64)]))
}

// spoolFrame is an evicted frame in the spool's words. It shares the bytes.
func spoolFrame(e ring.Eviction) spool.Frame {
	return spool.Frame{Bytes: e.Frame, Before: e.Before, Ticks: e.Span.Ticks, FirstSeq: e.Span.FirstSeq, LastSeq: e.Span.LastSeq,
		FirstTime: e.Span.FirstTime, LastTime: e.Span.LastTime}
}

// receiverNames are the names of the receivers: their URLs without what may be
// secret, told apart by a number where that makes them alike.
func receiverNames(cfg *config.Config) []string {
	var out []string
	times := map[string]int{}
	for _, s := range cfg.RemoteWriteURL {
		name := s
		if u, err := url.Parse(s); err == nil {
			name = send.Redact(u)
		}
		if times[name]++; times[name] > 1 {
			name = fmt.Sprintf("%s#%d", name, times[name])
		}
		out = append(out, name)
	}
	return out
}

// readFrom gives a sender's configuration its ticks: those of the ring or, with a
// spool, those of both, and what former sessions left.
func (e *exporter) readFrom(c *send.Config, receiver int) {
	if e.spool == nil {
		c.Ticks, c.Behind = e.ring.Reader(), e.ring.Reader()
		return
	}
	c.Ticks, c.Behind = e.spool.Reader(e.ring.Reader()), e.spool.Reader(e.ring.Reader())
	c.Earlier = e.spool.Earlier(receiver)
}

// progress notes what a receiver has, for the ring and for the spool.
func (e *exporter) progress(d *delivered, receiver int, p send.Progress) {
	if e.spool != nil {
		if p.Earlier && !e.spool.Owes() {
			e.spool.Passed(receiver, e.spool.Epoch(), p.Seq)
			e.spool.Ahead(receiver, p.Ahead)
		} else {
			e.spool.Ahead(receiver, append([][2]uint64{{0, p.Seq}}, p.Ahead...))
		}
	}
	d.set(receiver, p)
}

// addSpool adds the goroutine that writes the spool. It stops when the senders are
// done, and writes what they leave.
func (e *exporter) addSpool(g *run.Group) {
	if e.spool == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.Add(func() error {
		_ = e.spool.Run(ctx) // it returns nil
		e.ring.Seal()
		if err := e.spool.Close(); err != nil {
			e.log.Error("spool was not closed as it should be", "err", err)
		}
		e.reportSpooled()
		return nil
	}, func(error) {
		<-e.sent
		cancel()
	})
}

// runSpool is the command that looks at a spool: inspect or verify, and a directory.
func runSpool(args []string, out, errout io.Writer) int {
	usage := func(w io.Writer) {
		fmt.Fprint(w, "Usage: ticktier-exporter spool inspect|verify DIR\n\n"+
			"Tell what a directory of --spool.dir holds, or read all of it and tell what is damaged.\n"+
			"Neither changes anything, and an exporter may be using it.\n")
	}
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		usage(out)
		return 0
	}
	if len(args) != 2 || args[0] != "inspect" && args[0] != "verify" {
		usage(errout)
		return exitUsage
	}
	look := spool.Inspect
	if args[0] == "verify" {
		look = spool.Verify
	}
	err := look(args[1], out)
	if err == nil {
		return 0
	}
	if !errors.Is(err, spool.ErrDamaged) {
		err = fmt.Errorf("%s %s: %w", args[0], args[1], err)
	}
	fmt.Fprintln(errout, "ticktier-exporter: spool:", err)
	return exitFailed
}

// reportSpooled logs what the next start finds for each receiver. What is lost the spool
// has said itself.
func (e *exporter) reportSpooled() {
	for i, s := range e.senders {
		if ticks, from, to := e.spool.Left(i); ticks > 0 {
			e.log.Info("ticks are left for the next start, in the spool", "url", s.Name(), "ticks", ticks,
				"from", time.UnixMilli(from).UTC(), "to", time.UnixMilli(to).UTC())
		}
	}
}

// logUnsent says what is lost of what a sender leaves where there is no spool.
func (e *exporter) logUnsent(s *send.Sender, st *ring.Stats) {
	from := max(s.Cursor(), st.FirstSeq)
	slots, first := st.LastSeq-from+1, st.FirstTime
	if all := st.LastSeq - st.FirstSeq; all > 0 {
		first += int64(float64(from-st.FirstSeq) / float64(all) * float64(st.LastTime-st.FirstTime))
	}
	s.GiveUp(min(slots, st.Ticks))
	e.log.Warn("ticks are lost with this stop: they are not delivered, and there is no spool", "url", s.Name(), "slots", slots,
		"from", time.UnixMilli(e.clock.Wall(first)).UTC(), "to", time.UnixMilli(e.clock.Wall(st.LastTime)).UTC())
}
