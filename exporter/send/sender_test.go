package send

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// runFor runs a sender for d of fake time and then stops it.
func runFor(t *testing.T, c Config, d time.Duration) *Sender {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	time.Sleep(d) // fake time
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDelivery(t *testing.T) {
	first := func(a answer) func(int, *http.Request, Protocol, int) answer {
		return func(n int, _ *http.Request, _ Protocol, _ int) answer {
			if n == 0 {
				return a
			}
			return answer{code: 204, store: true}
		}
	}
	only := func(p Protocol, a answer) func(int, *http.Request, Protocol, int) answer {
		return func(_ int, _ *http.Request, q Protocol, _ int) answer {
			if q == p {
				return a
			}
			return answer{code: 204, store: true}
		}
	}
	for _, c := range []struct {
		name     string
		mode     Mode
		script   func(int, *http.Request, Protocol, int) answer
		after    time.Duration // time it may take from the first push
		refused  bool          // for good: nothing arrives
		protocol float64       // in the end
		requests int           // at the receiver, 0 is any number
		log      string
		logs     int // how often
	}{
		{name: "accepted", script: ok, protocol: 2, requests: 1, log: "level=WARN", logs: 0},
		{name: "1.0 only", mode: Only1, script: ok, protocol: 1, requests: 1},
		{name: "415 falls back", script: only(V2, status(415)), protocol: 1, requests: 2, log: "falling back", logs: 1},
		{name: "2xx without headers falls back", script: only(V2, status(204)), protocol: 1, requests: 2, log: "falling back", logs: 1},
		{name: "400 of a 1.0 receiver falls back", script: only(V2, status(400)), protocol: 1, requests: 2, log: "falling back", logs: 1},
		{name: "415 with 2.0 only", mode: Only2, script: only(V2, status(415)), refused: true, protocol: 2, requests: 1, log: "refuses samples", logs: 1},
		{name: "2xx without headers with 2.0 only", mode: Only2, script: only(V2, status(200)), refused: true, protocol: 2, requests: 1},
		{name: "400 whatever the protocol", script: func(int, *http.Request, Protocol, int) answer { return status(400) },
			refused: true, protocol: 2, log: "refuses samples", logs: 1},
		{name: "422", script: func(int, *http.Request, Protocol, int) answer { return status(422) }, refused: true, protocol: 2},
		{name: "401 once", script: first(status(401)), after: time.Second, protocol: 2, requests: 2, log: "level=ERROR", logs: 1},
		{name: "500 once", script: first(status(500)), after: time.Second, protocol: 2, requests: 2, log: "delayed", logs: 1},
		{name: "429 in seconds", script: first(status(429, "Retry-After", "60")), after: 66 * time.Second, protocol: 2, requests: 2},
		{name: "503 until a date", script: first(status(503, "Date", "Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After", "Sun, 06 Nov 1994 08:51:37 GMT")),
			after: 126 * time.Second, protocol: 2, requests: 2},
		{name: "redirect", script: first(status(308, "Location", "https://elsewhere.test/")), after: time.Second, protocol: 2, requests: 2, log: "elsewhere.test", logs: 1},
		{name: "redirect to a page", script: first(status(302, "Location", "/login")), after: time.Second, protocol: 2, requests: 2},
		{name: "code from nowhere", script: first(status(999)), after: time.Second, protocol: 2, requests: 2},
		{name: "no connection", script: first(answer{err: errors.New("connection refused")}), after: time.Second, protocol: 2, requests: 2, log: "connection refused", logs: 1},
		{name: "no reply", script: first(answer{hang: true}), after: 31 * time.Second, protocol: 2, requests: 2, log: "no reply within the request timeout", logs: 1},
		{name: "down for ten minutes", script: func() func(int, *http.Request, Protocol, int) answer {
			var since time.Time
			return func(int, *http.Request, Protocol, int) answer {
				if since.IsZero() {
					since = time.Now()
				}
				if time.Since(since) < 10*time.Minute {
					return status(502)
				}
				return answer{code: 200, store: true}
			}
		}(), after: 11 * time.Minute, protocol: 2, log: "write delayed", logs: 1},
		{name: "written less", script: func(int, *http.Request, Protocol, int) answer {
			return answer{code: 200, store: true, header: http.Header{headerSamples: {"1"}}}
		}, protocol: 2, requests: 1, log: "wrote fewer", logs: 1},
		{name: "written nonsense", script: func(int, *http.Request, Protocol, int) answer {
			return answer{code: 200, store: true, header: http.Header{headerSamples: {"many"}}}
		}, protocol: 2, requests: 1},
		{name: "endless body", script: func(int, *http.Request, Protocol, int) answer {
			return answer{code: 200, store: true, body: endless{}}
		}, protocol: 2, requests: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(1, 30, 20)
				rc, l := &receiver{script: c.script}, &logs{}
				cfg := r.config(rc, r.ring(), l)
				cfg.Mode = c.mode
				s := runFor(t, cfg, 5*time.Second+c.after)
				rc.check(t)
				want := r.want(external, nil)
				samples := want.samples()
				if c.refused {
					want, samples = nil, 0
				}
				if diff := cmp.Diff(want, rc.stored); diff != "" {
					t.Error(diff)
				}
				if got := metric(s, "samples_total", ""); got != float64(samples) {
					t.Errorf("samples_total is %v, want %d", got, samples)
				}
				if got, all := metric(s, "samples_rejected_total", ""), r.want(nil, nil).samples(); c.refused != (got == float64(all)) {
					t.Errorf("samples_rejected_total is %v of %d", got, all)
				}
				if got := s.Cursor(); got != 20 {
					t.Errorf("cursor is %d, want 20", got)
				}
				if got := metric(s, "protocol", ""); got != c.protocol {
					t.Errorf("protocol is %v, want %v", got, c.protocol)
				}
				if c.requests != 0 && len(rc.requests) != c.requests {
					t.Errorf("%d requests, want %d", len(rc.requests), c.requests)
				}
				if c.log != "" && l.count(c.log) != c.logs {
					t.Errorf("%q is logged %d times, want %d:\n%s", c.log, l.count(c.log), c.logs, l)
				}
				if strings.Contains(l.String(), "secret") || strings.Contains(l.String(), "hidden") || strings.Contains(s.Name(), "secret") {
					t.Errorf("a credential is told: %s\n%s", s.Name(), l)
				}
			})
		})
	}
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func (w written) samples() (n int) {
	for _, ss := range w {
		n += len(ss)
	}
	return n
}

