package tier

import (
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

type metrics struct {
	windows, late, refolded, samples, histograms, skipped, failures, cpu prometheus.Counter
	seconds                                                              prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, pending func() float64, lags map[string]func() float64) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "ticktier", Subsystem: "adapter_fold", Name: name, Help: help})
	}
	m := &metrics{
		windows:    counter("windows_total", "Windows folded, those folded again included."),
		late:       counter("late_windows_total", "Times that a window already folded got samples."),
		refolded:   counter("refolded_windows_total", "Windows folded again for late samples."),
		samples:    counter("samples_total", "Raw samples folded."),
		histograms: counter("histograms_total", "Raw native histograms folded."),
		skipped:    counter("series_skipped_total", "Series that could not be read for a fold."),
		failures:   counter("failures_total", "Fold cycles that failed and were tried again."),
		cpu:        counter("cpu_seconds_total", "CPU time of fold cycles, merges and retention included."),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "ticktier", Subsystem: "adapter_fold", Name: "duration_seconds", Help: "Time of one fold cycle.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}),
	}
	if reg == nil {
		return m
	}
	reg.MustRegister(m.windows, m.late, m.refolded, m.samples, m.histograms, m.skipped, m.failures, m.cpu, m.seconds,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "ticktier", Subsystem: "adapter_fold", Name: "pending_windows",
			Help: "Windows that are closed or got late samples and are not folded yet.",
		}, pending))
	for tier, lag := range lags {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "ticktier", Subsystem: "adapter_fold", Name: "lag_seconds",
			Help:        "How long ago the windows ended up to which everything is folded; 0 before the first.",
			ConstLabels: prometheus.Labels{"tier": tier},
		}, lag))
	}
	return m
}

// threadTime is the CPU time that this thread has used, in seconds.
func threadTime() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return float64(t.Nano()) / 1e9
}
