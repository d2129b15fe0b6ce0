package send

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/collectors"
)

// slowLine carries so many bytes a second.
type slowLine struct {
	rc    *receiver
	speed int
	sizes []int
}

func (l *slowLine) RoundTrip(req *http.Request) (*http.Response, error) {
	l.sizes = append(l.sizes, int(req.ContentLength))
	select {
	case <-time.After(time.Duration(req.ContentLength) * time.Second / time.Duration(l.speed)):
		return l.rc.RoundTrip(req)
	case <-req.Context().Done():
		_, _ = io.Copy(io.Discard, req.Body)
		return nil, req.Context().Err()
	}
}

// TestSlowLine has a backlog, and a line on which a full request takes longer than
// the timeout; then the line gets fast.
func TestSlowLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(1, 900, 400)
		rc := &receiver{script: ok}
		line := &slowLine{rc: rc, speed: 3000}
		rc.script = func(n int, _ *http.Request, _ Protocol, _ int) answer {
			if n == 10 {
				line.speed = 1e6
			}
			return answer{code: 204, store: true}
		}
		s := runFor(t, r.config(line, r.ring(), &logs{}), time.Hour)
		if diff := cmp.Diff(r.want(external, nil), rc.stored); diff != "" {
			t.Error(diff)
		}
		if got := metric(s, "requests_total", "error"); got < 1 || got > 5 {
			t.Errorf("%v requests timed out, want a few", got)
		}
		if first, small, last := line.sizes[0], line.sizes[5], line.sizes[len(line.sizes)-2]; small > 90_000 || first < 2*small || last < 2*small {
			t.Errorf("requests should get small and large again: %v", line.sizes)
		}
	})
}

func TestTooLargeStays(t *testing.T) {
	full := bounds{bytes: 1_000_000, samples: 200_000}
	l := limits{now: full, max: full}
	r := &request{body: make([]byte, 600_000), series: 500, samples: 100_000}
	if !l.tooLarge(r) || l.now.samples != 50_000 || l.now.bytes != 300_000 {
		t.Errorf("%+v", l)
	}
	for range 100 {
		l.took(time.Second, time.Minute)
	}
	if l.now.samples != 50_000 {
		t.Errorf("requests grow again: %+v", l)
	}
	if l.tooLarge(&request{series: 1, samples: 1e6}) || l.tooLarge(&request{series: 9, samples: minSamples}) {
		t.Error("a request is halved for ever")
	}
}

// TestClockUnset sends nothing while the clock is not set, and then everything with
// its right time.
func TestClockUnset(t *testing.T) {
	for _, set := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r, began, l := newRun(1, 30, 20), time.Now(), &logs{}
			rc := &receiver{script: ok}
			cfg := r.config(rc, r.ring(), l)
			cfg.NotBefore = r.ms[0] - 1000
			cfg.Wall = func(mono int64) int64 {
				if set && time.Since(began) > time.Minute {
					return r.ms[0] + mono/1e6
				}
				return 40_000 + mono/1e6
			}
			s := runFor(t, cfg, 2*time.Minute)
			want := r.want(external, nil)
			if !set {
				want = nil
			}
			if diff := cmp.Diff(want, rc.stored); diff != "" {
				t.Error(diff)
			}
			if got := s.Cursor() == 20; got != set || l.count("clock is not set, nothing is sent") != 1 || l.count("stopped before everything") == 1 == set {
				t.Errorf("cursor is %d:\n%s", s.Cursor(), l)
			}
		})
	}
}

func TestSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(1, 3, 1)
		rc := &receiver{script: func(int, *http.Request, Protocol, int) answer {
			return answer{code: 204, store: true, header: http.Header{"Date": {time.UnixMilli(r.ms[0] + 90_000).UTC().Format(http.TimeFormat)}}}
		}}
		s, err := New(r.config(rc, r.ring(), &logs{}))
		if err != nil {
			t.Fatal(err)
		}
		if v := metric(s, "clock_skew_seconds", ""); v == v {
			t.Errorf("skew is %v before any reply", v)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if v := metric(s, "clock_skew_seconds", ""); v != 90 {
			t.Errorf("skew is %v s, want 90", v)
		}
	})
}

// TestLimit tells a limit of size, which a smaller request passes, from a wish to slow
// down and from a limit that nothing lifts.
func TestLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int // samples that a request may have
		log   string
		all   bool
	}{
		{"of size", 2000, "does not lift by waiting, sending smaller requests", true},
		{"that nothing lifts", 0, "somebody has to raise the limit", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, l := newRun(1, 200, 100), &logs{}
			rc := &receiver{script: func(_ int, _ *http.Request, _ Protocol, samples int) answer {
				if samples > c.limit {
					return status(429)
				}
				return answer{code: 204, store: true}
			}}
			began := time.Now()
			cfg := r.config(rc, r.ring(), l)
			cfg.Now = func() int64 { return int64(time.Since(began)) }
			s, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error)
			go func() { done <- s.Run(ctx) }()
			time.Sleep(20 * time.Minute)
			limited := metric(s, "limited_seconds", "")
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			rc.check(t)
			if l.count(c.log) == 0 || l.count(c.log) > 5 || l.count("level=ERROR") > 1 {
				t.Errorf("%s: log: %s", c.name, l)
			}
			if got := s.Cursor() == 100; got != c.all || metric(s, "samples_rejected_total", "") > 0 || metric(s, "ticks_lost_total", "") > 0 {
				t.Errorf("%s: the cursor is %d", c.name, s.Cursor())
			}
			if c.all {
				if diff := cmp.Diff(r.want(external, nil), rc.stored); diff != "" {
					t.Errorf("%s: %s", c.name, diff)
				}
			}
			if got := limited > 1000; got == c.all {
				t.Errorf("%s: limited for %v s", c.name, limited)
			}
		})
	}
}

// TestSaved counts what is not sent, by the reason.
func TestSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(1, 100, 50)
		for i := range r.ticks {
			r.ticks[i].Read = ^uint64(0)
		}
		rc := &receiver{script: ok}
		cfg := r.config(rc, r.ring(), &logs{})
		cfg.Every = 10
		cfg.Select = func(s *collectors.Series) bool { return s.Labels[0].Value != "3" }
		s := runFor(t, cfg, 10*time.Second)
		sent := metric(s, "samples_total", "")
		var saved []float64
		for _, m := range s.SelfMetrics() {
			if m.Metric.Name == "ticktier_exporter_remote_write_samples_saved_total" {
				v, _ := m.Read()
				saved = append(saved, m.Metric.Value(v))
			}
		}
		// Of 100 series 5 are not wanted; of 50 ticks 5 are sent. Gaps make it about.
		if len(saved) != 3 || saved[0] != 0 || saved[1] < 7*sent || saved[1] > 11*sent || saved[2] < sent/40 || saved[2] > sent/10 {
			t.Errorf("%v sent, %v saved", sent, saved)
		}
		if b, n := metric(s, "bytes_saved_total", ""), metric(s, "bytes_total", ""); b < 5*n || b > 13*n {
			t.Errorf("%v bytes saved, %v sent", b, n)
		}
		if d := metric(s, "samples_per_day", ""); d <= 0 {
			t.Errorf("%v samples a day", d)
		}
	})
}
