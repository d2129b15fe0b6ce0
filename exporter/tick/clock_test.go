package tick

import (
	"testing"
	"time"
)

func TestClockWall(t *testing.T) {
	c := NewClock()
	ms := int64(time.Millisecond)
	base := int64(1_700_000_000_000)
	c.entries[0] = wallEntry{offset: base*ms + 300} // not on a whole millisecond of its own
	for _, test := range []struct {
		name     string
		at, off  int64 // when the wall clock is looked at, and what it is off by
		mono     int64
		want     int64
		steps    uint64
		newRange int
	}{
		{"start", 0, 0, 5 * ms, 5, 0, 1},
		{"less than a millisecond is nothing", 10 * ms, ms - 1, 10 * ms, 10, 0, 1},
		{"slewed forwards", 20 * ms, 2*ms + 5, 20 * ms, 22, 0, 2},
		{"earlier times keep theirs", 20 * ms, 2 * ms, 19 * ms, 19, 0, 2},
		{"slewed backwards", 30 * ms, ms, 30 * ms, 31, 0, 3},
		{"stepped by an hour: now", 40 * ms, 3600_001 * ms, 40 * ms, 3600_041, 1, 3},
		{"stepped by an hour: before", 40 * ms, 3600_001 * ms, 21 * ms, 3600_023, 1, 3},
		{"stepped back: now", 50 * ms, -5000 * ms, 50 * ms, -4950, 2, 3},
		{"stepped back: at the start", 50 * ms, -5000 * ms, 0, -5001, 2, 3},
	} {
		c.observe(test.at, base*ms+300+test.off)
		if got := c.Wall(test.mono) - base; got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
		if c.Steps() != test.steps || len(c.entries) != test.newRange {
			t.Errorf("%s: got %d steps and %d entries", test.name, c.Steps(), len(c.entries))
		}
	}
}

// A clock that slews for ever fills its table and keeps the newest part.
func TestClockTableBounded(t *testing.T) {
	c := NewClock()
	first := c.entries[0].offset
	for i := range int64(3 * maxWallEntries) {
		c.observe(i*second, first+i*int64(time.Millisecond))
	}
	if len(c.entries) > maxWallEntries || cap(c.entries) != maxWallEntries {
		t.Errorf("got %d entries in room for %d", len(c.entries), cap(c.entries))
	}
	n := int64(3*maxWallEntries - 1)
	if got, want := c.Wall(n*second), (n*second+first+n*int64(time.Millisecond))/1e6; got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestClockReal(t *testing.T) {
	c := NewClock()
	before := c.Mono()
	c.SleepUntil(before + int64(3*time.Millisecond))
	after := c.Mono()
	if after-before < int64(3*time.Millisecond) || after-before > int64(2*time.Second) {
		t.Errorf("slept %v", time.Duration(after-before))
	}
	if off := c.Wall(c.Mono()) - time.Now().UnixMilli(); off < -50 || off > 50 {
		t.Errorf("wall time is off by %d ms", off)
	}
	if n := testing.AllocsPerRun(100, func() { c.Observe(); c.Wall(c.Mono()) }); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

// Time goes on while the machine is suspended, though the runtime's clock does not,
// and never goes back.
func TestClockSuspended(t *testing.T) {
	c := NewClock()
	at := func(times ...int64) func() int64 {
		return func() int64 {
			t := times[0]
			if times = times[1:]; len(times) == 0 {
				times = []int64{t + second}
			}
			return t
		}
	}
	c.woke(at(5*second, 6*second), at(6*second)) // waited for its turn
	if got := c.suspended.Load(); got != 0 {
		t.Errorf("suspended for %v", time.Duration(got))
	}
	// The second reading is the best.
	c.woke(at(6*second, 7*second, 7*second, 7*second+100, 8*second, 9*second), at(67*second, 67*second+50, 69*second))
	if got := c.suspended.Load(); got != 60*second+50 {
		t.Errorf("suspended for %v", time.Duration(got))
	}
	before := c.Mono()
	if before < 60*second || before > 70*second {
		t.Errorf("after a minute it is %v", time.Duration(before))
	}
	c.woke(at(10*second), at(70*second))
	if c.Mono() < before {
		t.Error("time went back")
	}
}

// SleepUntil never returns before its time.
func TestClockSleep(t *testing.T) {
	c := NewClock()
	for range 50 {
		until := c.Mono() + 20_000
		c.SleepUntil(until)
		if now := c.Mono(); now < until {
			t.Fatalf("woke %d ns early", until-now)
		}
	}
}

func BenchmarkMono(b *testing.B) {
	c := NewClock()
	for b.Loop() {
		c.Mono()
	}
}

// TestClockCorrect follows another clock by bounds, and moves no more than they ask.
func TestClockCorrect(t *testing.T) {
	c := NewClock()
	ms := int64(time.Millisecond)
	offset := func() int64 { return c.entries[len(c.entries)-1].offset }
	first := offset()
	c.Correct(first-500*ms, first+600*ms)
	if c.Steps() != 0 || offset() != first {
		t.Errorf("a clock within the bounds moved by %d", offset()-first)
	}
	c.Correct(first+3600_000*ms, first+3601_000*ms)
	if d := offset() - first; c.Steps() != 1 || d < 3600_000*ms || d > 3601_000*ms {
		t.Errorf("corrected by %d ns in %d steps", d, c.Steps())
	}
	for _, by := range []int64{3600_000, 3600_100, 3600_050, 3600_100} { // each cut to a whole second
		c.Correct(first+by*ms, first+(by+1000)*ms)
	}
	at := offset()
	c.Correct(at-100*ms, at+900*ms)
	c.Observe() // which this machine's clock has no part in any more
	if offset() != at {
		t.Errorf("moved by %d ns within the bounds", offset()-at)
	}
	c.Correct(at+20*ms, at+1020*ms)
	if d := offset() - at; d < 19*ms || d > 21*ms {
		t.Errorf("moved by %d ns, 20 ms are needed", d)
	}
	if c.SinceBoot(0) <= 0 || c.SinceBoot(5) != c.SinceBoot(0)+5 {
		t.Errorf("%v since boot", c.SinceBoot(0))
	}
}
