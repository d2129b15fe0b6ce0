package tick

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

// fakeTime is time that passes only when somebody sleeps or a source says that it
// took long. It calls stop once until is reached.
type fakeTime struct {
	mu     sync.Mutex
	now    int64
	offset int64
	until  int64
	stop   func()
	// wake is how late a sleeper wakes up.
	wake func(target int64) int64
}

func (f *fakeTime) Mono() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fakeTime) Observe() int64 { return f.offset }

func (f *fakeTime) SleepUntil(mono int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wake != nil {
		mono += f.wake(mono)
	}
	f.now = max(f.now, mono)
	if f.now >= f.until && f.stop != nil {
		f.stop()
	}
}

func (f *fakeTime) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now += int64(d)
}

// seen is one tick as the sink got it.
type seen struct {
	seq    uint64
	mono   int64
	read   uint64
	values []int64
	has    []bool
}

type fakeSink struct{ ticks []seen }

func (s *fakeSink) Append(seq uint64, mono int64, read uint64, values []int64, present []uint64) {
	tick := seen{seq: seq, mono: mono, read: read, values: append([]int64(nil), values...)}
	for i := range values {
		tick.has = append(tick.has, present[i>>6]>>(i&63)&1 == 1)
	}
	s.ticks = append(s.ticks, tick)
}

// fakeSource is a source of one gauge that counts its reads.
type fakeSource struct {
	slot  int
	known bool
	reads int64
	fn    func(reads int64) error
}

var fakeMetric = collectors.Metric{Name: "fake", Type: collectors.Gauge}

func (s *fakeSource) Read(out *collectors.Out) error {
	if !s.known {
		s.slot, s.known = out.Add(&fakeMetric), true
	}
	s.reads++
	if s.fn != nil {
		if err := s.fn(s.reads); err != nil {
			return err
		}
	}
	out.Set(s.slot, s.reads)
	return nil
}

func (s *fakeSource) Close() error { return nil }

func fakeSpec(name string, cadence time.Duration, fn func(int64) error) collectors.Spec {
	return collectors.Spec{Name: name, Cadence: cadence, New: func(collectors.Env) (collectors.Source, error) {
		return &fakeSource{fn: fn}, nil
	}}
}

var errFake = errors.New("no such thing")

// rig is a loop on fake time.
type rig struct {
	t    *testing.T
	time *fakeTime
	sink fakeSink
	loop *Loop
	log  strings.Builder
}

func newRig(t *testing.T, rate int, specs ...collectors.Spec) *rig {
	t.Helper()
	r := &rig{t: t, time: &fakeTime{}}
	var err error
	r.loop, err = New(Config{Rate: rate, Specs: specs, Schema: new(collectors.Schema), Sink: &r.sink, Clock: r.time,
		Logger: slog.New(slog.NewTextHandler(&r.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// self is the value of a self metric.
func (r *rig) self(name, collector string) float64 {
	r.t.Helper()
	for _, m := range r.loop.Self() {
		if m.Metric.Name == name && (collector == "" || m.Labels[0].Value == collector) {
			v, ok := m.Read()
			if !ok {
				r.t.Fatalf("%s has no value", name)
			}
			return m.Metric.Value(v)
		}
	}
	r.t.Fatalf("no metric %s of %q", name, collector)
	return 0
}
