package self

import (
	"math"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
)

// sample is one value of one series.
type sample struct {
	labels labels.Labels
	v      float64
}

// samples returns what a family is in the text format: histograms as buckets, sum and
// count, summaries as quantiles. Labels that a metric has go before those of own.
func samples(f *dto.MetricFamily, own labels.Labels) (out []sample) {
	for _, m := range f.GetMetric() {
		add := func(suffix string, v float64, more ...string) {
			b := labels.NewBuilder(own)
			for _, l := range m.GetLabel() {
				b.Set(l.GetName(), l.GetValue())
			}
			for i := 0; i+1 < len(more); i += 2 {
				b.Set(more[i], more[i+1])
			}
			out = append(out, sample{b.Set("__name__", f.GetName()+suffix).Labels(), v})
		}
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			add("", m.GetCounter().GetValue())
		case dto.MetricType_GAUGE:
			add("", m.GetGauge().GetValue())
		case dto.MetricType_UNTYPED:
			add("", m.GetUntyped().GetValue())
		case dto.MetricType_SUMMARY:
			s := m.GetSummary()
			for _, q := range s.GetQuantile() {
				add("", q.GetValue(), "quantile", number(q.GetQuantile()))
			}
			add("_sum", s.GetSampleSum())
			add("_count", float64(s.GetSampleCount()))
		case dto.MetricType_HISTOGRAM:
			h := m.GetHistogram()
			for _, b := range h.GetBucket() {
				if !math.IsInf(b.GetUpperBound(), 1) {
					add("_bucket", float64(b.GetCumulativeCount()), "le", number(b.GetUpperBound()))
				}
			}
			add("_bucket", float64(h.GetSampleCount()), "le", "+Inf")
			add("_sum", h.GetSampleSum())
			add("_count", float64(h.GetSampleCount()))
		}
	}
	return out
}

// number writes a bound as OpenMetrics does, with a point in whole numbers: so does
// Prometheus when it scrapes.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if v == math.Trunc(v) && !math.IsInf(v, 0) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return s
}
