package receive

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the handler's own. Label values come from fixed lists, so their number
// is bounded.
type metrics struct {
	requests   *prometheus.CounterVec
	samples    prometheus.Counter
	histograms prometheus.Counter
	exemplars  prometheus.Counter
	rejected   [numReasons]prometheus.Counter
	limited    *prometheus.CounterVec
	bytes      prometheus.Counter
	inFlight   prometheus.Gauge
	duration   prometheus.Histogram

	byStatus sync.Map // statusKey → prometheus.Counter
}

type statusKey struct {
	status int
	proto  protocol
}

const prefix = "ticktier_adapter_receive_"

func counterOpts(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Name: prefix + name, Help: help}
}

func newMetrics(reg prometheus.Registerer, h *Handler) *metrics {
	m := &metrics{
		requests:   prometheus.NewCounterVec(counterOpts("requests_total", "Remote-write requests by status code and protocol version."), []string{"code", "protocol"}),
		samples:    prometheus.NewCounter(counterOpts("samples_total", "Float samples stored.")),
		histograms: prometheus.NewCounter(counterOpts("histograms_total", "Native histogram samples stored.")),
		exemplars:  prometheus.NewCounter(counterOpts("exemplars_total", "Exemplars stored.")),
		bytes:      prometheus.NewCounter(counterOpts("bytes_total", "Bytes of request bodies as sent.")),
		limited:    prometheus.NewCounterVec(counterOpts("limited_total", "Requests answered 429, by whose samples a second are too many: the device's or all."), []string{"of"}),
		inFlight:   prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "requests_in_flight", Help: "Requests being read, decoded or stored."}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + "request_duration_seconds", Help: "Time from a request's headers to its answer.",
			Buckets:                     []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 30},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}),
	}
	rejected := prometheus.NewCounterVec(counterOpts("rejected_total", "Samples, histograms and exemplars refused, by reason."), []string{"reason"})
	for why := reasonNone + 1; why < numReasons; why++ {
		m.rejected[why] = rejected.WithLabelValues(why.label())
	}
	for _, p := range []protocol{proto1, proto2} {
		m.requests.WithLabelValues("204", p.String())
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.samples, m.histograms, m.exemplars, rejected, m.bytes, m.limited, m.inFlight, m.duration,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + "cached_series", Help: "Label sets in the cache."},
				func() float64 { return float64(h.cache.len()) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + "metadata_families", Help: "Metric families with known metadata."},
				func() float64 { return float64(h.families.len()) }),
		)
	}
	return m
}

func (m *metrics) count(res *result, status int, took time.Duration) {
	key := statusKey{status, res.proto}
	c, ok := m.byStatus.Load(key)
	if !ok {
		c = m.requests.WithLabelValues(strconv.Itoa(status), res.proto.String())
		m.byStatus.Store(key, c)
	}
	c.(prometheus.Counter).Inc()
	m.samples.Add(float64(res.samples))
	m.histograms.Add(float64(res.histograms))
	m.exemplars.Add(float64(res.exemplars))
	m.bytes.Add(float64(res.bytes))
	m.duration.Observe(took.Seconds())
	if res.refused != nil {
		for why, n := range res.refused {
			if n > 0 {
				m.rejected[why].Add(float64(n))
			}
		}
	}
}
