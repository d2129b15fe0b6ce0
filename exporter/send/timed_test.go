package send

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// told is a run of series that tell when they started and when their samples were
// taken: slot 0 is a gauge, 1 a histogram's count with its start in 2, 3 a gauge with
// its samples' times in 4, 5 a counter with its start in 6 and its times in 7.
func told() *run {
	metric := func(name string, t collectors.Type) *collectors.Metric {
		return &collectors.Metric{Name: name, Type: t, Kind: collectors.Float}
	}
	start := &collectors.Metric{Type: collectors.StartTime, Kind: collectors.Signed}
	at := &collectors.Metric{Type: collectors.SampleTime, Kind: collectors.Signed}
	r := &run{series: []collectors.Series{
		{Metric: metric("plain", collectors.Gauge)},
		{Metric: metric("h_count", collectors.Histogram)}, {Metric: start},
		{Metric: metric("timed", collectors.Gauge)}, {Metric: at},
		{Metric: metric("c_total", collectors.Counter)}, {Metric: start}, {Metric: at},
	}}
	f := func(v float64) int64 { return int64(math.Float64bits(v)) }
	add := func(present uint64, values ...int64) {
		n := int64(len(r.ticks))
		r.ticks = append(r.ticks, frame.Tick{Seq: uint64(n), Time: n * 1e9, Read: 1, Values: values, Present: []uint64{present}})
		r.ms = append(r.ms, 1_750_000_000_000+n*1000)
	}
	add(0b11111111, f(1), f(10), 1_749_999_000_000, f(5), 1_749_999_999_000, f(7), 1_749_000_000_000, 1_749_999_999_500)
	add(0b00000111, f(2), f(11), 1_749_999_000_000, f(5), 1_749_999_999_000, f(7), 1_749_000_000_000, 1_749_999_999_500)
	// The process restarts: its counters begin anew.
	add(0b00011111, f(3), f(1), 1_750_000_001_500, f(6), 1_750_000_001_900, f(7), 1_749_000_000_000, 1_749_999_999_500)
	add(0b11100001, f(4), f(1), 1_750_000_001_500, f(6), 1_750_000_001_900, f(1), 1_750_000_002_000, 1_750_000_002_800)
	return r
}

func TestToldTimes(t *testing.T) {
	for _, flat := range []time.Duration{0, time.Minute} {
		for _, p := range []Protocol{V1, V2} {
			synctest.Test(t, func(t *testing.T) {
				r := told()
				rc := &receiver{script: ok}
				c := r.config(rc, r.ring(), &logs{})
				c.ExternalLabels, c.Flat, c.StaleOnStop = nil, flat, true
				if p == V1 {
					c.Mode = Only1
				}
				runFor(t, c, 6*time.Second)
				rc.check(t)
				s := func(ms int64, v float64, start int64) sample {
					if p == V1 {
						start = 0
					}
					return sample{Ms: 1_750_000_000_000 + ms, Bits: math.Float64bits(v), Start: start}
				}
				stale := func(ms int64) sample { return sample{Ms: 1_750_000_000_000 + ms, Bits: staleNaN} }
				want := written{
					`__name__="plain",`:   {s(0, 1, 0), s(1000, 2, 0), s(2000, 3, 0), s(3000, 4, 0), stale(3001)},
					`__name__="h_count",`: {s(0, 10, 1_749_999_000_000), s(1000, 11, 1_749_999_000_000), s(2000, 1, 1_750_000_001_500), stale(3000)},
					`__name__="timed",`:   {s(-1000, 5, 0), s(1900, 6, 0)},
					`__name__="c_total",`: {s(-500, 7, 1_749_000_000_000), s(2800, 1, 1_750_000_002_000)},
				}
				if d := cmp.Diff(want, rc.stored); d != "" {
					t.Errorf("protocol %d, flat %s (-want +got):\n%s", p, flat, d)
				}
			})
		}
	}
}

// TestReplacedSlot gives a slot to another series while the sender runs.
func TestReplacedSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &run{series: []collectors.Series{{Metric: &collectors.Metric{Name: "old", Type: collectors.Gauge}}, {Metric: &collectors.Metric{Name: "kept", Type: collectors.Gauge}}},
			ms: []int64{1_750_000_000_000}}
		src := &ring{}
		rc := &receiver{script: ok}
		now := time.Now()
		c := r.config(rc, src, &logs{})
		c.ExternalLabels, c.StaleOnStop = nil, false
		c.Now = func() int64 { return int64(time.Since(now)) }
		add := func(n uint64, present uint64) {
			src.append(frame.Tick{Seq: n, Time: int64(n) * 1e9, Read: 1, Values: []int64{int64(n), 1}, Present: []uint64{present}})
		}
		add(0, 3)
		add(1, 2) // old ends
		go func() {
			time.Sleep(11 * time.Second)
			add(11, 2)
			c.Schema.Replace(func(slot int) *collectors.Series {
				if slot == 0 {
					return &collectors.Series{Metric: &collectors.Metric{Name: "new", Type: collectors.Gauge}}
				}
				return nil
			})
			add(12, 3)
		}()
		runFor(t, c, 20*time.Second)
		rc.check(t)
		f := func(n int64, v float64) sample {
			return sample{Ms: 1_750_000_000_000 + n*1000, Bits: math.Float64bits(v)}
		}
		want := written{
			`__name__="old",`:  {f(0, 0), {Ms: 1_750_000_001_000, Bits: staleNaN}},
			`__name__="new",`:  {f(12, 12)},
			`__name__="kept",`: {f(0, 1), f(1, 1), f(11, 1), f(12, 1)},
		}
		if d := cmp.Diff(want, rc.stored); d != "" {
			t.Error(d)
		}
	})
}
