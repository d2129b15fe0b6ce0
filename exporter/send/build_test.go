package send

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// sample is one decoded or expected sample. The value is kept as bits, so that
// NaNs compare.
type sample struct {
	Ms    int64
	Bits  uint64
	Start int64 // 0 is none
}

// written is what a receiver makes of requests: the samples of each label set.
type written map[string][]sample

// key writes a label set as PromQL would.
func key(names, values []string) string {
	var sb strings.Builder
	for i := range names {
		fmt.Fprintf(&sb, "%s=%q,", names[i], values[i])
	}
	return sb.String()
}

// decode decodes a body with Prometheus' own types and checks what the
// specification asks of every request. It returns the number of samples.
func (w written) decode(p Protocol, body []byte) (int, error) {
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		return 0, fmt.Errorf("decompress: %w", err)
	}
	if p == V1 {
		return w.decode1(raw)
	}
	return w.decode2(raw)
}

func (w written) decode1(raw []byte) (int, error) {
	var req prompb.WriteRequest
	if err := req.Unmarshal(raw); err != nil {
		return 0, fmt.Errorf("unmarshal 1.0: %w", err)
	}
	n := 0
	for _, ts := range req.Timeseries {
		var names, values []string
		for _, l := range ts.Labels {
			names, values = append(names, l.Name), append(values, l.Value)
		}
		var ss []sample
		for _, s := range ts.Samples {
			ss = append(ss, sample{Ms: s.Timestamp, Bits: math.Float64bits(s.Value)})
		}
		if err := w.add(names, values, ss); err != nil {
			return 0, err
		}
		n += len(ss)
	}
	return n, nil
}

func (w written) decode2(raw []byte) (int, error) {
	var req writev2.Request
	if err := req.Unmarshal(raw); err != nil {
		return 0, fmt.Errorf("unmarshal 2.0: %w", err)
	}
	if len(req.Symbols) == 0 || req.Symbols[0] != "" {
		return 0, fmt.Errorf("symbols do not start with the empty string")
	}
	sorted := slices.Sorted(slices.Values(req.Symbols))
	if len(slices.Compact(sorted)) != len(req.Symbols) {
		return 0, fmt.Errorf("symbols are not deduplicated")
	}
	n := 0
	for _, ts := range req.Timeseries {
		if len(ts.LabelsRefs)%2 != 0 {
			return 0, fmt.Errorf("%d label references", len(ts.LabelsRefs))
		}
		var names, values []string
		for i := 0; i < len(ts.LabelsRefs); i += 2 {
			names = append(names, req.Symbols[ts.LabelsRefs[i]])
			values = append(values, req.Symbols[ts.LabelsRefs[i+1]])
		}
		_, _ = req.Symbols[ts.Metadata.HelpRef], req.Symbols[ts.Metadata.UnitRef]
		var ss []sample
		for _, s := range ts.Samples {
			ss = append(ss, sample{Ms: s.Timestamp, Bits: math.Float64bits(s.Value), Start: s.StartTimestamp})
		}
		if err := w.add(names, values, ss); err != nil {
			return 0, err
		}
		n += len(ss)
	}
	return n, nil
}

// add checks a series as a strict receiver does and keeps its samples.
func (w written) add(names, values []string, ss []sample) error {
	k := key(names, values)
	switch {
	case !slices.IsSorted(names):
		return fmt.Errorf("labels of %s are not sorted", k)
	case len(slices.Compact(slices.Clone(names))) != len(names):
		return fmt.Errorf("%s repeats a label", k)
	case slices.Contains(values, ""):
		return fmt.Errorf("%s has an empty label", k)
	case len(ss) == 0:
		return fmt.Errorf("%s has no sample", k)
	}
	for i := 1; i < len(ss); i++ {
		if ss[i].Ms <= ss[i-1].Ms {
			return fmt.Errorf("%s: sample at %d follows one at %d", k, ss[i].Ms, ss[i-1].Ms)
		}
	}
	w[k] = append(w[k], ss...)
	return nil
}

