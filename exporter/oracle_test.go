package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/burst"
	"github.com/ticktier/ticktier/exporter/expose"
	"github.com/ticktier/ticktier/exporter/follow"
	"github.com/ticktier/ticktier/exporter/ring"
)

// TestBurstsOracle: what /metrics tells of ticks between scrapes is what anybody works
// out who fetches every tick from /api/v1/samples and counts by hand: each bucket of
// both kinds, the sums, and each of two scrapers' lowest and highest.
func TestBurstsOracle(t *testing.T) {
	for range 4 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			m := newBurstMachine(t, rand.New(rand.NewPCG(seed, 0)))
			since := map[string]uint64{} // by scraper and series, the first tick that the next scrape covers
			for range 30 {
				for range 1 + m.rnd.IntN(40) {
					m.tick()
				}
				who := []string{"a", "b"}[m.rnd.IntN(2)]
				m.compare(who, since)
			}
		})
	}
}

// burstMachine is a ring, a recorder and the handler before both, with made ticks.
type burstMachine struct {
	t       *testing.T
	rnd     *rand.Rand
	schema  collectors.Schema
	row     collectors.Row
	ring    *ring.Ring
	bursts  *burst.Recorder
	handler http.Handler

	seq    uint64
	mono   int64
	slots  []int // of the series that follow the two marks
	source []uint8
}

// marks are series that say which source was read; source 1 is read in half of the
// ticks.
const marks = 2

func newBurstMachine(t *testing.T, rnd *rand.Rand) *burstMachine {
	m := &burstMachine{t: t, rnd: rnd, mono: 1e9}
	var err error
	if m.ring, err = ring.New(4 << 20); err != nil {
		t.Fatal(err)
	}
	m.bursts = burst.New(&m.schema)
	m.handler, err = expose.Handler(expose.Config{Latest: m.ring, Schema: &m.schema, Bursts: m.bursts,
		Reader: func() expose.Reader { return m.ring.Reader() }, Session: "s", Wall: func(mono int64) int64 { return mono / 1e6 }})
	if err != nil {
		t.Fatal(err)
	}
	add := func(source uint8, name string, div float64, labels ...string) {
		var ls []collectors.Label
		for i := 0; i < len(labels); i += 2 {
			ls = append(ls, collectors.Label{Name: labels[i], Value: labels[i+1]})
		}
		slot := m.schema.Add(source, &collectors.Metric{Name: name, Type: collectors.Counter, Div: div}, ls...)
		m.row.Grow(slot + 1)
		m.row.Set(slot, 0)
		m.slots, m.source = append(m.slots, slot), append(m.source, source)
	}
	for source := range marks {
		add(uint8(source), fmt.Sprint("mark", source), 0)
	}
	for cpu := range 2 {
		c := fmt.Sprint(cpu)
		for _, mode := range []string{"idle", "iowait", "user", "softirq"} {
			add(0, "node_cpu_seconds_total", 0, "cpu", c, "mode", mode)
		}
		add(0, "node_softnet_processed_total", 0, "cpu", c)
		add(1, "node_softnet_backlog_len", 0, "cpu", c)
		add(1, "node_schedstat_running_seconds_total", 0, "cpu", c)
	}
	for _, dev := range []string{"eth0", "wlan0"} {
		for _, what := range []string{"receive_bytes", "transmit_bytes", "receive_packets", "transmit_packets"} {
			add(uint8(len(dev)%2), "node_network_"+what+"_total", 0, "device", dev)
		}
	}
	return m
}

// tick makes one: some late, some slots missed, rows that vanish, counters that stand,
// leap and begin anew.
func (m *burstMachine) tick() {
	if m.rnd.IntN(20) == 0 {
		missed := 1 + m.rnd.Int64N(3)
		m.seq, m.mono = m.seq+uint64(missed), m.mono+missed*100e6
	}
	read := uint64(1)
	if m.rnd.IntN(2) == 0 {
		read = 3
	}
	for i, slot := range m.slots {
		if read>>m.source[i]&1 == 0 {
			continue
		}
		switch n := m.rnd.IntN(100); {
		case i < marks:
		case n == 0:
			m.row.Clear(slot)
			continue
		case n == 1:
			m.row.Set(slot, m.rnd.Int64N(10))
			continue
		case n < 40:
			m.row.Set(slot, m.row.Values[slot]+m.rnd.Int64N(1<<m.rnd.IntN(30)))
			continue
		}
		m.row.Set(slot, m.row.Values[slot])
	}
	late := int64(0)
	if m.rnd.IntN(10) == 0 {
		late = m.rnd.Int64N(50) * 1e6
	}
	sinks{m.ring, m.bursts}.Append(m.seq, m.mono+late, read, m.row.Values, m.row.Present)
	m.seq, m.mono = m.seq+1, m.mono+100e6
}

