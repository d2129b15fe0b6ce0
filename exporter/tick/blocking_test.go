package tick

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

// step runs the loop's ticks one by one without Run.
type stepper struct {
	*rig
	slot int64
	wg   sync.WaitGroup
}

func newStepper(t *testing.T, specs ...collectors.Spec) *stepper {
	s := &stepper{rig: newRig(t, 10, specs...)}
	for _, src := range s.loop.sources {
		if src.worker != nil {
			s.wg.Go(func() { src.worker.run(&src.spec, s.loop.envOf(src), src.out, s.loop.cfg.Clock.Mono) })
		}
	}
	return s
}

func (s *stepper) tick() seen {
	s.time.SleepUntil(s.loop.plan.at(s.slot))
	s.loop.tick(s.slot)
	s.slot++
	return s.sink.ticks[len(s.sink.ticks)-1]
}

// tickUntil ticks until the condition holds: the worker runs in real time.
func (s *stepper) tickUntil(what string, ok func(seen) bool) seen {
	s.t.Helper()
	for range 1000 {
		if tick := s.tick(); ok(tick) {
			return tick
		}
		time.Sleep(time.Millisecond) // lets the worker's goroutine answer
	}
	s.t.Fatalf("waited in vain: %s", what)
	return seen{}
}

func (s *stepper) close() {
	s.loop.stop()
	s.wg.Wait()
}

func TestBlockingReads(t *testing.T) {
	spec := fakeSpec("disk", 0, nil)
	spec.Blocking = true
	s := newStepper(t, fakeSpec("a", 0, nil), spec)
	defer s.close()
	if tick := s.tick(); tick.read != 0b01 {
		t.Errorf("the first tick read %b", tick.read)
	}
	tick := s.tickUntil("an answer", func(tick seen) bool { return tick.read == 0b11 })
	if !tick.has[1] || tick.values[1] < 1 {
		t.Errorf("got %v", tick)
	}
}

// A read that blocks costs one goroutine and its own series; when it comes back its
// old answer is dropped and the next one counts.
func TestBlockingHangs(t *testing.T) {
	hang := make(chan struct{})
	spec := fakeSpec("nfs", 0, func(n int64) error {
		if n == 2 {
			<-hang
		}
		return nil
	})
	spec.Blocking, spec.Deadline = true, 500*time.Millisecond
	s := newStepper(t, fakeSpec("a", 0, nil), spec)
	defer s.close()
	s.tickUntil("the first answer", func(tick seen) bool { return tick.read == 0b11 })
	tick := s.tickUntil("the deadline", func(tick seen) bool { return !tick.has[1] })
	if tick.read != 0b11 {
		t.Errorf("the deadline's tick read %b", tick.read)
	}
	for range 50 {
		if tick := s.tick(); tick.has[1] || tick.read != 0b01 || !tick.has[0] {
			t.Fatalf("while it hangs: %+v", tick)
		}
	}
	if s.self("node_scrape_collector_success", "nfs") != 0 || s.self("ticktier_exporter_collector_failures_total", "nfs") != 1 {
		t.Error("the hang is counted wrongly")
	}
	close(hang)
	tick = s.tickUntil("a new answer", func(tick seen) bool { return tick.has[1] })
	if tick.values[1] != 3 {
		t.Errorf("got read %d, want the third", tick.values[1])
	}
	if s.self("node_scrape_collector_success", "nfs") != 1 {
		t.Error("success is not 1")
	}
}

// A source that blocks when it is opened is no different, and one that is not there
// is retried.
func TestBlockingOpen(t *testing.T) {
	tries := 0
	spec := collectors.Spec{Name: "x", Blocking: true, New: func(collectors.Env) (collectors.Source, error) {
		if tries++; tries == 1 {
			return nil, errFake
		}
		return &fakeSource{}, nil
	}}
	s := newStepper(t, spec)
	defer s.close()
	tick := s.tickUntil("an answer", func(tick seen) bool { return len(tick.has) > 0 && tick.has[0] })
	if tick.seq < 100 {
		t.Errorf("there at tick %d, before the ten seconds", tick.seq)
	}
}

// Run ends although a read blocks, and names that one alone.
func TestBlockingStop(t *testing.T) {
	hang := make(chan struct{})
	spec := fakeSpec("nfs", 0, func(int64) error { <-hang; return nil })
	spec.Blocking = true
	specs := []collectors.Spec{spec}
	for i := range 20 {
		other := fakeSpec(fmt.Sprint("other", i), 0, nil)
		other.Blocking = true
		specs = append(specs, other)
	}
	var sink fakeSink
	var log strings.Builder
	l, err := New(Config{Rate: 100, Specs: specs, Schema: new(collectors.Schema), Sink: &sink, Clock: NewClock(),
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := l.Run(ctx); err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	if n := strings.Count(log.String(), "left behind"); n != 1 || !strings.Contains(log.String(), "collector=nfs") {
		t.Errorf("%d reads were left behind:\n%s", n, log.String())
	}
	close(hang)
	<-l.sources[0].worker.gone
}