// run is made-up ticks with the schema they belong to.
type run struct {
	series []collectors.Series
	ticks  []frame.Tick
	ms     []int64
}

// newRun makes n ticks of so many series, 20 rows to a metric: a third counters
// that move like a kernel's, the rest gauges, some hundredths, some floats. Every
// eighth source is read in every fifth tick only.
func newRun(seed uint64, series, n int) *run {
	r := rand.New(rand.NewPCG(seed, 1))
	out := &run{}
	for i := range series {
		m := &collectors.Metric{Name: fmt.Sprintf("node_made_up_%d_total", i/20), Help: "Made up.", Type: collectors.Counter}
		switch i / 20 % 6 {
		case 1:
			m.Type, m.Kind = collectors.Gauge, collectors.Signed
		case 2:
			m.Div, m.Unit = 100, "seconds"
		case 3:
			m.Type, m.Kind = collectors.Gauge, collectors.Float
		case 4:
			m.Mul = 1024
		}
		out.series = append(out.series, collectors.Series{Metric: m, Source: uint8(i / 20 % 64),
			Labels: []collectors.Label{{Name: "cpu", Value: strconv.Itoa(i % 20)}}})
	}
	values := make([]int64, series)
	for i := range values {
		values[i] = r.Int64N(1 << 40)
	}
	for i := range n {
		t := frame.Tick{Seq: uint64(i), Time: int64(i) * 100e6, Values: make([]int64, series), Present: make([]uint64, (series+63)/64)}
		for src := range 64 {
			if src%8 != 7 || i%5 == 0 {
				t.Read |= 1 << src
			}
		}
		for s := range values {
			switch {
			case out.series[s].Kind == collectors.Float:
				values[s] = int64(math.Float64bits(float64(r.IntN(400)) / 4))
			case r.IntN(3) == 0:
				values[s] += r.Int64N(2000)
			}
			t.Present[s>>6] |= 1 << (s & 63)
		}
		copy(t.Values, values)
		out.ticks = append(out.ticks, t)
		out.ms = append(out.ms, 1_760_000_000_000+int64(i)*100)
	}
	return out
}

// batch makes a batch of the ticks [from, to).
func (r *run) batch(b *batch, from, to int) *batch {
	b.reset(len(r.series))
	for i := from; i < to; i++ {
		b.add(&r.ticks[i], r.ms[i])
	}
	b.prepare()
	return b
}

// want is what a receiver must have after all ticks, found the slow way. starts
// are left out for 1.0.
func (r *run) want(external []collectors.Label, starts []int64) written {
	w := written{}
	for slot := range r.series {
		s := &r.series[slot]
		var names, values []string
		for _, l := range appendLabels(nil, s, external) {
			names, values = append(names, l.Name), append(values, l.Value)
		}
		var ss []sample
		live := false
		for i := range r.ticks {
			t := &r.ticks[i]
			switch {
			case slot < len(t.Values) && t.Has(slot):
				if t.Read>>s.Source&1 == 1 {
					x := sample{Ms: r.ms[i], Bits: math.Float64bits(s.Value(t.Values[slot]))}
					if starts != nil && starts[slot] != noStart {
						x.Start = starts[slot]
					}
					ss = append(ss, x)
					live = true
				}
			case live:
				ss = append(ss, sample{Ms: r.ms[i], Bits: staleNaN})
				live = false
			}
		}
		if len(ss) > 0 {
			w[key(names, values)] = append(w[key(names, values)], ss...)
		}
	}
	return w
}

// seed is TEST_SEED, or a new one; it is logged, so that a failure can be repeated.
func seed(t testing.TB) uint64 {
	if v, err := strconv.ParseUint(os.Getenv("TEST_SEED"), 10, 64); err == nil {
		return v
	}
	s := rand.Uint64()
	t.Logf("TEST_SEED=%d", s)
	return s
}
