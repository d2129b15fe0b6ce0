package send

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// moody is a receiver that does whatever it likes until it is told to be good. It
// keeps what was accepted, and how often without the sender learning of it.
type moody struct {
	t      *testing.T
	rnd    *rand.Rand
	sees2  bool   // understands 2.0
	strict bool   // refuses a request now and then for good
	poison string // refuses what holds this, always

	mu       sync.Mutex
	good     bool
	stored   map[string]map[int64]*copies
	requests int
}

// copies counts one sample at the receiver.
type copies struct {
	bits       uint64
	n, unheard int // accepted, and of those with the reply lost
}

func (m *moody) answer(_ int, _ *http.Request, p Protocol, samples int) answer {
	m.requests++
	if p == V2 && !m.sees2 {
		return status([]int{204, 200, 415}[m.rnd.IntN(3)])
	}
	if m.good {
		return answer{code: 204, store: true}
	}
	switch m.rnd.IntN(14) {
	case 0:
		return status(500 + m.rnd.IntN(5))
	case 1:
		return status(429, "Retry-After", strconv.Itoa(m.rnd.IntN(20)))
	case 2:
		return answer{err: errors.New("connection reset by peer")}
	case 3: // accepted, and the reply is lost
		return answer{err: errors.New("EOF"), store: true}
	case 4:
		return answer{hang: true, store: m.rnd.IntN(2) == 0}
	case 5:
		return status(301+m.rnd.IntN(2), "Location", "/")
	case 6:
		if samples > 2000 {
			return status(413)
		}
	case 7:
		if m.strict {
			return answer{code: 400, header: http.Header{headerExemplars: {"0"}}, bare: true}
		}
	case 8: // the first samples are written, the rest is refused
		if m.strict && p == V2 {
			return answer{code: 400, header: http.Header{headerSamples: {strconv.Itoa(m.rnd.IntN(samples + 1))}}}
		}
	}
	return answer{code: 200 + m.rnd.IntN(6), store: true}
}

// RoundTrip stores by the answer and hands it on.
func (m *moody) RoundTrip(req *http.Request) (*http.Response, error) {
	var a answer
	var total int
	var p Protocol
	rc := receiver{script: func(n int, req *http.Request, q Protocol, samples int) answer {
		m.mu.Lock()
		defer m.mu.Unlock()
		p = q
		a, total = m.answer(n, req, p, samples), samples
		kept := a
		kept.store = true // so that rc.stored has it
		return kept
	}}
	resp, err := rc.RoundTrip(req)
	rc.check(m.t)
	w := rc.stored
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := range w {
		if m.poison != "" && strings.Contains(k, m.poison) && (p == V1 || m.sees2) {
			return &http.Response{StatusCode: 400, Header: http.Header{headerSamples: {"0"}}, Body: http.NoBody, Request: req}, nil
		}
	}
	take := 0
	switch {
	case a.store:
		take = total
	case a.code == 400:
		take, _ = strconv.Atoi(a.header.Get(headerSamples))
	}
	m.keep(w, take, err != nil)
	return resp, err
}

// keep stores the first n samples of a request.
func (m *moody) keep(w written, n int, unheard bool) {
	for k, ss := range w {
		for _, s := range ss {
			if n == 0 {
				return
			}
			n--
			if m.stored[k] == nil {
				m.stored[k] = map[int64]*copies{}
			}
			c := m.stored[k][s.Ms]
			if c == nil {
				c = &copies{bits: s.Bits}
				m.stored[k][s.Ms] = c
			}
			if c.bits != s.Bits {
				m.t.Errorf("%s at %d is %x and %x", k, s.Ms, c.bits, s.Bits)
			}
			c.n++
			if unheard {
				c.unheard++
			}
		}
	}
}

// TestModel runs senders against receivers that do whatever they like, over a ring
// that evicts. In the end what was sampled is accepted or counted, and nothing is
// accepted twice unless the reply to the first was lost.
func TestModel(t *testing.T) {
	first := seed(t)
	for i := range uint64(40) {
		synctest.Test(t, func(t *testing.T) { model(t, first+i) })
	}
}

func model(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	r := newRun(seed, 1+rnd.IntN(120), 600)
	for i := range r.ticks {
		for w := range r.ticks[i].Present {
			r.ticks[i].Present[w] &= rnd.Uint64() | rnd.Uint64() | rnd.Uint64() | rnd.Uint64()
		}
	}
	in := &ring{capacity: 50 + rnd.IntN(400), readSeqs: map[uint64]bool{}}
	m := &moody{t: t, rnd: rnd, sees2: rnd.IntN(3) > 0, strict: rnd.IntN(2) == 0, stored: map[string]map[int64]*copies{}}
	if rnd.IntN(3) == 0 {
		m.poison = `cpu="3"`
	}
	cfg := r.config(m, in, &logs{})
	cfg.StaleOnStop, cfg.MaxSamples = true, 200+rnd.IntN(5000)
	cfg.ShutdownTimeout = 5 * time.Minute
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	for i := range r.ticks {
		in.append(r.ticks[i])
		time.Sleep(100 * time.Millisecond) // fake time
	}
	m.mu.Lock()
	m.good = true
	m.mu.Unlock()
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	if want := r.ticks[len(r.ticks)-1].Seq + 1; s.Cursor() != want {
		t.Errorf("seed %d: cursor is %d, want %d", seed, s.Cursor(), want)
	}
	if lost := len(r.ticks) - len(in.readSeqs); metric(s, "ticks_lost_total", "") != float64(lost) {
		t.Errorf("seed %d: %v ticks counted as lost, %d are", seed, metric(s, "ticks_lost_total", ""), lost)
	}
	r.keep(in.readSeqs)
	want := r.want(external, nil)
	want.end(r.ms[len(r.ms)-1] + 1)
	if err := m.compare(want, int(metric(s, "samples_rejected_total", ""))); err != nil {
		t.Errorf("seed %d, %d requests: %v", seed, m.requests, err)
	}
}

// keep leaves only some ticks in a run.
func (r *run) keep(seqs map[uint64]bool) {
	n := 0
	for i := range r.ticks {
		if seqs[r.ticks[i].Seq] {
			r.ticks[n], r.ms[n] = r.ticks[i], r.ms[i]
			n++
		}
	}
	r.ticks, r.ms = r.ticks[:n], r.ms[:n]
}

// compare checks that all that is wanted was accepted, once, or counted as rejected.
func (m *moody) compare(want written, rejected int) error {
	missing, unheard, extra := 0, 0, 0
	for k, ss := range want {
		for _, s := range ss {
			c := m.stored[k][s.Ms]
			switch {
			case c == nil:
				missing++
				extra++
				continue
			case c.bits != s.Bits:
				return fmt.Errorf("%s at %d is %x, want %x", k, s.Ms, c.bits, s.Bits)
			case c.n > c.unheard+1:
				return fmt.Errorf("%s at %d was accepted %d times, of which %d unheard", k, s.Ms, c.n, c.unheard)
			}
			if c.unheard > 0 {
				unheard++ // a later copy may have been refused
			}
		}
		extra += len(m.stored[k]) - len(ss)
	}
	if missing > rejected || rejected > missing+unheard {
		return fmt.Errorf("%d samples are missing, %d were accepted unheard, %d are counted as rejected", missing, unheard, rejected)
	}
	if extra != 0 {
		return fmt.Errorf("%d samples more than were sampled", extra)
	}
	return nil
}
