package send

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestClockRun takes a sender through what the clock of a router does: it starts at
// 1970-01-01 00:00:40, is set 90 s later, stepped back by 45 s, forward by a day and
// back again. Nothing is sent while the clock is wrong by more than a day, no time
// comes twice or out of order, and what is stored is what was sampled less what is
// counted as lost.
func TestClockRun(t *testing.T) {
	for _, order := range []Order{Strict, Live} {
		synctest.Test(t, func(t *testing.T) { testClockRun(t, order) })
	}
}

func testClockRun(t *testing.T, order Order) {
	r, l := newRun(1, 4, 4000), &logs{}
	in, other := &ring{}, &ring{}
	began := time.Now()
	truth := func() int64 { return 1_760_000_000_000 + time.Since(began).Milliseconds() }
	var offset atomic.Int64 // ms that the clock is wrong
	var steps atomic.Uint64
	step := func(ms int64) { offset.Store(ms); steps.Add(1) }
	offset.Store(40_000 - truth())
	var wrong atomic.Int64
	answer1 := func(_ int, _ *http.Request, _ Protocol, _ int) answer {
		if o := offset.Load(); o > 86_400_000 || o < -86_400_000 {
			wrong.Add(1)
		}
		return answer{code: 204, store: true, header: http.Header{"Date": {time.UnixMilli(truth()).UTC().Format(http.TimeFormat)}}}
	}
	rc := &receiver{script: answer1, date: func() http.Header {
		return http.Header{"Date": {time.UnixMilli(truth()).UTC().Format(http.TimeFormat)}}
	}}
	cfg := r.config(rc, in, l)
	cfg.Order, cfg.Behind, cfg.BacklogShare, cfg.Period, cfg.Interval = order, second{other}, 0.5, 100*time.Millisecond, time.Second
	cfg.Edge = func() uint64 {
		other.mu.Lock()
		defer other.mu.Unlock()
		if len(other.held) == 0 {
			return 0
		}
		return other.held[len(other.held)-1].Seq
	}
	cfg.NotBefore = 1_735_689_600_000
	cfg.Now = func() int64 { return int64(time.Since(began)) }
	cfg.Wall = func(mono int64) int64 { return 1_760_000_000_000 + mono/1e6 + offset.Load() }
	cfg.Steps = steps.Load
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	for i := range r.ticks {
		time.Sleep(time.Until(began.Add(time.Duration(r.ticks[i].Time)))) // fake time
		switch i {
		case 900:
			rc.mu.Lock()
			if len(rc.requests)+rc.asked > 0 {
				t.Errorf("%d requests while the clock was not set", len(rc.requests)+rc.asked)
			}
			rc.mu.Unlock()
			step(0)
		case 1500:
			step(-45_000)
		case 2600:
			step(86_400_000 + 1500)
		case 2800:
			step(-45_000)
		}
		in.append(r.ticks[i])
		other.append(r.ticks[i])
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	rc.check(t)
	lost := int(metric(s, "ticks_lost_total", ""))
	if lost < 400 || lost > 470 {
		t.Errorf("%d ticks are lost, of 45 s that had been sent already", lost)
	}
	if wrong.Load() > 0 {
		t.Errorf("%d requests while the clock was wrong by a day", wrong.Load())
	}
	for k, ss := range rc.stored {
		times := map[int64]bool{}
		for i, x := range ss {
			if order == Strict && i > 0 && x.Ms <= ss[i-1].Ms {
				t.Fatalf("%s: %d after %d", k, x.Ms, ss[i-1].Ms)
			}
			if times[x.Ms] {
				t.Fatalf("%s: %d comes twice", k, x.Ms)
			}
			times[x.Ms] = true
		}
	}
	read := len(r.ticks) - lost
	seen := map[int64]bool{}
	for _, ss := range rc.stored {
		for _, x := range ss {
			seen[x.Ms] = true
		}
	}
	if d := len(seen) - read; d < -1 || d > 1 { // a last marker
		t.Errorf("%d times are stored, of %d ticks %d are lost\n%s", len(seen), len(r.ticks), lost, l)
	}
	if l.count("contradicted by the receiver's") != 1 || l.count("clock is not set") != 1 {
		t.Error(l)
	}
}

// TestCorrect has a clock that is wrong, asks the receiver for the time and passes
// its bounds on, before anything is sent.
func TestCorrect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(1, 4, 20)
		began := time.Now()
		date := http.Header{"Date": {time.UnixMilli(r.ms[0] + 3500).UTC().Format(http.TimeFormat)}}
		rc := &receiver{script: ok, date: func() http.Header { return date }}
		cfg := r.config(rc, r.ring(), &logs{})
		var offset atomic.Int64
		offset.Store(40e9)
		cfg.NotBefore = r.ms[0] - 1000
		cfg.Now = func() int64 { return int64(time.Since(began)) }
		cfg.Wall = func(mono int64) int64 { return (mono + offset.Load()) / 1e6 }
		cfg.Correct = func(lo, hi int64) {
			if hi-lo < 1e9 || hi-lo > 2e9 {
				t.Errorf("bounds %d to %d", lo, hi)
			}
			offset.Store((lo + hi) / 2)
		}
		s := runFor(t, cfg, 12*time.Second)
		if rc.asked != 1 || s.Cursor() != 20 {
			t.Errorf("asked %d times, cursor is %d", rc.asked, s.Cursor())
		}
		for _, ss := range rc.stored {
			for _, x := range ss {
				if d := x.Ms - r.ms[0]; d < -10_000 || d > 10_000 {
					t.Fatalf("stored at %d, the receiver's clock said %d", x.Ms, r.ms[0])
				}
			}
		}
	})
}
