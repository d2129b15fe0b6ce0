package tick

import (
	"math"

	"github.com/ticktier/ticktier/collectors"
)

// Self is what the loop tells of itself: its schedule and each source's success,
// cost and oddities. New gives it to the sources already; it is for whoever lists
// metrics. The functions are safe for concurrent use, but for the achieved rate,
// which is meant for one reader.
func (l *Loop) Self() []collectors.SelfMetric {
	m := []collectors.SelfMetric{
		count("ticks_total", "Slots that were read.", l.ticks.Load),
		count("ticks_missed_total", "Slots that were not read, because those before them took too long.", l.missed.Load),
		count("ticks_late_total", "Ticks whose read began too late to carry the time of their slot.", l.late.Load),
		seconds("tick_lateness_seconds_total", "Time by which late ticks were late.", l.lateness.Load),
		seconds("tick_read_seconds_total", "Time that ticks took, from their begin to the ring.", l.busy.Load),
		gauge("tick_rate_configured_hertz", "Slots a second.",
			func() (int64, bool) { return int64(l.cfg.Rate), true }),
		gauge("collectors_slowed", "Sources that are read less often than they should be, for they take more than --rate.protect allows.",
			l.slowed),
		{Metric: collectors.Metric{Name: "ticktier_exporter_tick_rate_achieved_hertz", Type: collectors.Gauge,
			Kind: collectors.Float, Help: "Slots a second that were read since the last time this was read."},
			Read: l.achieved()},
	}
	if c, ok := l.cfg.Clock.(interface{ Steps() uint64 }); ok {
		m = append(m, count("clock_steps_total", "Times the wall clock was stepped.", c.Steps))
	}
	for _, s := range l.sources {
		own := s.self()
		if l.cfg.Protect > 0 {
			own = append(own, s.selfCadence(l.cfg.Rate))
		}
		for _, sm := range own {
			sm.Labels = []collectors.Label{{Name: "collector", Value: s.spec.Name}}
			m = append(m, sm)
		}
	}
	return m
}

// achieved counts from one call to the next.
func (l *Loop) achieved() func() (int64, bool) {
	var ticks uint64
	since := l.cfg.Clock.Mono()
	return func() (int64, bool) {
		n, now := l.ticks.Load(), l.cfg.Clock.Mono()
		if now <= since || n == 0 {
			return 0, false
		}
		rate := float64(n-ticks) / (float64(now-since) / 1e9)
		ticks, since = n, now
		return int64(math.Float64bits(rate)), true
	}
}

func (s *source) self() []collectors.SelfMetric {
	stats := &s.out.Stats
	return []collectors.SelfMetric{
		{Metric: collectors.Metric{Name: "node_scrape_collector_success", Type: collectors.Gauge,
			Help: "Whether a collector succeeded."},
			Read: func() (int64, bool) {
				if s.success.Load() {
					return 1, s.tried.Load()
				}
				return 0, s.tried.Load()
			}},
		{Metric: collectors.Metric{Name: "node_scrape_collector_duration_seconds", Type: collectors.Gauge,
			Unit: "seconds", Kind: collectors.Signed, Div: 1e9, Help: "Duration of a collector scrape."},
			Read: func() (int64, bool) { return s.duration.Load(), s.tried.Load() }},
		count("collector_reads_total", "Reads of a source, failed ones included.", s.reads.Load),
		count("collector_failures_total", "Reads of a source that failed.", s.failures.Load),
		seconds("collector_read_seconds_total", "Time that reads of a source took.", s.spent.Load),
		count("collector_read_bytes_total", "Bytes read by a source.", stats.Bytes.Load),
		count("collector_bad_rows_total", "Rows of kernel files that could not be used.", stats.BadRows.Load),
		count("collector_corrections_total",
			"Kernel counters that stepped back a little and were held.", stats.Corrections.Load),
		count("collector_overflow_total",
			"Rows that were left out because a source is at its cap, at each read.", stats.Overflow.Load),
		gauge("collector_hidden_rows", "Rows that are not exported because they never moved.",
			func() (int64, bool) { return int64(stats.Hidden.Load()), true }),
	}
}

func count(name, help string, load func() uint64) collectors.SelfMetric {
	return collectors.SelfMetric{
		Metric: collectors.Metric{Name: "ticktier_exporter_" + name, Help: help, Type: collectors.Counter},
		Read:   func() (int64, bool) { return int64(load()), true },
	}
}

func seconds(name, help string, load func() uint64) collectors.SelfMetric {
	m := count(name, help, load)
	m.Metric.Unit, m.Metric.Div = "seconds", 1e9
	return m
}

func gauge(name, help string, read func() (int64, bool)) collectors.SelfMetric {
	return collectors.SelfMetric{
		Metric: collectors.Metric{Name: "ticktier_exporter_" + name, Help: help, Type: collectors.Gauge},
		Read:   read,
	}
}
