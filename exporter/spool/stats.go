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
	st := &s.stats
	const dropped, droppedHelp = "ticks_dropped_total", "Ticks that were given up before every receiver had them, by reason."
	table := []struct {
		name, help, unit, reason string
		typ                      collectors.Type
		v                        *atomic.Int64
	}{
		{"written_bytes_total", "Bytes written to the spool's disk.", "bytes", "", collectors.Counter, &st.written},
		{"bytes", "Bytes that the spool holds, quarantine included.", "bytes", "", collectors.Gauge, &st.bytes},
		{"segments", "Segments that the spool holds.", "", "", collectors.Gauge, &st.segments},
		{"writable", "Whether the spool's disk takes what is written to it.", "", "", collectors.Gauge, nil},
		{"ticks_spooled_total", "Ticks written to the spool.", "", "", collectors.Counter, &st.spooled},
		{dropped, droppedHelp, "", "bytes", collectors.Counter, &st.droppedCap},
		{dropped, droppedHelp, "", "age", collectors.Counter, &st.droppedAge},
		{dropped, droppedHelp, "", "disk", collectors.Counter, &st.droppedQ},
		{dropped, droppedHelp, "", "clock", collectors.Counter, &st.undated},
		{"quarantined_total", "Damaged files of which something was set aside.", "", "", collectors.Counter, &st.quarantined},
		{"ticks_quarantined_total", "Ticks in them, as far as it could be told.", "", "", collectors.Counter, &st.quarantinedTicks},
		{"torn_total", "Segments whose tail was not written to its end, and was cut.", "", "", collectors.Counter, &st.torn},
	}
	out := make([]collectors.SelfMetric, 0, len(table))
	for i := range table {
		m := &table[i]
		read := func() (int64, bool) {
			if m.v != nil {
				return m.v.Load(), true
			}
			if st.failing.Load() {
				return 0, true
			}
			return 1, true
		}
		var labels []collectors.Label
		if m.reason != "" {
			labels = []collectors.Label{{Name: "reason", Value: m.reason}}
		}
		out = append(out, collectors.SelfMetric{
			Metric: collectors.Metric{Name: "ticktier_exporter_spool_" + m.name, Help: m.help, Unit: m.unit, Type: m.typ},
			Labels: labels, Read: read,
		})
	}
	return out
}
