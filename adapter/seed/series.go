package seed

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/ticktier/ticktier/adapter/fold"
)

// shape is one of the series that each device has.
type shape struct {
	name     string
	labels   []string // after instance and job
	counter  bool
	interval int64 // ms between samples
	// next is the value at t, given the series' own state.
	next func(s *series, day float64) float64
}

// shapes are the nine series of a device. Values have the steps that the kernel
// gives them: hundredths of seconds, kilobytes, half degrees, microseconds.
var shapes = [...]shape{
	{"node_cpu_seconds_total", []string{"cpu", "0", "mode", "idle"}, true, 30_000, func(s *series, day float64) float64 {
		busy := math.Min(0.99, math.Max(0.01, 0.1+0.3*day+0.05*s.r.NormFloat64()+s.spike(0.002, 0.6)))
		return s.grow(math.Round(30*(1-busy)*100) / 100)
	}},
	{"node_load1", nil, false, 30_000, func(s *series, day float64) float64 {
		return round(s.walk(0.3+day, 0.05)+s.spike(0.002, 4), 100)
	}},
	{"node_memory_MemAvailable_bytes", nil, false, 30_000, func(s *series, day float64) float64 {
		return 1024 * round(s.walk(180_000-20_000*day, 300), 1)
	}},
	{"node_hwmon_temp_celsius", []string{"chip", "thermal_zone0", "sensor", "temp1"}, false, 30_000, func(s *series, day float64) float64 {
		return round(s.walk(45+6*day, 0.2), 2)
	}},
	{"node_network_receive_bytes_total", []string{"device", "eth0"}, true, 30_000, func(s *series, day float64) float64 {
		return s.grow(round(s.r.ExpFloat64()*(2e5+6e6*day), 1))
	}},
	{"node_network_transmit_bytes_total", []string{"device", "eth0"}, true, 30_000, func(s *series, day float64) float64 {
		return s.grow(round(s.r.ExpFloat64()*(1e5+1e6*day), 1))
	}},
	{"node_nf_conntrack_entries", nil, false, 30_000, func(s *series, day float64) float64 {
		return round(s.walk(200+800*day, 12), 1)
	}},
	{"node_softnet_dropped_total", []string{"cpu", "0"}, true, 30_000, func(s *series, _ float64) float64 {
		return s.grow(round(s.spike(0.003, 200), 1))
	}},
	{"ticktier_ping_rtt_seconds", []string{"target", "192.0.2.1"}, false, 60_000, func(s *series, day float64) float64 {
		return round(0.011+0.004*day+0.001*s.r.ExpFloat64()+s.spike(0.005, 0.2), 1e6)
	}},
}

func round(v, steps float64) float64 { return math.Round(v*steps) / steps }

// series is one series being made up, sample by sample.
type series struct {
	*shape
	lset   labels.Labels
	r      *rand.Rand
	t      int64   // of the next sample
	off    float64 // of a walk from its course
	total  float64 // of a counter
	phase  float64 // of the device's day, in days
	online int64   // the device is away until then
	// When five-minute buckets and raw samples begin, where samples are fewer before.
	fine, raw int64
	steady    bool // none is missing
}

// step is the time to the next sample in ms.
func (s *series) step() int64 {
	switch {
	case s.t < s.fine:
		return likeSparse
	case s.t < s.raw:
		return likeFine
	}
	return s.interval
}

// newSeries starts series n of a device at a time.
func newSeries(seed uint64, device, n int, from int64) *series {
	sh := &shapes[n]
	b := labels.NewBuilder(labels.FromStrings(sh.labels...))
	b.Set(model.MetricNameLabel, sh.name)
	b.Set("instance", fmt.Sprintf("router-%05d", device))
	b.Set("job", "node")
	r := rand.New(rand.NewPCG(seed, uint64(device)*uint64(len(shapes))+uint64(n)))
	// All of a device's series share its day, so that it looks like one device.
	d := rand.New(rand.NewPCG(seed, uint64(device)<<32))
	s := &series{shape: sh, lset: b.Labels(), r: r, phase: d.Float64() * 0.2, total: float64(r.IntN(1 << 30))}
	s.t = from + d.Int64N(sh.interval)
	return s
}

// until adds the samples before to. One in a hundred is missing; a counter starts
// anew about every twenty days.
func (s *series) until(to int64, add func(t int64, v float64)) {
	const dayMs = 86_400_000
	for ; s.t < to; s.t += s.step() {
		day := math.Max(0, math.Sin(2*math.Pi*(float64(s.t%dayMs)/dayMs+s.phase)))
		if s.counter && s.r.Float64() < float64(s.interval)/(20*dayMs) {
			s.total = 0
		}
		v := s.next(s, day)
		if !s.steady && s.r.IntN(2000) == 0 {
			s.online = s.t + s.r.Int64N(40)*s.interval
		}
		if s.t >= s.online {
			add(s.t, v)
		}
	}
}

// walk is a random walk that is drawn back to its course.
func (s *series) walk(course, step float64) float64 {
	s.off = 0.98*s.off + step*s.r.NormFloat64()
	return math.Max(0, course+s.off)
}

// spike is now and then a large value, else 0.
func (s *series) spike(chance, size float64) float64 {
	if s.r.Float64() >= chance {
		return 0
	}
	return size * s.r.Float64()
}

// grow is the counter after it grew.
func (s *series) grow(by float64) float64 {
	s.total = round(s.total+by, 100)
	return s.total
}

// Lacks is what the buckets of a made-up metric need not keep.
func Lacks(metric string) fold.Parts {
	for i := range shapes {
		if shapes[i].name != metric {
			continue
		}
		if shapes[i].counter {
			return fold.PartSum
		}
		return fold.PartCounter
	}
	return 0
}
