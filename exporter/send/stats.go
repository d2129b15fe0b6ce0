package send

import (
	"math"
	"sync/atomic"

	"github.com/ticktier/ticktier/collectors"
)

// stats are the sender's own figures; any goroutine may read them.
type stats struct {
	samples, rejected, unconfirmed, lostTicks atomic.Int64
	saved                                     [3]atomic.Int64 // by why
	savedBytes, acked                         atomic.Int64    // acked: bytes of requests that were taken
	backlog, limited                          atomic.Int64    // limited: since when, monotonic ns; 0 is not
	bytes, retries                            atomic.Int64
	extraSamples, extraHistograms             atomic.Int64 // of Extra, that the receiver took
	extraFailed                               atomic.Int64
	bytesDay, samplesDay                      day
	requests                                  [len(codes)]atomic.Int64
	newest                                    atomic.Int64 // monotonic time of the newest delivered tick
	protocol, quarantined                     atomic.Int64
	skew                                      atomic.Int64 // receiver's clock − ours, ms
}

// Why a sample was left out.
const (
	savedFlat = iota
	savedRate
	savedSelector
)

// codes are the classes that replies are counted in. 415 and 429 stand alone:
// neither is a fault of the samples.
var codes = [...]string{"2xx", "3xx", "4xx", "5xx", "413", "415", "429", "error", "other"}

// codeIndex is the index in codes of a reply's class.
func codeIndex(r reply) int {
	switch {
	case r.err != nil:
		return 7
	case r.code == 413:
		return 4
	case r.code == 415:
		return 5
	case r.code == 429:
		return 6
	case r.code >= 200 && r.code < 600:
		return r.code/100 - 2
	default:
		return 8
	}
}

// SelfMetrics are the figures of this sender, for the exporter's own series.
func (s *Sender) SelfMetrics() []collectors.SelfMetric {
	counter := func(name, help, unit string, v *atomic.Int64, labels ...collectors.Label) collectors.SelfMetric {
		return collectors.SelfMetric{
			Metric: collectors.Metric{Name: "ticktier_exporter_remote_write_" + name, Help: help, Unit: unit, Type: collectors.Counter},
			Labels: append(labels, collectors.Label{Name: "url", Value: s.name}),
			Read:   func() (int64, bool) { return v.Load(), true },
		}
	}
	out := []collectors.SelfMetric{
		counter("samples_total", "Samples that the receiver accepted, staleness markers included.", "", &s.stats.samples),
		counter("samples_rejected_total", "Samples that the receiver refused for good.", "", &s.stats.rejected),
		counter("samples_unconfirmed_total", "Samples that the receiver accepted without saying that it wrote them.", "", &s.stats.unconfirmed),
		counter("ticks_lost_total", "Ticks for which there was no room until they could be sent.", "", &s.stats.lostTicks),
		counter("samples_saved_total", savedHelp, "", &s.stats.saved[savedFlat], collectors.Label{Name: "reason", Value: "flat"}),
		counter("samples_saved_total", savedHelp, "", &s.stats.saved[savedRate], collectors.Label{Name: "reason", Value: "rate"}),
		counter("samples_saved_total", savedHelp, "", &s.stats.saved[savedSelector], collectors.Label{Name: "reason", Value: "selector"}),
		counter("bytes_saved_total", "Bytes that these would have taken, at the mean of what was sent.", "bytes", &s.stats.savedBytes),
		s.gauge("bytes_per_day", "Bytes of request bodies in the last 24 hours, or as many as it would be at the rate since the start.", "bytes", collectors.Unsigned, 0,
			func() int64 { return s.stats.bytesDay.of(s.cfg.Now()) }),
		s.gauge("samples_per_day", "Samples that the receiver accepted in the last 24 hours, or as many as it would be at the rate since the start.", "", collectors.Unsigned, 0,
			func() int64 { return s.stats.samplesDay.of(s.cfg.Now()) }),
		s.gauge("limited_seconds", "How long the receiver has answered with nothing but its limit.", "seconds", collectors.Signed, 1e9, s.limited),
		counter("bytes_total", "Bytes of request bodies that were answered, compressed.", "bytes", &s.stats.bytes),
		counter("retries_total", "Requests sent again.", "", &s.stats.retries),
		s.gauge("lag_seconds", "Age of the newest tick that was delivered.", "seconds", collectors.Signed, 1e9, s.lag),
		s.gauge("backlog_slots", "Slots of this session that are left behind the live edge.", "", collectors.Unsigned, 0, s.stats.backlog.Load),
		s.gauge("series_quarantined", "Series that are left out for a while because the receiver refuses them.", "", collectors.Unsigned, 0, s.stats.quarantined.Load),
		s.gauge("clock_skew_seconds", "The receiver's clock minus this one; its replies carry whole seconds.", "seconds", collectors.Signed, 1e3, s.stats.skew.Load),
		s.gauge("protocol", "Remote-write version in use: 2 or 1.", "", collectors.Unsigned, 0, s.stats.protocol.Load),
	}
	if s.cfg.Extra != nil {
		out = append(out,
			counter("histograms_total", "Native histograms of ticks that the receiver accepted.", "", &s.stats.extraHistograms),
			counter("histogram_samples_total", "Samples that go with them, or stand for them in 1.0, that the receiver accepted.", "", &s.stats.extraSamples),
			counter("histogram_pushes_failed_total", "Requests with these that the receiver did not take; they are not repeated.", "", &s.stats.extraFailed))
	}
	for i := range codes {
		out = append(out, counter("requests_total", "Requests by class of reply; error is none.", "", &s.stats.requests[i],
			collectors.Label{Name: "code", Value: codes[i]}))
	}
	return out
}

const savedHelp = "Samples that were not sent: of counters that did not move, of reads that were thinned out, and of series that are not wanted."

// limited is how long the receiver has answered with its limit, in ns.
func (s *Sender) limited() int64 {
	since := s.stats.limited.Load()
	if since == 0 {
		return 0
	}
	return max(0, s.cfg.Now()-since)
}

func (s *Sender) gauge(name, help, unit string, kind collectors.Kind, div float64, read func() int64) collectors.SelfMetric {
	return collectors.SelfMetric{
		Metric: collectors.Metric{Name: "ticktier_exporter_remote_write_" + name, Help: help, Unit: unit,
			Type: collectors.Gauge, Kind: kind, Div: div},
		Labels: []collectors.Label{{Name: "url", Value: s.name}},
		Read:   func() (int64, bool) { v := read(); return v, v != math.MinInt64 },
	}
}

// lag is the age of the newest delivered tick in ns, math.MinInt64 before any was.
func (s *Sender) lag() int64 {
	t := s.stats.newest.Load()
	if t == math.MinInt64 {
		return t
	}
	return max(0, s.cfg.Now()-t)
}
