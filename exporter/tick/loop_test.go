package tick

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ticktier/ticktier/collectors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs until the fake time has passed d.
func (r *rig) run(d time.Duration) []seen {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.time.until, r.time.stop = int64(d), cancel
	if err := r.loop.Run(ctx); err != nil {
		r.t.Fatal(err)
	}
	return r.sink.ticks
}

func TestConfig(t *testing.T) {
	good := Config{Rate: 10, Schema: new(collectors.Schema), Sink: &fakeSink{}, Clock: &fakeTime{}}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	for _, rate := range []int{-1, 0, 1001} {
		c := good
		c.Rate = rate
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("--rate=%d", rate)) {
			t.Errorf("rate %d: got %v", rate, err)
		}
	}
	c := good
	for i := range MaxSources + 1 {
		c.Specs = append(c.Specs, fakeSpec(fmt.Sprint(i), 0, nil))
	}
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "65 sources") {
		t.Errorf("too many sources: got %v", err)
	}
	c.Specs = c.Specs[:MaxSources]
	if _, err := New(c); err != nil {
		t.Error(err)
	}
	if _, err := New(Config{Rate: 10}); err == nil {
		t.Error("no sink and no error")
	}
}

// Slots are whole multiples of the period in wall time; a tick that begins a little
// late carries its slot's time, one that begins later the true time.
func TestTimes(t *testing.T) {
	r := newRig(t, 10, fakeSpec("a", 0, nil))
	r.time.now = 42e6
	r.time.offset = 1_700_000_000_123e6
	late := []time.Duration{0, 900 * time.Microsecond, 1100 * time.Microsecond, 50 * time.Millisecond, 0}
	i := 0
	r.time.wake = func(target int64) int64 { i++; return int64(late[min(i-1, len(late)-1)]) }
	ticks := r.run(500 * time.Millisecond)
	first := int64(77e6) // 1.700.000.000,2 s
	wanted := []int64{0, 100e6, 201.1e6, 350e6, 400e6}
	if len(ticks) != len(wanted) {
		t.Fatalf("got %d ticks, want %d", len(ticks), len(wanted))
	}
	for i, w := range wanted {
		if ticks[i].mono != first+w || ticks[i].seq != uint64(i) {
			t.Errorf("tick %d: got seq %d at %d, want %d", i, ticks[i].seq, ticks[i].mono, first+w)
		}
	}
	if r.self("ticktier_exporter_ticks_total", "") != 5 || r.self("ticktier_exporter_ticks_late_total", "") != 2 ||
		r.self("ticktier_exporter_ticks_missed_total", "") != 0 {
		t.Error("ticks are counted wrongly")
	}
}

// What a slow read makes impossible is missed, and its number is skipped.
func TestMissed(t *testing.T) {
	var r *rig
	r = newRig(t, 100, fakeSpec("slow", 0, func(n int64) error {
		if n == 3 {
			r.time.pass(35 * time.Millisecond)
		}
		return nil
	}))
	ticks := r.run(100 * time.Millisecond)
	var seqs []uint64
	for _, tick := range ticks {
		seqs = append(seqs, tick.seq)
	}
	if got := fmt.Sprint(seqs[:5]); got != "[0 1 2 5 6]" {
		t.Errorf("got slots %s", got)
	}
	// The late tick is at slot 5, begun 5 ms late; the next is on time again.
	if ticks[3].mono != 55e6 || ticks[4].mono != 60e6 {
		t.Errorf("got times %d and %d", ticks[3].mono, ticks[4].mono)
	}
	if got := r.self("ticktier_exporter_ticks_missed_total", ""); got != 2 {
		t.Errorf("got %v missed, want 2", got)
	}
}

// Sources of a slower cadence are all read in the first tick and then spread.
func TestCadence(t *testing.T) {
	r := newRig(t, 10, fakeSpec("a", 0, nil), fakeSpec("b", time.Second, nil), fakeSpec("c", time.Second, nil),
		fakeSpec("d", 300*time.Millisecond, nil))
	ticks := r.run(5 * time.Second)
	if ticks[0].read != 0b1111 {
		t.Errorf("the first tick read %04b", ticks[0].read)
	}
	reads := map[uint64][]uint64{}
	for _, tick := range ticks[1:] {
		for bit := uint64(1); bit <= 8; bit <<= 1 {
			if tick.read&bit != 0 {
				reads[bit] = append(reads[bit], tick.seq)
			}
		}
		if tick.read&0b110 == 0b110 {
			t.Errorf("slot %d read both slow sources", tick.seq)
		}
	}
	for bit, every := range map[uint64]uint64{1: 1, 2: 10, 4: 10, 8: 3} {
		for i, seq := range reads[bit][1:] {
			if seq-reads[bit][i] != every {
				t.Errorf("source %b: slots %d and %d", bit, reads[bit][i], seq)
			}
		}
		if len(reads[bit]) < int(48/every) {
			t.Errorf("source %b: %d reads", bit, len(reads[bit]))
		}
	}
}

