package send

import (
	"sync"
	"time"
)

// day counts what happened within the last 24 hours. It is safe for concurrent use.
type day struct {
	mu    sync.Mutex
	hours [25]int64
	hour  int64 // the newest, counted from monotonic time 0
}

// add counts n at a monotonic time in ns.
func (d *day) add(n, mono int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to(mono)
	d.hours[d.hour%int64(len(d.hours))] += n
}

// to begins the hours up to a time.
func (d *day) to(mono int64) {
	hour := mono / int64(time.Hour)
	for ; d.hour < hour; d.hour++ {
		d.hours[(d.hour+1)%int64(len(d.hours))] = 0
	}
}

// of is what there was within the 24 hours before a monotonic time or, where that is
// less than 24 hours, what there would be in as many.
func (d *day) of(mono int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to(mono)
	sum := int64(0)
	for _, n := range d.hours {
		sum += n
	}
	// The oldest of the 25 hours ends as long before the last 24 as the newest has run.
	covered := min(mono, 24*int64(time.Hour)+mono%int64(time.Hour))
	if covered < int64(time.Minute) {
		covered = int64(time.Minute)
	}
	return int64(float64(sum) / float64(covered) * float64(24*time.Hour))
}
