package send

import (
	"testing"
	"time"
)

func TestDay(t *testing.T) {
	var d day
	near := func(at time.Duration, want int64) {
		t.Helper()
		if got := d.of(int64(at)); got < want*99/100-1 || got > want*101/100+1 {
			t.Errorf("after %v: %d, want %d", at, got, want)
		}
	}
	near(0, 0)
	for s := range int64(3 * 3600) { // ten a second for three hours
		d.add(10, s*1e9)
	}
	near(3*time.Hour, 864_000)
	near(12*time.Hour, 216_000)
	near(24*time.Hour, 108_000)
	near(26*time.Hour+30*time.Minute, 36_000*24*2/49) // a part of the hours is gone
	near(40*time.Hour, 0)
	d.add(1, int64(1000*time.Hour))
	near(1000*time.Hour, 1)
}
