package e2e

import (
	"fmt"
	"math/rand/v2"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/ticktier/ticktier/e2e/client"
)

// queryTypes are the made-up metrics that senders say the type of.
var queryTypes = map[string]writev2.Metadata_MetricType{
	"q_typed":       writev2.Metadata_METRIC_TYPE_GAUGE,
	"q_typed_total": writev2.Metadata_METRIC_TYPE_COUNTER,
}

var (
	queryGauges   = []string{"q_level", "q_gaps", "q_spike", "q_typed"}
	queryCounters = []string{"q_work_total", "q_resets_total", "q_gaps_total", "q_typed_total"}
)

// queryHistory makes up what the differential test asks about. No sample lies on a
// multiple of five minutes; see madeUp.
func queryHistory(seed uint64, start, end int64) []client.Series {
	rng := rand.New(rand.NewPCG(seed, 11))
	var out []client.Series
	add := func(name string, n int, samples []client.Sample, more ...string) {
		s := client.Series{Labels: map[string]string{"__name__": name, "job": "made", "instance": fmt.Sprint("r", n)}, Samples: samples}
		for i := 0; i+1 < len(more); i += 2 {
			s.Labels[more[i]] = more[i+1]
		}
		out = append(out, s)
	}
	for n := range 2 {
		add("q_level", n, gauge(rng, times(rng, start, end, 15_000, 0), 0))
		add("q_gaps", n, gauge(rng, times(rng, start, end, 30_000, 0.002), 0))
		add("q_spike", n, spikes(rng, times(rng, start, end, 20_000, 0)))
		add("q_typed", n, gauge(rng, times(rng, start, end, 30_000, 0), 0))
		add("q_work_total", n, counter(rng, times(rng, start, end, 15_000, 0), 0))
		add("q_resets_total", n, counter(rng, times(rng, start, end, 20_000, 0), 0.003))
		add("q_gaps_total", n, counter(rng, times(rng, start, end, 30_000, 0.002), 0.001))
		add("q_typed_total", n, counter(rng, times(rng, start, end, 30_000, 0), 0.0005))
		add("q_info", n, fill(times(rng, start, end, 60_000, 0), func() float64 { return 1 }), "nodename", fmt.Sprint("host", n))
		at := times(rng, start, end, 30_000, 0)
		rows := make([][]client.Sample, 4)
		var sums [4]float64
		for _, t := range at {
			for i := range sums {
				for j := i; j < len(sums); j++ {
					sums[j] += float64(rng.IntN(5) * (4 - i))
				}
			}
			for i := range sums {
				rows[i] = append(rows[i], client.Sample{T: t, V: sums[i]})
			}
		}
		for i, le := range []string{"0.1", "1", "10", "+Inf"} {
			add("q_lat_bucket", n, rows[i], "le", le)
		}
	}
	return out
}

// queryMaker makes up queries over a history in which raw samples begin at rawFrom,
// five-minute buckets at fineFrom and hours at start.
type queryMaker struct {
	*rand.Rand
	start, fineFrom, rawFrom, end int64
}

func pick[T any](m *queryMaker, list ...T) T { return list[m.IntN(len(list))] }

// times are start, end and step of a query: anywhere, often over a seam, often
// aligned to windows.
func (m *queryMaker) times() (start, end, step int64) {
	span := 1 + m.Int64N(2*dayMs)
	if m.IntN(2) == 0 {
		span = 1 + m.Int64N(6*hourMs)
	}
	switch m.IntN(5) {
	case 0:
		start = m.rawFrom - m.Int64N(span)
	case 1:
		start = m.fineFrom - m.Int64N(span)
	case 2: // over all three
		start, span = m.fineFrom-m.Int64N(12*hourMs), m.end-m.fineFrom
	default:
		start = m.start + m.Int64N(m.end-m.start)
	}
	step = pick(m, 15_000, minuteMs, 5*minuteMs, 5*minuteMs, 10*minuteMs, hourMs, hourMs, 2*hourMs, 7*minuteMs+13_000, 1+m.Int64N(3*hourMs))
	switch m.IntN(3) {
	case 0:
		start = start / hourMs * hourMs
	case 1:
		start = start / step * step
	}
	start = max(m.start, min(start, m.end-minuteMs))
	step = max(step, span/3000)
	return start, min(m.end-1, start+span), step
}

// width is a range in ms.
func (m *queryMaker) width() int64 {
	if m.IntN(3) == 0 {
		return 30_000 + m.Int64N(5*hourMs)
	}
	return pick(m, 5*minuteMs, 10*minuteMs, 30*minuteMs, hourMs, hourMs, 2*hourMs, 6*hourMs, dayMs)
}

// modifier is an offset, an @ or nothing.
func (m *queryMaker) modifier() string {
	switch m.IntN(10) {
	case 0:
		return fmt.Sprintf(" offset %ds", pick(m, int64(300), 3600, 7200, 1+m.Int64N(20_000)))
	case 1:
		return fmt.Sprintf(" offset -%ds", pick(m, int64(300), 3600, 1+m.Int64N(9_000)))
	case 2:
		return fmt.Sprintf(" @ %s", pick(m, "start()", "end()", secs((m.start+m.Int64N(m.end-m.start))/hourMs*hourMs), secs(m.start+m.Int64N(m.end-m.start))))
	}
	return ""
}

func (m *queryMaker) matcher() string {
	return pick(m, "", "", `{instance="r0"}`, `{instance=~"r."}`, `{instance!="r1",job="made"}`, `{instance="none"}`)
}

