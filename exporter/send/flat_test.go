package send

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

// TestFlat: of a counter every sample is there at which it moves and the one before,
// and no more than the interval is between two that are sent; what is not there
// tells nothing. Gauges keep all.
func TestFlat(t *testing.T) {
	first := seed(t)
	for i := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { flatRun(t, first+i) })
	}
}

func flatRun(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	r := newRun(seed, 150, 600)
	hold(r, rnd)
	rc := &receiver{script: func(int, *http.Request, Protocol, int) answer {
		if rnd.IntN(4) == 0 {
			return status(503)
		}
		return answer{code: 204, store: true}
	}}
	in := &ring{}
	cfg := r.config(rc, in, &logs{})
	cfg.Flat, cfg.Interval, cfg.MaxSamples = time.Second, 1700*time.Millisecond, 500+rnd.IntN(20000)
	cfg.ShutdownTimeout, cfg.StaleOnStop = 5*time.Minute, true
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
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	rc.check(t)

	want := r.want(external, nil)
	want.end(r.ms[len(r.ms)-1] + 1)
	saved, counters := 0, map[string]bool{}
	for i := range r.series {
		if r.series[i].Type == collectors.Counter {
			counters[r.series[i].Name] = true
		}
	}
	for k, ss := range want {
		name, _, _ := strings.Cut(strings.TrimPrefix(k[strings.Index(k, "__name__="):], `__name__="`), `"`)
		saved += checkFlat(t, k, ss, rc.stored[k], counters[name])
	}
	if got := metric(s, "samples_saved_total", ""); got != float64(saved) || saved < 1000 {
		t.Errorf("seed %d: %v samples counted as saved, %d are", seed, got, saved)
	}
}

// hold makes most counters stand still most of the time, and series come and go.
func hold(r *run, rnd *rand.Rand) {
	for slot := range r.series {
		if r.series[slot].Type != collectors.Counter {
			continue
		}
		move := rnd.IntN(40)
		v := r.ticks[0].Values[slot]
		gone := 0
		for i := range r.ticks {
			if rnd.IntN(40) < move && move > 20 || rnd.IntN(100) == 0 {
				v += 1 + rnd.Int64N(100)
			}
			r.ticks[i].Values[slot] = v
			if rnd.IntN(300) == 0 {
				gone = rnd.IntN(30)
			}
			if gone > 0 {
				gone--
				r.ticks[i].Present[slot>>6] &^= 1 << (slot & 63)
			}
		}
	}
}

// checkFlat compares what a series should be with what was stored, and returns how
// many samples were saved.
func checkFlat(t *testing.T, k string, want, got []sample, counter bool) (saved int) {
	t.Helper()
	j := 0
	sent := int64(0)
	for i, w := range want {
		if j < len(got) && got[j].Ms == w.Ms {
			if got[j].Bits != w.Bits {
				t.Fatalf("%s at %d is %x, want %x", k, w.Ms, got[j].Bits, w.Bits)
			}
			sent = w.Ms
			j++
			continue
		}
		saved++
		switch {
		case !counter:
			t.Fatalf("%s at %d is missing, and no counter", k, w.Ms)
		case i == 0 || want[i-1].Bits != w.Bits:
			t.Fatalf("%s at %d is missing, where it moved", k, w.Ms)
		case i+1 < len(want) && want[i+1].Bits != w.Bits:
			t.Fatalf("%s at %d is missing, before it moved", k, w.Ms)
		case w.Ms-sent >= 1000:
			t.Fatalf("%s at %d is missing, %d ms after the last", k, w.Ms, w.Ms-sent)
		}
	}
	if j != len(got) {
		t.Fatalf("%s: %d samples that were not sampled, the first at %d", k, len(got)-j, got[j].Ms)
	}
	return saved
}

// TestFlatTakesNoMemory: a push is encoded without allocation with it, too.
func TestFlatTakesNoMemory(t *testing.T) {
	r := newRun(1, 300, 50)
	hold(r, rand.New(rand.NewPCG(1, 1)))
	var b batch
	var f flatness
	var e encoder
	table := newTable(V2, r.series, external)
	lim := bounds{bytes: 1 << 20, samples: 1 << 20}
	round := func() {
		b.reset(len(r.series))
		b.follow(&f, time.Second)
		for i := range r.ticks {
			b.add(&r.ticks[i], r.ms[i])
		}
		b.prepare()
		e.encode(table, &b, 0, lim, false, nil)
		b.done()
	}
	round()
	if n := testing.AllocsPerRun(20, round); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
