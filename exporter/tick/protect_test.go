package tick

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

// TestProtect: a source that takes long is read less often, and told of, until it
// takes less again. One that does not is left alone.
func TestProtect(t *testing.T) {
	r := &rig{t: t, time: &fakeTime{}}
	cost := 2 * time.Millisecond
	var err error
	r.loop, err = New(Config{Rate: 100, Protect: 0.05, Schema: new(collectors.Schema), Sink: &r.sink, Clock: r.time,
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
		Specs: []collectors.Spec{
			fakeSpec("cheap", 0, func(int64) error { r.time.pass(100 * time.Microsecond); return nil }),
			fakeSpec("dear", 0, func(int64) error { r.time.pass(cost); return nil }),
			fakeSpec("seldom", time.Second, func(int64) error { r.time.pass(5 * time.Millisecond); return nil }),
			fakeSpec("once", 0, func(n int64) error {
				if n == 300 {
					r.time.pass(900 * time.Millisecond)
				}
				r.time.pass(100 * time.Microsecond)
				return nil
			}),
			fakeSpec("varies", 0, func(n int64) error { r.time.pass(time.Duration(470+50*(n%3)) * time.Microsecond); return nil }),
		}})
	if err != nil {
		t.Fatal(err)
	}
	r.time.until = int64(2 * time.Minute)
	at := func(after time.Duration, f func()) {
		stop := r.time.stop
		r.loop.cfg.Timing = func(_, _, _ int64) {
			if r.time.Mono() >= int64(after) && f != nil {
				f()
				f = nil
			}
		}
		r.time.stop = stop
	}
	var during []Status
	at(40*time.Second, func() {
		during = r.loop.Sources()
		if got := r.self("ticktier_exporter_collectors_slowed", ""); got != 2 {
			t.Errorf("%v sources are slowed", got)
		}
		// 2.4 ms of 50 are a share of less than 0.05, 2.4 of 40 are not.
		if got := r.self("ticktier_exporter_collector_cadence_seconds", "dear"); got != 0.05 {
			t.Errorf("dear is read every %v s", got)
		}
		if got := r.self("ticktier_exporter_collector_cadence_seconds", "cheap"); got != 0.01 {
			t.Errorf("cheap is read every %v s", got)
		}
		cost = 10 * time.Microsecond
	})
	r.run(2 * time.Minute)

	if s := during[1]; !s.Slowed || s.Cadence != 50*time.Millisecond {
		t.Errorf("%+v", s)
	}
	for _, i := range []int{0, 2, 3} {
		if s := during[i]; s.Slowed || s.Cadence != r.loop.cfg.Specs[i].Cadence {
			t.Errorf("%+v", s)
		}
	}
	reads := map[bool]int{}
	for _, s := range r.sink.ticks {
		if s.read&2 != 0 {
			reads[s.mono < int64(40*time.Second)]++
		}
	}
	// Slowed after a window of ten seconds, and held so for a minute, though it got
	// cheap meanwhile.
	if n := reads[true]; n < 1450 || n > 1620 {
		t.Errorf("%d reads in the first 40 seconds", n)
	}
	if n := reads[false]; n < 4000 || n > 6000 {
		t.Errorf("%d reads in the last 80 seconds", n)
	}
	if s := r.loop.Sources()[1]; s.Slowed || s.Cadence != 0 {
		t.Errorf("in the end: %+v", s)
	}
	log := r.log.String()
	// What varies about its share is slowed once.
	if strings.Count(log, "read less often") != 2 || strings.Count(log, "as it should be again") != 1 || strings.Count(log, "collector=varies") != 1 {
		t.Error(log)
	}
}

func TestPlanned(t *testing.T) {
	spec := fakeSpec("x", 0, nil)
	blocking := spec
	blocking.Blocking = true
	seldom := fakeSpec("x", time.Minute, nil)
	for _, c := range []struct {
		spec    *collectors.Spec
		cost    time.Duration
		floor   int
		protect float64
		want    time.Duration
		slowed  bool
	}{
		{&spec, time.Second, 0, 0, 0, false},
		{&spec, time.Millisecond, 0, 0.01, 100 * time.Millisecond, true},
		{&spec, time.Millisecond, 0, 0.5, 0, false},
		{&blocking, time.Second, 0, 0.01, 0, false},
		{&seldom, time.Second, 0, 0.01, 100 * time.Second, true},
		{&seldom, time.Millisecond, 10, 0.1, 100 * time.Millisecond, false},
		{&seldom, time.Millisecond, 100, 0.01, 100 * time.Millisecond, true},
		{&spec, 1 << 62, 0, 1e-9, 24 * time.Hour, true},
	} {
		if got, slowed := Planned(c.spec, c.cost, 100, c.floor, c.protect); got != c.want || slowed != c.slowed {
			t.Errorf("%+v: every %v, slowed %v", c, got, slowed)
		}
	}
	for _, share := range []float64{-1, 2} {
		c := Config{Rate: 10, Protect: share}
		if err := c.check(); err == nil || !strings.Contains(err.Error(), "--rate.protect") {
			t.Errorf("a share of %v: %v", share, err)
		}
	}
}
