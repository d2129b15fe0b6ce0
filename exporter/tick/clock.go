package tick

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// wallStep is what a clock cannot move by slewing between two ticks: a larger
	// move is a step, and whoever set the clock says what time it really is.
	wallStep = 500 * time.Millisecond
	// wallMove is the smallest move that is noted. Samples carry milliseconds.
	wallMove = time.Millisecond
	// leastSuspension is less than it takes a machine to go to sleep and come back,
	// and more than two clocks may differ that the kernel drives alike.
	leastSuspension = time.Millisecond
	// maxWallEntries bounds the table: at 50 ppm, a bad quartz, a day and more.
	maxWallEntries = 4096
)

// Clock is monotonic time in nanoseconds since the clock was made, and the table
// that turns it into wall time. It counts through suspension, so that a machine that
// slept shows missed slots and not a stepped clock. Safe for concurrent use.
//
// It is CLOCK_BOOTTIME, which the kernel gives by a system call only, of 0.4 µs where
// that was measured; twenty of them in each tick were 2 to 4 % of its cost. So it is
// counted with the runtime's clock, which needs none and stands still while the
// machine is suspended, and how long that was is looked up after each sleep.
type Clock struct {
	start     time.Time
	zero      int64        // CLOCK_BOOTTIME at the start, or a little later
	suspended atomic.Int64 // since the start
	steps     atomic.Uint64
	corrected atomic.Bool  // another's clock holds
	other     atomic.Int64 // its offset, then

	mu      sync.RWMutex
	entries []wallEntry // by time; never empty
}

// wallEntry says that from mono on, wall time is mono + offset. Offsets of one clock
// differ by whole milliseconds, so that a schedule that began on a whole millisecond
// of wall time stays on whole milliseconds.
type wallEntry struct{ mono, offset int64 }

// NewClock starts a clock at zero.
func NewClock() *Clock {
	// In this order Mono is never behind the clock that SleepUntil sleeps by, or it
	// would return too early.
	c := &Clock{start: time.Now(), entries: make([]wallEntry, 0, maxWallEntries)}
	c.zero = nanos(unix.CLOCK_BOOTTIME)
	c.entries = append(c.entries, wallEntry{offset: c.measure()})
	return c
}

// nanos reads a clock that every kernel since 2.6.39 has.
func nanos(clock int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		panic("BUG: read a clock: " + err.Error())
	}
	return ts.Nano()
}

// Mono is the monotonic time.
func (c *Clock) Mono() int64 { return int64(time.Since(c.start)) + c.suspended.Load() }

// SleepUntil blocks the calling thread until the monotonic time mono.
func (c *Clock) SleepUntil(mono int64) {
	ts := unix.NsecToTimespec(mono + c.zero)
	for unix.ClockNanosleep(unix.CLOCK_BOOTTIME, unix.TIMER_ABSTIME, &ts, nil) == unix.EINTR {
	}
	c.woke(func() int64 { return int64(time.Since(c.start)) }, func() int64 { return nanos(unix.CLOCK_BOOTTIME) - c.zero })
}

// woke notes a suspension: boot time went on and the runtime's clock did not. It is
// seen by how much they differ at least, so that a thread that has to wait between
// the two readings sees none; then the best of a few readings tells how long it was.
func (c *Clock) woke(runtime, boot func() int64) {
	best, long := int64(1)<<62, int64(0)
	for range 5 {
		before, b, after := runtime(), boot(), runtime()
		if b-after-c.suspended.Load() < int64(leastSuspension) {
			return
		}
		if after-before < best {
			best, long = after-before, b-before
		}
	}
	c.suspended.Store(long)
}

// measure is wall time − monotonic time. A thread that was interrupted between the
// two readings tries again.
func (c *Clock) measure() int64 {
	best, offset := int64(1)<<62, int64(0)
	for range 3 {
		before := c.Mono()
		wall := wallNow()
		after := c.Mono()
		if after-before < best {
			best, offset = after-before, wall-before-(after-before)/2
		}
		if best < int64(20*time.Microsecond) {
			break
		}
	}
	return offset
}

// Observe compares the clocks, notes in the table when wall time moved, and returns
// the offset that holds from now on.
func (c *Clock) Observe() (offset int64) {
	if c.corrected.Load() {
		return c.observe(c.Mono(), c.other.Load())
	}
	return c.observe(c.Mono(), c.measure())
}

// Correct says that by another's clock wall − monotonic time lies between two bounds
// in ns. That clock holds from then on. Bounds that leave the present offset possible
// do not move it: a clock that tells whole seconds does not make this one jitter.
func (c *Clock) Correct(lo, hi int64) {
	c.mu.RLock()
	offset := c.entries[len(c.entries)-1].offset
	c.mu.RUnlock()
	if !c.corrected.Load() && (offset < lo || offset > hi) {
		offset = lo + (hi-lo)/2
	}
	c.other.Store(min(max(offset, lo), hi))
	c.corrected.Store(true)
	c.Observe()
}

// SinceBoot is how long after boot a monotonic time was.
func (c *Clock) SinceBoot(mono int64) time.Duration { return time.Duration(c.zero + mono) }

// Synced tells whether the kernel was told that the wall clock is right, as by NTP.
func Synced() bool {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return err == nil && state != unix.TIME_ERROR && kernelClock
}

func (c *Clock) observe(mono, measured int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.entries[len(c.entries)-1]
	mono = max(mono, last.mono) // two may observe at once
	moved := measured - last.offset
	if moved < int64(wallMove) && moved > -int64(wallMove) {
		return last.offset
	}
	moved = moved / int64(wallMove) * int64(wallMove)
	if moved >= int64(wallStep) || moved <= -int64(wallStep) {
		// Monotonic time was right all along: what was sampled before gets the
		// time that it had by the clock as it is now.
		c.steps.Add(1)
		for i := range c.entries {
			c.entries[i].offset += moved
		}
		return c.entries[len(c.entries)-1].offset
	}
	if len(c.entries) == maxWallEntries {
		n := copy(c.entries, c.entries[maxWallEntries/2:])
		c.entries = c.entries[:n]
	}
	c.entries = append(c.entries, wallEntry{mono: mono, offset: last.offset + moved})
	return last.offset + moved
}

// Wall is the wall time of a monotonic time, in Unix milliseconds. After a step of
// the wall clock the answer for times before it follows the new clock.
func (c *Clock) Wall(mono int64) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	i := len(c.entries) - 1
	for i > 0 && c.entries[i].mono > mono {
		i--
	}
	return floorDiv(mono+c.entries[i].offset, int64(time.Millisecond))
}

// Steps is how often the wall clock was stepped.
func (c *Clock) Steps() uint64 { return c.steps.Load() }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