// Each tick tells how it went: here the third wakes 3 ms late and takes 120 ms, so
// that the next has no time to sleep and begins 23 ms late.
func TestTiming(t *testing.T) {
	var r *rig
	r = newRig(t, 10, fakeSpec("a", 0, func(n int64) error {
		if n == 3 {
			r.time.pass(120 * time.Millisecond)
		}
		return nil
	}))
	wakes := 0
	r.time.wake = func(int64) int64 {
		if wakes++; wakes == 2 {
			return 3e6
		}
		return 0
	}
	var got []string
	r.loop.cfg.Timing = func(late, took, wake int64) { got = append(got, fmt.Sprint(late/1e6, took/1e6, wake)) }
	r.run(450 * time.Millisecond)
	want := "[0 0 -1 0 0 0 3 120 3000000 23 0 -1 0 0 0]"
	if len(got) < 5 || fmt.Sprint(got[:5]) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// A floor makes slow sources faster, and no source slower.
func TestFloor(t *testing.T) {
	for _, c := range []struct {
		floor int
		want  []int64
	}{{0, []int64{1, 10, 600}}, {1, []int64{1, 10, 10}}, {5, []int64{1, 2, 2}}, {10, []int64{1, 1, 1}}} {
		r := newRig(t, 10, fakeSpec("a", 0, nil), fakeSpec("b", time.Second, nil), fakeSpec("c", time.Minute, nil))
		cfg := r.loop.cfg
		cfg.FloorHz = c.floor
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range l.sources {
			if s.every != c.want[i] {
				t.Errorf("floor %d: source %d is read every %d slots, want %d", c.floor, i, s.every, c.want[i])
			}
		}
		cfg.FloorHz = 11
		if _, err := New(cfg); err == nil {
			t.Error("a floor above the rate is taken")
		}
	}
}

// A source that fails is absent, not zero; it is tried at every slot of its own, and
// others do not notice.
func TestFailing(t *testing.T) {
	r := newRig(t, 10, fakeSpec("bad", 0, func(n int64) error {
		if n == 3 || n == 4 {
			return errFake
		}
		return nil
	}), fakeSpec("good", 0, nil))
	ticks := r.run(time.Second)
	for i, tick := range ticks {
		if got, want := tick.has[0], i != 2 && i != 3; got != want {
			t.Errorf("tick %d: present %v", i, got)
		}
		if !tick.has[1] || tick.values[1] != int64(i+1) || tick.read != 0b11 {
			t.Errorf("tick %d: the good source has %v %d, read %b", i, tick.has[1], tick.values[1], tick.read)
		}
	}
	if r.self("ticktier_exporter_collector_failures_total", "bad") != 2 ||
		r.self("node_scrape_collector_success", "bad") != 1 || r.self("ticktier_exporter_collector_failures_total", "good") != 0 {
		t.Error("failures are counted wrongly")
	}
	if n := strings.Count(r.log.String(), "\n"); n != 2 || !strings.Contains(r.log.String(), "works again") {
		t.Errorf("got %d log lines, want 2:\n%s", n, r.log.String())
	}
}

// A panic costs the source's own series, and it is left alone for a while.
func TestPanic(t *testing.T) {
	r := newRig(t, 10, fakeSpec("bad", 0, func(n int64) error {
		if n == 2 {
			panic("row 7")
		}
		return nil
	}), fakeSpec("good", 0, nil))
	ticks := r.run(12 * time.Second)
	back := 0
	for i, tick := range ticks {
		if i > 0 && back == 0 && tick.has[0] {
			back = i
		}
		if !tick.has[1] {
			t.Errorf("tick %d: the good source is absent", i)
		}
	}
	if back < 100 || back > 103 {
		t.Errorf("back at tick %d, want about 101", back)
	}
	if !strings.Contains(r.log.String(), "row 7") {
		t.Errorf("the log does not name the panic: %s", r.log.String())
	}
}

// A source that is not there is tried again every ten seconds.
func TestNotThere(t *testing.T) {
	tries := 0
	spec := fakeSpec("later", time.Minute, nil)
	fine := spec.New
	spec.New = func(env collectors.Env) (collectors.Source, error) {
		if tries++; tries < 3 {
			return nil, errFake
		}
		return fine(env)
	}
	r := newRig(t, 10, spec)
	if got := r.self("node_scrape_collector_success", "later"); got != 0 {
		t.Errorf("success is %v", got)
	}
	ticks := r.run(25 * time.Second)
	first := -1
	for i, tick := range ticks {
		if tick.read != 0 {
			first = i
			break
		}
	}
	if tries != 3 || first < 199 || first > 202 {
		t.Errorf("got %d tries, first read in tick %d", tries, first)
	}
	if r.self("node_scrape_collector_success", "later") != 1 {
		t.Error("success is not 1")
	}
}

// Cancelling ends the loop soon, however slow the rate, and real time passes.
func TestCancel(t *testing.T) {
	var sink fakeSink
	l, err := New(Config{Rate: 1, Specs: []collectors.Spec{fakeSpec("a", 0, nil)}, Schema: new(collectors.Schema),
		Sink: &sink, Clock: NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the loop does not stop")
	}
}
