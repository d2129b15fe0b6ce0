package tick

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

type countSink struct {
	n     int
	reads uint64
}

func (s *countSink) Append(_ uint64, _ int64, read uint64, _ []int64, _ []uint64) {
	s.n++
	s.reads |= read
}

func newReal(t testing.TB, rate int) (*Loop, *countSink) {
	t.Helper()
	sink := &countSink{}
	l, err := New(Config{Rate: rate, Specs: collectors.All(), Schema: new(collectors.Schema), Sink: sink, Clock: NewClock(),
		Env: collectors.Env{Procfs: "/proc", Sysfs: "/sys", Rootfs: "/"}})
	if err != nil {
		t.Fatal(err)
	}
	return l, sink
}

// A tick allocates nothing, with every source of this machine read in it.
func TestTickAllocatesNothing(t *testing.T) {
	l, sink := newReal(t, 1)
	defer l.stop()
	for _, s := range l.sources {
		if s.worker != nil {
			go s.worker.run(&s.spec, l.env, s.out, l.cfg.Clock.Mono)
		}
		s.every = 1
	}
	slot := int64(0)
	tick := func() { l.tick(slot); slot++ }
	tick()
	tick()
	// A process or an interface that appears meanwhile is a new row, which may
	// allocate; a tick that always allocates does so in every round.
	n := testing.AllocsPerRun(100, tick)
	for range 9 {
		if n == 0 {
			break
		}
		n = testing.AllocsPerRun(30, tick)
	}
	if n != 0 {
		t.Errorf("got %v allocations a tick, want 0", n)
	}
	if sink.reads == 0 || l.busy.Load() == 0 {
		t.Error("nothing was read")
	}
}

// At 100 Hz on a machine that does other things too, slots are read and numbered.
func TestRunOnThisMachine(t *testing.T) {
	l, sink := newReal(t, 100)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if total := uint64(sink.n) + l.missed.Load(); total < 5 || total > 60 {
		t.Errorf("got %d ticks and %d missed", sink.n, l.missed.Load())
	}
}

func BenchmarkTick(b *testing.B) {
	for _, rate := range []int{1, 10} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			l, _ := newReal(b, rate)
			defer l.stop()
			for _, s := range l.sources {
				if s.worker != nil {
					go s.worker.run(&s.spec, l.env, s.out, l.cfg.Clock.Mono)
				}
			}
			slot := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				l.tick(slot)
				slot++
			}
		})
	}
}
