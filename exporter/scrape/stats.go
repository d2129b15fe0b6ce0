package scrape

import (
	"sync/atomic"

	"github.com/ticktier/ticktier/collectors"
)

// stats are the scraper's own figures; any goroutine may read them.
type stats struct {
	scrapes, failed   atomic.Uint64
	exemplars, native atomic.Uint64
	series, slots     atomic.Int64
	dropped           dropped
}

// dropped are samples that were left out, by reason.
type dropped struct{ duplicate, old, ahead, tooOld atomic.Uint64 }

// SelfMetrics are the figures of the scraper, for the exporter's own series.
func (s *Scraper) SelfMetrics() []collectors.SelfMetric {
	counter := func(name, help string, v *atomic.Uint64, labels ...collectors.Label) collectors.SelfMetric {
		return collectors.SelfMetric{
			Metric: collectors.Metric{Name: "ticktier_exporter_scrape_" + name, Help: help, Type: collectors.Counter},
			Labels: labels,
			Read:   func() (int64, bool) { return int64(v.Load()), true },
		}
	}
	gauge := func(name, help string, v *atomic.Int64) collectors.SelfMetric {
		return collectors.SelfMetric{
			Metric: collectors.Metric{Name: "ticktier_exporter_scrape_" + name, Help: help, Type: collectors.Gauge},
			Read:   func() (int64, bool) { return v.Load(), true },
		}
	}
	const samples, help = "samples_dropped_total", "Samples of targets that were left out."
	reason := func(v string) collectors.Label { return collectors.Label{Name: "reason", Value: v} }
	return []collectors.SelfMetric{
		counter("scrapes_total", "Scrapes of targets.", &s.stats.scrapes),
		counter("scrapes_failed_total", "Scrapes of targets that were down.", &s.stats.failed),
		gauge("series", "Series of targets.", &s.stats.series),
		gauge("slots", "Room for series of targets, those that ended included.", &s.stats.slots),
		counter("exemplars_dropped_total", "Exemplars of targets, which are not sent.", &s.stats.exemplars),
		counter("native_histograms_dropped_total", "Native histograms of targets, of which only count, sum and classic buckets are sent.", &s.stats.native),
		counter(samples, help, &s.stats.dropped.duplicate, reason("duplicate")),
		counter(samples, help, &s.stats.dropped.old, reason("out_of_order")),
		counter(samples, help, &s.stats.dropped.ahead, reason("future")),
		counter(samples, help, &s.stats.dropped.tooOld, reason("too_old")),
	}
}

// Names are the targets' URLs without what may be secret in them.
func (s *Scraper) Names() []string {
	var out []string
	for _, t := range s.targets {
		out = append(out, t.name)
	}
	return out
}
