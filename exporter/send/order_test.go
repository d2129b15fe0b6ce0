package send

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// behind makes a second reader of a ring's ticks.
type second struct{ *ring }

// outage runs a sender whose receiver is away from 10 s to 40 s of a minute, and
// returns the receiver's requests with the range of their ticks.
func outageRun(t *testing.T, strict bool, change func(*Config)) (*run, *receiver, *Sender, *logs, []string) {
	t.Helper()
	r := newRun(seed(t), 30, 600)
	in := &ring{}
	other := &ring{}
	l := &logs{}
	began := time.Now()
	var seqs []string
	newest := map[string]int64{}
	rc := &receiver{}
	rc.script = func(_ int, req *http.Request, p Protocol, _ int) answer {
		if d := time.Since(began); d > 10*time.Second && d < 40*time.Second {
			return answer{err: errors.New("connection refused")}
		}
		seqs = append(seqs, req.Header.Get(headerSeq))
		return answer{code: 204, store: true}
	}
	var rt http.RoundTripper = rc
	if strict {
		rt = inOrder{rc, newest}
	}
	cfg := r.config(rt, in, l)
	cfg.Order, cfg.Behind, cfg.BacklogShare = Live, second{other}, 0.5
	cfg.Interval, cfg.Period = time.Second, 100*time.Millisecond
	// One tick behind: the ticks are appended to one ring after the other.
	cfg.Edge = func() uint64 {
		other.mu.Lock()
		defer other.mu.Unlock()
		return other.held[len(other.held)-1].Seq
	}
	cfg.Now = func() int64 { return in.tickTime() }
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	for i := range r.ticks {
		in.append(r.ticks[i])
		other.append(r.ticks[i])
		time.Sleep(100 * time.Millisecond) // fake time
	}
	time.Sleep(20 * time.Second)
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	rc.check(t)
	return r, rc, s, l, seqs
}

func (r *ring) tickTime() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[len(r.held)-1].Time
}

// inOrder is a receiver that refuses what is older than what it has of the series.
type inOrder struct {
	rc     *receiver
	newest map[string]int64
}

func (o inOrder) RoundTrip(req *http.Request) (*http.Response, error) {
	rc := receiver{script: o.rc.script}
	resp, err := rc.RoundTrip(req)
	if err != nil || resp.StatusCode/100 != 2 {
		return resp, err
	}
	for k, ss := range rc.stored {
		if ss[0].Ms < o.newest[k] {
			return &http.Response{StatusCode: 400, Header: http.Header{headerSamples: {"0"}}, Body: http.NoBody, Request: req}, nil
		}
	}
	for k, ss := range rc.stored {
		o.newest[k] = ss[len(ss)-1].Ms
	}
	o.rc.mu.Lock()
	defer o.rc.mu.Unlock()
	if o.rc.stored == nil {
		o.rc.stored = written{}
	}
	for k, ss := range rc.stored {
		o.rc.stored[k] = append(o.rc.stored[k], ss...)
	}
	return resp, nil
}

// TestLiveEdgeFirst: after an outage the newest ticks go before the backlog, and in
// the end everything has arrived once.
func TestLiveEdgeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rc, s, l, seqs := outageRun(t, false, nil)
		if l.count("the newest ticks go first") != 1 || l.count("the backlog is delivered") != 1 {
			t.Errorf("log:\n%s", l)
		}
		checkOnce(t, r, rc)
		overtaken := false
		last := uint64(0)
		for _, q := range seqs {
			var from, to uint64
			if _, err := fmt.Sscanf(strings.Replace(q, "-", " ", 1), "%d %d", &from, &to); err != nil {
				continue // the probe's
			}
			overtaken = overtaken || from < last
			last = max(last, to)
		}
		if !overtaken {
			t.Errorf("nothing was overtaken: %v", seqs)
		}
		if want := r.ticks[len(r.ticks)-1].Seq + 1; s.Cursor() != want {
			t.Errorf("cursor %d, want %d", s.Cursor(), want)
		}
	})
}

// TestStrictByItself: a receiver that takes nothing out of order loses nothing.
func TestStrictByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rc, s, l, _ := outageRun(t, true, nil)
		if l.count("takes no samples out of order") != 1 || l.count("the newest ticks go first") != 0 {
			t.Errorf("log:\n%s", l)
		}
		if n := metric(s, "samples_rejected_total", ""); n != 0 {
			t.Errorf("%v samples were rejected", n)
		}
		checkOnce(t, r, rc)
	})
}