func TestHeaders(t *testing.T) {
	for p, want := range map[Protocol]http.Header{
		V2: {"Content-Type": {"application/x-protobuf;proto=io.prometheus.write.v2.Request"}, headerVersion: {"2.0.0"}},
		V1: {"Content-Type": {"application/x-protobuf"}, headerVersion: {"0.1.0"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(1, 3, 7)
			rc := &receiver{script: ok}
			cfg := r.config(rc, r.ring(), &logs{})
			cfg.Header = http.Header{"x-scope-orgid": {"tenant"}}
			if p == V1 {
				cfg.Mode = Only1
			}
			cfg.Authorize = func(h http.Header) error { h.Set("Authorization", "Bearer t"); return nil }
			runFor(t, cfg, 6*time.Second)
			want["User-Agent"] = []string{"ticktier-exporter/1.2.3"}
			want["Content-Encoding"] = []string{"snappy"}
			want[headerSession], want[headerSeq] = []string{"s1"}, []string{"0-6"}
			want[headerSender] = []string{`s1; time=1760000000600; interval=5000; lost=0; instance="router"`}
			want["X-Scope-Orgid"], want["Authorization"] = []string{"tenant"}, []string{"Bearer t"}
			if diff := cmp.Diff(want, rc.requests[0].Header); diff != "" {
				t.Error(diff)
			}
			if m := rc.requests[0].Method; m != http.MethodPost {
				t.Error(m)
			}
		})
	}
}

// TestFallbackIsTriedAgain has a receiver that learns 2.0 after three hours.
func TestFallbackIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRun(1, 3, 1), time.Now()
		in, l := &ring{}, &logs{}
		probes := 0
		rc := &receiver{script: func(_ int, _ *http.Request, p Protocol, _ int) answer {
			if p == V2 && time.Since(began) < 3*time.Hour {
				probes++
				return status(415)
			}
			return answer{code: 204, store: true}
		}}
		go func() {
			for i := range 8 * 60 { // a tick a minute
				in.append(frame.Tick{Seq: uint64(i), Time: int64(i) * 60e9, Read: 1, Values: make([]int64, 3), Present: []uint64{7}})
				time.Sleep(time.Minute)
			}
		}()
		s := runFor(t, r.config(rc, in, l), 8*time.Hour+time.Minute)
		// At the start, after one hour, and two hours later, when it is taken.
		if probes != 2 {
			t.Errorf("2.0 was tried %d times in vain, want 2:\n%s", probes, l)
		}
		if got := metric(s, "protocol", ""); got != 2 {
			t.Errorf("protocol is %v, want 2", got)
		}
		if n := rc.stored.samples(); n != 3*8*60 {
			t.Errorf("%d samples stored, want %d", n, 3*8*60)
		}
		rc.check(t)
	})
}

func TestTooLargeIsSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(1, 1000, 20)
		l := &logs{}
		rc := &receiver{script: func(_ int, _ *http.Request, _ Protocol, samples int) answer {
			if samples > 6000 {
				return status(413)
			}
			return answer{code: 204, store: true}
		}}
		s := runFor(t, r.config(rc, r.ring(), l), 6*time.Second)
		if diff := cmp.Diff(r.want(external, nil), rc.stored); diff != "" {
			t.Error(diff)
		}
		if got := metric(s, "requests_total", "413"); got < 1 || got > 3 {
			t.Errorf("%v requests were too large, want 1 to 3", got)
		}
	})
}

func TestStaleOnStop(t *testing.T) {
	for _, stale := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(1, 100, 20)
			r.ticks[19].Present[0] &^= 1<<7 | 1<<9 // these ended already
			rc := &receiver{script: ok}
			cfg := r.config(rc, r.ring(), &logs{})
			cfg.StaleOnStop = stale
			s := runFor(t, cfg, time.Minute)
			want := r.want(external, nil)
			if stale {
				want.end(r.ms[19] + 1)
			}
			if diff := cmp.Diff(want, rc.stored); diff != "" {
				t.Error(diff)
			}
			if s.Cursor() != 20 {
				t.Errorf("cursor is %d, want 20", s.Cursor())
			}
		})
	}
}

// TestStop says what becomes of samples that are not delivered when Run is to end.
func TestStop(t *testing.T) {
	for _, c := range []struct {
		name      string
		script    func(int, *http.Request, Protocol, int) answer
		took      time.Duration // at most
		delivered bool
	}{
		{"never pushed yet", ok, 0, true},
		{"comes back in time", func(n int, _ *http.Request, _ Protocol, _ int) answer {
			if n < 3 {
				return status(500)
			}
			return answer{code: 204, store: true}
		}, time.Second, true},
		{"down", func(int, *http.Request, Protocol, int) answer { return status(500) }, 5 * time.Second, false},
		{"hangs", func(int, *http.Request, Protocol, int) answer { return answer{hang: true} }, 5 * time.Second, false},
		{"not before", func(int, *http.Request, Protocol, int) answer { return status(429, "Retry-After", "9") }, time.Millisecond, false},
		{"a moment later", func(n int, _ *http.Request, _ Protocol, _ int) answer {
			if n == 0 {
				return status(429, "Retry-After", "1")
			}
			return answer{code: 204, store: true}
		}, 2 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(1, 30, 20)
				rc, l := &receiver{script: c.script}, &logs{}
				cfg := r.config(rc, r.ring(), l)
				cfg.Interval, cfg.StaleOnStop = 1000*time.Hour, true
				began := time.Now()
				s := runFor(t, cfg, time.Millisecond)
				if took := time.Since(began) - time.Millisecond; took > c.took {
					t.Errorf("stopping took %s, want at most %s", took, c.took)
				}
				if got := s.Cursor() == 20; got != c.delivered {
					t.Errorf("delivered: %v, want %v", got, c.delivered)
				}
				want := r.want(external, nil)
				want.end(r.ms[19] + 1)
				if !c.delivered {
					want = nil
				}
				if diff := cmp.Diff(want, rc.stored); diff != "" {
					t.Error(diff)
				}
				if l.count("remote write stopped") != 1 {
					t.Error(l)
				}
			})
		})
	}
}

// TestCatchUp sends what gathered during an outage back to back.
func TestCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(1, 100, 3000) // five minutes at 10 Hz
		rc := &receiver{script: ok}
		cfg := r.config(rc, r.ring(), &logs{})
		var cursors []uint64
		cfg.Delivered = func(p Progress) { cursors = append(cursors, p.Seq) }
		runFor(t, cfg, 5*time.Second)
		if diff := cmp.Diff(r.want(external, nil), rc.stored); diff != "" {
			t.Error(diff)
		}
		if n := (3000 + batchTicks - 1) / batchTicks; len(cursors) != n || cursors[n-1] != 3000 {
			t.Errorf("cursor went %v, want %d batches", cursors, n)
		}
	})
}

func TestClock(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		lost           float64
	}{
		{"regular", "10 20 30", "10 20 30", 0},
		{"two in one millisecond", "10 10 11 13", "10 11 12 13", 0},
		{"small step back", "10 20 19 30", "10 20 21 30", 0},
		{"step back", "1010 1020 1030 1015 1025 1035 1045", "1010 1020 1030 1035 1045", 2},
		{"step back to the end", "1010 1020 15 25", "1010 1020", 2},
		{"step back behind all that was sent", "1010 1020 900 1000 1030", "1010 1020 1030", 2},
		{"far back", "9001010 9001020 15 25 9001011 9001021", "9001010 9001020 15 25 9001021", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ms []int64
				for f := range strings.FieldsSeq(c.in) {
					var v int64
					_, _ = fmt.Sscan(f, &v)
					ms = append(ms, v)
				}
				r := newRun(1, 1, len(ms))
				rc := &receiver{script: ok}
				cfg := r.config(rc, r.ring(), &logs{})
				cfg.Wall = func(mono int64) int64 { return ms[mono/100e6] }
				s := runFor(t, cfg, 5*time.Second)
				rc.check(t)
				if n := metric(s, "ticks_lost_total", ""); n != c.lost || s.Cursor() != uint64(len(ms)) {
					t.Errorf("%v ticks are counted as lost, want %v; the cursor is %d", n, c.lost, s.Cursor())
				}
				var got []string
				for _, ss := range rc.stored {
					for _, s := range ss {
						got = append(got, fmt.Sprint(s.Ms))
					}
				}
				if g := strings.Join(got, " "); g != c.want {
					t.Errorf("got %s, want %s", g, c.want)
				}
			})
		})
	}
}

