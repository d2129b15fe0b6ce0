package spool

import (
	"sync/atomic"

	"github.com/ticktier/ticktier/collectors"
)

// stats are the spool's figures; any goroutine may read them.
type stats struct {
	written, spooled                 atomic.Int64
	droppedCap, droppedAge, droppedQ atomic.Int64
	undated                          atomic.Int64
	quarantined, quarantinedTicks    atomic.Int64
	torn, bytes, segments            atomic.Int64
	failing                          atomic.Bool
}

// SelfMetrics are the spool's figures as series of the exporter.
func (s *Spool) SelfMetrics() []collectors.SelfMetric {
	metric := func(typ collectors.Type, name, help, unit string, read func() int64, labels ...collectors.Label) collectors.SelfMetric {
		return collectors.SelfMetric{
			Metric: collectors.Metric{Name: "ticktier_exporter_spool_" + name, Help: help, Unit: unit, Type: typ},
			Labels: labels,
			Read:   func() (int64, bool) { return read(), true },
		}
	}
	st := &s.stats
	gauge, counter := collectors.Gauge, collectors.Counter
	dropped := func(reason string, v *atomic.Int64) collectors.SelfMetric {
		return metric(counter, "ticks_dropped_total", "Ticks that were given up before every receiver had them, by reason.", "", v.Load,
			collectors.Label{Name: "reason", Value: reason})
	}
	return []collectors.SelfMetric{
		metric(counter, "written_bytes_total", "Bytes written to the spool's disk.", "bytes", st.written.Load),
		metric(gauge, "bytes", "Bytes that the spool holds, quarantine included.", "bytes", st.bytes.Load),
		metric(gauge, "max_bytes", "Bytes that the spool may hold.", "bytes", func() int64 { return s.cfg.MaxBytes }),
		metric(gauge, "segments", "Segments that the spool holds.", "", st.segments.Load),
		metric(gauge, "writable", "Whether the spool's disk takes what is written to it.", "", func() int64 {
			if st.failing.Load() {
				return 0
			}
			return 1
		}),
		metric(counter, "ticks_spooled_total", "Ticks written to the spool.", "", st.spooled.Load),
		dropped("bytes", &st.droppedCap),
		dropped("age", &st.droppedAge),
		dropped("disk", &st.droppedQ),
		dropped("clock", &st.undated),
		metric(counter, "quarantined_total", "Damaged files of which something was set aside.", "", st.quarantined.Load),
		metric(counter, "ticks_quarantined_total", "Ticks in them, as far as it could be told.", "", st.quarantinedTicks.Load),
		metric(counter, "torn_total", "Segments whose tail was not written to its end, and was cut.", "", st.torn.Load),
	}
}