// checkOnce demands that a receiver has every sample of a run, once, and markers
// nowhere but where series ended; samples may have come out of order.
func checkOnce(t *testing.T, r *run, rc *receiver) {
	t.Helper()
	want := r.want(external, nil)
	for k, ss := range want {
		got := map[int64]uint64{}
		for _, x := range rc.stored[k] {
			if _, ok := got[x.Ms]; ok {
				t.Errorf("%s: two samples at %d", k, x.Ms)
			}
			got[x.Ms] = x.Bits
		}
		for _, x := range ss {
			bits, ok := got[x.Ms]
			if !ok || bits != x.Bits {
				t.Fatalf("%s at %d: %x, %v, want %x", k, x.Ms, bits, ok, x.Bits)
			}
			delete(got, x.Ms)
		}
		if len(got) > 0 {
			t.Errorf("%s: %d samples too many", k, len(got))
		}
	}
}

// TestThinning: one read of each source in so many slots is sent, at its own time.
func TestThinning(t *testing.T) {
	var th thinning
	var got []string
	for seq := range uint64(30) {
		read := uint64(1)
		if seq%10 == 7 {
			read |= 2
		}
		if m := th.mask(10, seq, read); m != 0 {
			got = append(got, fmt.Sprint(seq, ":", m))
		}
	}
	if want := "[0:1 7:2 10:1 17:2 20:1 27:2]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if th.mask(1, 5, 3) != 3 || th.mask(0, 5, 3) != 3 {
		t.Error("something is left out where nothing is to be")
	}
}

// nothingEarlier is a spool without former sessions.
type nothingEarlier struct{ Earlier }

func (nothingEarlier) Next() bool { return false }

// TestNothingEarlier: a spool that is empty is no backlog, and asks nobody anything.
func TestNothingEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, rc, s, l, _ := outageRun(t, false, func(c *Config) { c.Earlier = nothingEarlier{} })
		if s.lanes.earlier != nil || l.count("takes no samples out of order") > 0 || l.count("the newest ticks go first") != 1 {
			t.Errorf("log: %s", l)
		}
		if rc.requests[0].Header.Get(headerSeq) == "" || l.count("former sessions") > 0 {
			t.Errorf("the first request is %v; log: %s", rc.requests[0].Header, l)
		}
	})
}

// refusing answers some requests with 400 and passes the others on.
type refusing struct {
	to     http.RoundTripper
	when   func(n int, req *http.Request) (message string, yes bool)
	n      *int
	probes *int
}

func (f refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get(headerSeq) == "" {
		*f.probes++
	}
	*f.n++
	if m, yes := f.when(*f.n, req); yes {
		return &http.Response{StatusCode: 400, Header: http.Header{headerSamples: {"0"}}, Body: io.NopCloser(strings.NewReader(m)), Request: req}, nil
	}
	return f.to.RoundTrip(req)
}

// TestOnlyOrderDecidesOrder: a refusal that is not for the order of samples does not
// make a receiver one that takes them in order alone.
func TestOnlyOrderDecidesOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		refuse map[int]string // probes, by number from 1
		strict bool
	}{
		{name: "the newer once", refuse: map[int]string{1: "some fault"}},
		{name: "everything for a while", refuse: map[int]string{2: "some fault", 3: "some fault"}},
		{name: "the older alone", refuse: map[int]string{2: "no"}, strict: true},
		{name: "the older, in words", refuse: map[int]string{2: "Out-of-Order sample"}, strict: true},
		{name: "the newer, in words", refuse: map[int]string{1: "out of order sample"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				n, probes := 0, 0
				_, _, _, l, _ := outageRun(t, false, func(cfg *Config) {
					cfg.Transport = refusing{to: cfg.Transport, n: &n, probes: &probes, when: func(_ int, req *http.Request) (string, bool) {
						if d := time.Since(began); d > 10*time.Second && d < 40*time.Second {
							probes = 0
							return "", false // it is away
						}
						m, yes := c.refuse[probes]
						return m, yes && req.Header.Get(headerSeq) == ""
					}}
				})
				strict, live := l.count("takes no samples out of order"), l.count("the newest ticks go first")
				if c.strict && (strict != 1 || live != 0) || !c.strict && (strict != 0 || live == 0) {
					t.Errorf("log:\n%s", l)
				}
			})
		})
	}
}
