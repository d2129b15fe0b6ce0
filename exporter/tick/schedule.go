package tick

import "time"

const second = int64(time.Second)

// schedule is the times of the slots: slot n is at base + (first+n)/rate seconds.
// Lateness cannot accumulate, because each time is computed from the start.
type schedule struct {
	base  int64 // monotonic time of a whole second of wall time
	first int64 // slots between base and slot 0
	rate  int64 // slots a second
}

// newSchedule puts slot 0 at the first whole multiple of the period in wall time at
// or after now.
func newSchedule(rate int, now, offset int64) schedule {
	s := schedule{rate: int64(rate)}
	s.base = floorDiv(now+offset, second)*second - offset
	// The slots of a second are at floor(k/rate), so the first at or after now is
	// found by rounding up.
	s.first = ((now-s.base)*s.rate + second - 1) / second
	return s
}

// at is the monotonic time of slot n.
func (s schedule) at(n int64) int64 {
	k := s.first + n
	return s.base + k/s.rate*second + k%s.rate*second/s.rate
}

// due is the newest slot at or before now; −1 when there is none yet.
func (s schedule) due(now int64) int64 {
	since := now - s.base
	k := since/second*s.rate + (since%second*s.rate)/second
	for s.at(k+1-s.first) <= now {
		k++
	}
	for k >= s.first && s.at(k-s.first) > now {
		k--
	}
	return max(k-s.first, -1)
}

// tolerance is how late a read may begin and still carry its slot's time: what
// Prometheus allows a scrape.
func (s schedule) tolerance() int64 {
	return min(int64(2*time.Millisecond), second/s.rate/100)
}

// slots is how many slots lie between two reads of a source, at least 1.
func (s schedule) slots(cadence time.Duration) int64 {
	return max(1, (int64(cadence)*s.rate+second/2)/second)
}