// TestStarts sends the start time of a counter where it is known, and keeps it
// while the clock is slewed.
func TestStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(1, 40, 600)
		wall := func(mono int64) int64 { return r.ms[0] + mono/1e6 + mono/1e9*3 } // 3 ms a second
		for i := range r.ms {
			r.ms[i] = wall(r.ticks[i].Time)
		}
		rc := &receiver{script: ok}
		cfg := r.config(rc, r.ring(), &logs{})
		cfg.Wall = wall
		cfg.Start = func(s *collectors.Series) (int64, bool) { return -3600e9, s.Source == 0 }
		runFor(t, cfg, time.Minute)
		starts := make([]int64, 40)
		for i := range starts {
			starts[i] = noStart
			if i < 20 { // source 0, counters
				starts[i] = wall(r.ticks[batchTicks-1].Time) - r.ticks[batchTicks-1].Time/1e6 - 3600_000
			}
		}
		if diff := cmp.Diff(r.want(external, starts), rc.stored); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSchemaGrows adds series while ticks are in the ring.
func TestSchemaGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(1, 200, 30)
		for i := range 10 {
			r.ticks[i].Values, r.ticks[i].Present = r.ticks[i].Values[:70], r.ticks[i].Present[:2]
			r.ticks[i].Present[1] &= 1<<6 - 1
		}
		in, rc := &ring{}, &receiver{script: ok}
		cfg := r.config(rc, in, &logs{})
		cfg.Schema = &collectors.Schema{}
		go func() {
			n := 0
			for i := range r.ticks {
				for ; n < len(r.ticks[i].Values); n++ {
					cfg.Schema.Add(r.series[n].Source, r.series[n].Metric, r.series[n].Labels...)
				}
				in.append(r.ticks[i])
				time.Sleep(time.Second)
			}
		}()
		runFor(t, cfg, time.Minute)
		if diff := cmp.Diff(r.want(external, nil), rc.stored); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	r := newRun(1, 1, 1)
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"scheme":          {func(c *Config) { c.URL = "ftp://host/" }, `scheme "ftp" is neither http nor https`},
		"no host":         {func(c *Config) { c.URL = "http:///api" }, "no host in it"},
		"not a URL":       {func(c *Config) { c.URL = "http://u:secret@ho st/" }, "not a URL: "},
		"interval":        {func(c *Config) { c.Interval = 0 }, "push interval 0s is not positive"},
		"reserved header": {func(c *Config) { c.Header = http.Header{"content-type": {"x"}} }, "header content-type belongs to the protocol"},
		"no ticks":        {func(c *Config) { c.Ticks = nil }, "are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := r.config(nil, r.ring(), &logs{})
			c.change(&cfg)
			_, err := New(cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	for n := range 100 {
		for range 100 {
			if d := backoff(n, maxBackoff, 0); d <= 0 || d > maxBackoff || n < 6 && d > firstBackoff<<n {
				t.Fatalf("retry %d after %s", n, d)
			}
			if d := backoff(n, maxBackoff, 7*time.Second); d < 7*time.Second || d > 12*time.Second {
				t.Fatalf("retry after %s when 7s was asked for", d)
			}
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{"", "0", "120", "-1", "1e9", "99999999999999999999", "Fri, 31 Dec 1999 23:59:59 GMT", "Friday, 31-Dec-99 23:59:59 GMT", " 5 "} {
		f.Add(v)
	}
	now := time.Date(1999, 12, 31, 23, 59, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, v string) {
		if d := parseRetryAfter(v, now); d < 0 || d > maxRetryAfter {
			t.Errorf("%q is %s", v, d)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(1999, 12, 31, 23, 59, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, " 5 ": 5 * time.Second, "-1": 0, "soon": 0,
		"Fri, 31 Dec 1999 23:59:59 GMT": 59 * time.Second, "Fri, 31 Dec 1999 23:58:59 GMT": 0,
		"999999999": maxRetryAfter, "9223372036854775807": maxRetryAfter,
	} {
		if got := parseRetryAfter(v, now); got != want {
			t.Errorf("%q is %s, want %s", v, got, want)
		}
	}
}