var gaugeFuncs = []string{
	"avg_over_time", "avg_over_time", "min_over_time", "max_over_time", "sum_over_time", "count_over_time", "last_over_time",
	"present_over_time", "delta", "idelta", "deriv", "changes", "stddev_over_time", "stdvar_over_time", "quantile_over_time",
	"predict_linear", "absent_over_time",
}

var counterFuncs = []string{
	"rate", "rate", "rate", "increase", "increase", "irate", "resets", "count_over_time", "max_over_time", "min_over_time",
	"last_over_time", "avg_over_time", "changes", "deriv",
}

// call is fn around an argument.
func call(m *queryMaker, fn, arg string) string {
	switch fn {
	case "quantile_over_time":
		return fmt.Sprintf("%s(%v, %s)", fn, pick(m, 0.0, 0.5, 0.9, 1.0), arg)
	case "predict_linear":
		return fmt.Sprintf("%s(%s, 3600)", fn, arg)
	}
	return fmt.Sprintf("%s(%s)", fn, arg)
}

// ranged is a range function over a selector.
func (m *queryMaker) ranged() string {
	fn, name := pick(m, gaugeFuncs...), pick(m, queryGauges...)
	if m.IntN(2) == 0 {
		fn, name = pick(m, counterFuncs...), pick(m, queryCounters...)
	}
	return call(m, fn, fmt.Sprintf("%s%s[%dms]%s", name, m.matcher(), m.width(), m.modifier()))
}

// vector is an expression of some depth.
func (m *queryMaker) vector(depth int) string {
	if depth <= 0 {
		if m.IntN(4) == 0 {
			return pick(m, append(queryGauges, queryCounters...)...) + m.matcher() + m.modifier()
		}
		return m.ranged()
	}
	v := func() string { return m.vector(depth - 1 - m.IntN(2)) }
	switch m.IntN(8) {
	case 0:
		return m.aggregated(v())
	case 1:
		return fmt.Sprintf("sum by (instance) (%s) %s on (instance) avg by (instance) (%s)", v(), pick(m, "+", "-", "*", "/"), v())
	case 2:
		return m.function(v())
	case 3:
		step := pick(m, 5*minuteMs, 10*minuteMs, hourMs, 15*minuteMs, 97_000)
		return call(m, pick(m, "max_over_time", "min_over_time", "avg_over_time", "sum_over_time", "count_over_time", "stddev_over_time", "last_over_time", "quantile_over_time"),
			fmt.Sprintf("%s[%dms:%dms]%s", parens(v()), step*(2+m.Int64N(10)), step, m.modifier()))
	case 4:
		return fmt.Sprintf("histogram_quantile(%v, sum by (le, instance) (%s(q_lat_bucket%s[%dms])))", pick(m, 0.5, 0.9, 0.99), pick(m, "rate", "increase"), m.matcher(), m.width())
	case 5:
		return fmt.Sprintf("sum by (instance) (%s) * on (instance) group_left (nodename) max_over_time(q_info[%dms])", v(), pick(m, hourMs, 2*hourMs, m.width()))
	case 6:
		return fmt.Sprintf("%s %s %s", parens(v()), pick(m, "and", "or", "unless"), parens(v()))
	}
	return m.ranged()
}

func parens(s string) string { return "(" + s + ")" }

func (m *queryMaker) aggregated(v string) string {
	by := pick(m, "", " by (instance)", " without (instance)", " by (job)")
	switch op := pick(m, "sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "topk", "bottomk", "quantile", "count_values"); op {
	case "topk", "bottomk":
		return fmt.Sprintf("%s%s (1, %s)", op, by, v)
	case "quantile":
		return fmt.Sprintf("quantile%s (0.75, %s)", by, v)
	case "count_values":
		return fmt.Sprintf(`count_values%s ("v", count_over_time(%s[%dms]))`, by, pick(m, queryGauges...), m.width())
	default:
		return fmt.Sprintf("%s%s (%s)", op, by, v)
	}
}

func (m *queryMaker) function(v string) string {
	switch fn := pick(m, "abs", "sqrt", "ln", "log2", "log10", "exp", "sgn", "floor", "ceil", "round", "clamp", "clamp_min", "clamp_max",
		"absent", "scalar", "sort", "sort_desc", "label_replace", "label_join", "timestamp", "hour", "-", "bool", "atan", "deg"); fn {
	case "floor", "ceil", "round", "sgn":
		// A step of these functions must not hang on the last bit of its argument.
		return fmt.Sprintf("%s(%s + 0.1234)", fn, parens(v))
	case "exp":
		return fmt.Sprintf("exp(%s / 1e7)", parens(v))
	case "clamp":
		return fmt.Sprintf("clamp(%s, 1, 60)", v)
	case "clamp_min", "clamp_max":
		return fmt.Sprintf("%s(%s, 20)", fn, v)
	case "scalar":
		return fmt.Sprintf("vector(scalar(sum(%s)))", v)
	case "label_replace":
		return fmt.Sprintf(`label_replace(%s, "n", "$1", "instance", "r(.)")`, v)
	case "label_join":
		return fmt.Sprintf(`label_join(%s, "n", "-", "instance", "job")`, v)
	case "-":
		return "-" + parens(v)
	case "bool":
		return fmt.Sprintf("%s > bool 20.1234", parens(v))
	default:
		return fmt.Sprintf("%s(%s)", fn, v)
	}
}