func (m *burstMachine) get(path, agent, accept string) []byte {
	m.t.Helper()
	req := httptest.NewRequest("GET", path, nil)
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", accept)
	rec := httptest.NewRecorder()
	m.handler.ServeHTTP(rec, req)
	if rec.Code != http.StatusOK {
		m.t.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
	}
	return rec.Body.Bytes()
}

// compare scrapes as somebody and counts by hand. A range goes back to the last scrape
// that had the series: one whose row was gone loses nothing.
func (m *burstMachine) compare(who string, last map[string]uint64) {
	m.t.Helper()
	values := byHand(m.t, m.get("/api/v1/samples?max=100000", "hand", ""))
	dec := expfmt.NewDecoder(bytes.NewReader(m.get("/metrics", who, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")),
		expfmt.NewFormat(expfmt.TypeProtoDelim))
	scraped := map[string]*dto.Metric{}
	for {
		f := new(dto.MetricFamily)
		if err := dec.Decode(f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			m.t.Fatal(err)
		}
		for _, x := range f.GetMetric() {
			if len(x.GetLabel()) == 1 {
				scraped[f.GetName()+" "+x.GetLabel()[0].GetValue()] = x
			}
		}
	}
	shown := 0
	for name, vs := range values {
		family, label := name[0], name[1]
		h := scraped[family+" "+label].GetHistogram()
		if h == nil {
			continue // it never moved, or its row is gone
		}
		shown++
		since := last[who+family+label]
		last[who+family+label] = m.seq
		checkHistogram(m.t, family+" "+label, h, vs)
		lowest, highest, any := math.Inf(1), math.Inf(-1), false
		for _, v := range vs {
			if v.seq >= since {
				lowest, highest, any = min(lowest, v.v), max(highest, v.v), true
			}
		}
		low, high := scraped[family+"_min "+label], scraped[family+"_max "+label]
		if any != (low != nil) || any && (!near(low.GetGauge().GetValue(), lowest) || !near(high.GetGauge().GetValue(), highest)) {
			m.t.Fatalf("%s %s since tick %d: %v to %v, want %v to %v", family, label, since,
				low.GetGauge().GetValue(), high.GetGauge().GetValue(), lowest, highest)
		}
	}
	if m.seq > 200 && shown < 8 {
		m.t.Fatalf("only %d histograms are shown", shown)
	}
}

func near(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-9*math.Abs(b) }

// checkHistogram sorts values into buckets as the formats' definitions say.
func checkHistogram(t *testing.T, name string, h *dto.Histogram, vs []observed) {
	t.Helper()
	sum := 0.0
	native := map[int]uint64{}
	zero := uint64(0)
	for _, v := range vs {
		sum += v.v
		if v.v <= h.GetZeroThreshold() {
			zero++
			continue
		}
		// (2^((k-1)/8), 2^(k/8)]
		k := int(math.Ceil(8 * math.Log2(v.v)))
		for math.Exp2(float64(k-1)/8) >= v.v {
			k--
		}
		for math.Exp2(float64(k)/8) < v.v {
			k++
		}
		native[k]++
	}
	if h.GetSampleCount() != uint64(len(vs)) || !near(h.GetSampleSum(), sum) || h.GetZeroCount() != zero || h.GetSchema() != 3 {
		t.Fatalf("%s: %d values, sum %v, %d zero; want %d, %v, %d", name, h.GetSampleCount(), h.GetSampleSum(), h.GetZeroCount(), len(vs), sum, zero)
	}
	for _, b := range h.GetBucket() {
		n := uint64(0)
		for _, v := range vs {
			if v.v <= b.GetUpperBound() {
				n++
			}
		}
		if n != b.GetCumulativeCount() {
			t.Fatalf("%s: %d up to %v, want %d", name, b.GetCumulativeCount(), b.GetUpperBound(), n)
		}
	}
	k, i, n := 0, 0, int64(0)
	for _, span := range h.GetPositiveSpan() {
		k += int(span.GetOffset())
		for range span.GetLength() {
			n += h.GetPositiveDelta()[i]
			if uint64(n) != native[k] {
				t.Fatalf("%s: %d in bucket %d, want %d", name, n, k, native[k])
			}
			delete(native, k)
			k, i = k+1, i+1
		}
	}
	if len(native) > 0 {
		t.Fatalf("%s: buckets %v are not there", name, native)
	}
}

// observed is one value that a tick gave.
type observed struct {
	seq uint64
	v   float64
}

// last is what is known of a series from the ticks before.
type last struct {
	v    float64
	here bool
}

// byHand works out each family's values from JSON lines, by family and label.
func byHand(t *testing.T, lines []byte) map[[2]string][]observed {
	t.Helper()
	out := map[[2]string][]observed{}
	r := follow.NewReader(bytes.NewReader(lines))
	before := map[int]last{}
	readAt := map[string]int64{} // by mark
	for {
		o, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.Tick == nil {
			continue
		}
		read := map[string]bool{}
		for id := range o.Tick.Values {
			read[r.Series[id].Name] = true
		}
		handTick(out, r, o.Tick, before, read, readAt)
		for _, mark := range []string{"mark0", "mark1"} {
			if read[mark] {
				readAt[mark] = o.Tick.Time
			}
		}
	}
}

// markOf is the mark of the source that a series is of.
func markOf(s follow.Series) string {
	if s.Name == "node_softnet_backlog_len" || s.Name == "node_schedstat_running_seconds_total" || s.Labels["device"] == "wlan0" {
		return "mark1"
	}
	return "mark0"
}

func handTick(out map[[2]string][]observed, r *follow.Reader, tick *follow.Tick, before map[int]last, read map[string]bool, readAt map[string]int64) {
	type share struct {
		all, idle, soft float64
		whole           bool
	}
	cpus := map[string]*share{}
	ids := make([]int, 0, len(r.Series))
	for id := range r.Series {
		ids = append(ids, id)
	}
	sort.Ints(ids)
	for _, id := range ids {
		s := r.Series[id]
		mark := markOf(s)
		if !read[mark] {
			continue
		}
		v, here := tick.Values[id]
		was := before[id]
		before[id] = last{v, here}
		d := v - was.v
		add := func(family, label string, v float64) {
			key := [2]string{family, label}
			out[key] = append(out[key], observed{tick.Seq, v})
		}
		counted := here && was.here && d >= 0
		since := float64(tick.Time-readAt[mark]) / 1000
		switch s.Name {
		case "node_cpu_seconds_total":
			c := cpus[s.Labels["cpu"]]
			if c == nil {
				c = &share{whole: true}
				cpus[s.Labels["cpu"]] = c
			}
			c.whole = c.whole && counted
			c.all += d
			if slices.Contains([]string{"idle", "iowait"}, s.Labels["mode"]) {
				c.idle += d
			}
			if s.Labels["mode"] == "softirq" {
				c.soft += d
			}
		case "node_softnet_backlog_len":
			if here {
				add("ticktier_softnet_backlog_packets", s.Labels["cpu"], v)
			}
		case "node_softnet_processed_total":
			if counted {
				add("ticktier_softnet_processed_packets", s.Labels["cpu"], d)
			}
		case "node_schedstat_running_seconds_total":
			if counted {
				add("ticktier_cpu_tasks_ratio", s.Labels["cpu"], d/since)
			}
		case "node_network_receive_bytes_total", "node_network_transmit_bytes_total", "node_network_receive_packets_total", "node_network_transmit_packets_total":
			if counted {
				family := "ticktier_network_" + s.Name[len("node_network_"):len(s.Name)-len("_total")] + "_per_second"
				add(family, s.Labels["device"], d/since)
			}
		}
	}
	for cpu, c := range cpus {
		if c.whole && c.all > 0 {
			out[[2]string{"ticktier_cpu_busy_ratio", cpu}] = append(out[[2]string{"ticktier_cpu_busy_ratio", cpu}], observed{tick.Seq, (c.all - c.idle) / c.all})
			out[[2]string{"ticktier_cpu_softirq_ratio", cpu}] = append(out[[2]string{"ticktier_cpu_softirq_ratio", cpu}], observed{tick.Seq, c.soft / c.all})
		}
	}
}
