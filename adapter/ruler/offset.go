package ruler

import (
	"sync"
	"time"
)

// offsetSteps are how far behind its time a group looks, beside QueryOffset. It moves
// in steps, so that it seldom moves: each move is a longer or shorter time between two
// samples of every rule.
var offsetSteps = [...]time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute}

// offsetHold is how long a lag must be lower for the offset to follow.
const offsetHold = 10 * time.Minute

// follower is a query offset that follows the lag of what is pushed.
type follower struct {
	least, most time.Duration
	lag         func() time.Duration // nil keeps it at least

	mu  sync.Mutex
	now time.Duration // guarded by mu
	low time.Time     // guarded by mu; since when the lag would do with less, zero: it does not
}

// offset is how far behind its time a group looks now.
func (f *follower) offset(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = max(f.now, f.least)
	want := f.least
	if f.lag != nil {
		want = f.step(f.lag())
	}
	switch {
	case want > f.now:
		f.now, f.low = want, time.Time{}
	case want == f.now:
		f.low = time.Time{}
	case f.low.IsZero():
		f.low = now
	case now.Sub(f.low) >= offsetHold:
		f.now, f.low = want, time.Time{}
	}
	return f.now
}

// step is the least offset that a lag can do with.
func (f *follower) step(lag time.Duration) time.Duration {
	if lag <= f.least {
		return f.least
	}
	for _, s := range offsetSteps {
		if s >= f.most {
			break
		}
		if s >= lag {
			return max(s, f.least)
		}
	}
	return max(f.most, f.least)
}
