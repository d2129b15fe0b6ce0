package send

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	realring "github.com/ticktier/ticktier/exporter/ring"
)

// TestLiveModel sends a real ring's ticks, live edge first, through outages of any
// length to a receiver that takes samples out of order or does not. What is not
// lost arrives once, and what is lost is counted.
func TestLiveModel(t *testing.T) {
	first := seed(t)
	for i := range uint64(14) {
		synctest.Test(t, func(t *testing.T) { liveModel(t, first+i) })
	}
}

func liveModel(t *testing.T, seed uint64) {
	rnd, flip := rand.New(rand.NewPCG(seed, 11)), rand.New(rand.NewPCG(seed, 12))
	r := newRun(seed, 60+rnd.IntN(200), 1500)
	in, err := realring.New(realring.MinBytes)
	if err != nil {
		t.Fatal(err)
	}
	in.Delivered(0)
	var away atomic.Bool // not under the receiver's lock, which it holds while it hangs
	rc := &receiver{}
	rc.script = func(int, *http.Request, Protocol, int) answer {
		switch {
		case away.Load() && rnd.IntN(3) == 0:
			return answer{hang: true}
		case away.Load():
			return answer{err: errors.New("connection refused")}
		case rnd.IntN(10) == 0:
			return status(503)
		}
		return answer{code: 204, store: true}
	}
	strict := rnd.IntN(3) == 0
	var rt http.RoundTripper = rc
	if strict {
		rt = inOrder{rc, map[string]int64{}}
	}
	l := &logs{}
	cfg := r.config(rt, in.Reader(), l)
	cfg.Order, cfg.Behind, cfg.BacklogShare = Live, in.Reader(), 0.1+0.9*rnd.Float64()
	cfg.Interval, cfg.Period, cfg.Timeout = time.Duration(300+rnd.IntN(2000))*time.Millisecond, 100*time.Millisecond, 5*time.Second
	cfg.Edge = func() uint64 { return in.Stats().LastSeq }
	cfg.Now = func() int64 { return in.Stats().LastTime }
	cfg.ShutdownTimeout, cfg.MaxSamples = 10*time.Minute, 500+rnd.IntN(5000)
	last := uint64(0)
	cfg.Delivered = func(p Progress) {
		if p.Seq < last {
			t.Errorf("seed %d: the cursor went back from %d to %d", seed, last, p.Seq)
		}
		last = p.Seq
		in.Delivered(p.Seq)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	for i := range r.ticks {
		tick := &r.ticks[i]
		in.Append(tick.Seq, tick.Time, tick.Read, tick.Values, tick.Present)
		if flip.IntN(150) == 0 {
			away.Store(!away.Load())
		}
		time.Sleep(100 * time.Millisecond) // fake time
	}
	away.Store(false)
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	rc.check(t)

	if want := r.ticks[len(r.ticks)-1].Seq + 1; s.Cursor() != want {
		t.Errorf("seed %d: cursor is %d, want %d\n%s", seed, s.Cursor(), want, l)
	}
	missing := map[int64]bool{}
	for k, ss := range r.want(external, nil) {
		got := map[int64]uint64{}
		for _, x := range rc.stored[k] {
			if _, ok := got[x.Ms]; ok {
				t.Fatalf("seed %d: %s has two samples at %d", seed, k, x.Ms)
			}
			got[x.Ms] = x.Bits
		}
		for _, x := range ss {
			bits, ok := got[x.Ms]
			switch {
			case !ok:
				missing[x.Ms] = true
			case bits != x.Bits:
				t.Fatalf("seed %d: %s at %d is %x, want %x", seed, k, x.Ms, bits, x.Bits)
			}
			delete(got, x.Ms)
		}
		if len(got) > 0 {
			t.Fatalf("seed %d: %s has %d samples that were not sampled", seed, k, len(got))
		}
	}
	lost := metric(s, "ticks_lost_total", "")
	t.Logf("seed %d: strict %v, %d ticks missing, %v lost, %d leaps", seed, strict, len(missing), lost, l.count("the newest ticks go first"))
	if float64(len(missing)) != lost || metric(s, "samples_rejected_total", "") != 0 {
		t.Errorf("seed %d: %d ticks are missing, %v counted as lost, %v samples rejected\n%s",
			seed, len(missing), lost, metric(s, "samples_rejected_total", ""), l)
	}
}
