package tick

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Slots fall on whole multiples of the period in wall time, for ever.
func TestScheduleAligned(t *testing.T) {
	for _, rate := range []int64{1, 2, 3, 7, 10, 60, 100, 333, 999, 1000} {
		for range 200 {
			now := rand.Int64N(int64(time.Hour)) - int64(time.Minute)
			offset := rand.Int64N(2e18) - 1e17
			s := newSchedule(int(rate), now, offset)
			if at := s.at(0); at < now || at-now > second/rate+1 {
				t.Fatalf("rate %d: slot 0 at %d, now is %d", rate, at, now)
			}
			for _, n := range []int64{0, 1, rate, 12345, rate * 86400 * 3650} {
				wall := s.at(n) + offset
				in := floorDiv(wall, second)
				k := wall - in*second
				if got := (k*rate + rate - 1) / second * second / rate; got != k {
					t.Fatalf("rate %d: slot %d is %d ns into its second", rate, n, k)
				}
			}
		}
	}
}

func TestScheduleDue(t *testing.T) {
	for _, rate := range []int64{1, 3, 10, 333, 1000} {
		s := newSchedule(int(rate), 12345, 987654321)
		if got := s.due(s.at(0) - 1); got != -1 {
			t.Errorf("rate %d: slot %d before the first", rate, got)
		}
		for _, n := range []int64{0, 1, 2, rate, 1e9} {
			for _, d := range []int64{0, 1, s.at(n+1) - s.at(n) - 1} {
				if got := s.due(s.at(n) + d); got != n {
					t.Errorf("rate %d, slot %d + %d ns: got %d", rate, n, d, got)
				}
			}
		}
	}
}

func TestScheduleSlots(t *testing.T) {
	for _, test := range []struct {
		rate    int64
		cadence time.Duration
		want    int64
	}{{10, 0, 1}, {10, time.Second, 10}, {1, time.Second, 1}, {1, time.Millisecond, 1}, {1000, time.Minute, 60000},
		{3, time.Second, 3}, {100, 150 * time.Millisecond, 15}} {
		if got := (schedule{rate: test.rate}).slots(test.cadence); got != test.want {
			t.Errorf("%d Hz, %v: got %d, want %d", test.rate, test.cadence, got, test.want)
		}
	}
}

func TestTolerance(t *testing.T) {
	for rate, want := range map[int64]time.Duration{1: 2 * time.Millisecond, 5: 2 * time.Millisecond,
		10: time.Millisecond, 100: 100 * time.Microsecond, 1000: 10 * time.Microsecond} {
		if got := (schedule{rate: rate}).tolerance(); got != int64(want) {
			t.Errorf("%d Hz: got %d, want %v", rate, got, want)
		}
	}
}
