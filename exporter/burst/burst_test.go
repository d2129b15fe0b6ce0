package burst

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/ticktier/ticktier/collectors"
)

// rig is a machine whose counters a test moves.
type rig struct {
	schema collectors.Schema
	row    collectors.Row
	rec    *Recorder
	seq    uint64
	mono   int64
}

func newRig() *rig {
	r := &rig{mono: 1e9}
	r.rec = New(&r.schema)
	return r
}

func (r *rig) add(name string, div float64, labels ...string) int {
	var ls []collectors.Label
	for i := 0; i < len(labels); i += 2 {
		ls = append(ls, collectors.Label{Name: labels[i], Value: labels[i+1]})
	}
	slot := r.schema.Add(3, &collectors.Metric{Name: name, Type: collectors.Counter, Div: div}, ls...)
	r.row.Grow(slot + 1)
	r.row.Set(slot, 0)
	return slot
}

// tick takes a tick 100 ms after the last.
func (r *rig) tick() {
	r.rec.Append(r.seq, r.mono, 1<<3, r.row.Values, r.row.Present)
	r.seq++
	r.mono += 100e6
}

// series finds one of a snapshot, by family and label value.
func find(s *Snapshot, family int, label string) *Series {
	for i := range s.Families[family].Series {
		x := &s.Families[family].Series[i]
		if len(x.Labels) == 0 && label == "" || len(x.Labels) == 1 && x.Labels[0].Value == label {
			return x
		}
	}
	return nil
}

// TestBurst: 100 ms of full load and a packet burst inside a quiet time are seen,
// once by each scraper.
func TestBurst(t *testing.T) {
	r := newRig()
	idle, user, soft := r.add("node_cpu_seconds_total", 100, "cpu", "0", "mode", "idle"),
		r.add("node_cpu_seconds_total", 100, "cpu", "0", "mode", "user"), r.add("node_cpu_seconds_total", 100, "cpu", "0", "mode", "softirq")
	rx := r.add("node_network_receive_bytes_total", 0, "device", "eth0")
	run := r.add("node_schedstat_running_seconds_total", 1e9, "cpu", "0")
	pkts, wait := r.add("node_softnet_processed_total", 0, "cpu", "0"), r.add("node_softnet_backlog_len", 0, "cpu", "0")
	still := r.add("node_network_transmit_bytes_total", 0, "device", "eth0")
	for i := range 150 {
		if i == 75 {
			r.row.Values[user] += 6
			r.row.Values[soft] += 4
			r.row.Values[rx] += 12_500_000
			r.row.Values[run] += 60e6
			r.row.Values[pkts] += 9000
			r.row.Values[wait] = 300
		} else {
			r.row.Values[idle] += 10
			r.row.Values[wait] = 0
		}
		r.tick()
	}
	var s Snapshot
	r.rec.Snapshot(&s, "a")
	for _, c := range []struct {
		family int
		label  string
		count  uint64
		max    float64
	}{
		{busy, "0", 149, 1}, {softirq, "0", 149, 0.4}, {receiveBytes, "eth0", 149, 125e6}, {tasks, "0", 149, 0.6},
		{processed, "0", 149, 9000}, {backlog, "0", 150, 300},
	} {
		x := find(&s, c.family, c.label)
		if x == nil {
			t.Fatalf("%s is not there", s.Families[c.family].Name)
		}
		if x.Count != c.count || x.Zero != c.count-1 || !x.Ranged || x.Min != 0 || math.Abs(x.Max-c.max) > 1e-9*c.max ||
			len(x.Native) != 1 || x.Native[0] != 1 || math.Abs(x.Sum-c.max) > 1e-9*c.max {
			t.Errorf("%s: %+v, want %d with one of %v", s.Families[c.family].Name, x, c.count, c.max)
		}
		if hi := math.Exp2(float64(x.First) / 8); c.max > hi || c.max <= hi/math.Exp2(1./8) {
			t.Errorf("%s: %v in the bucket up to %v", s.Families[c.family].Name, c.max, hi)
		}
	}
	if find(&s, transmitBytes, "eth0") != nil {
		t.Errorf("slot %d never moved and is shown", still)
	}
	r.row.Values[idle] += 10
	r.row.Values[wait] = 7
	r.tick()
	r.rec.Snapshot(&s, "a")
	if x := find(&s, backlog, "0"); x.Max != 7 || x.Min != 7 || x.Count != 151 {
		t.Errorf("again: %+v", x)
	}
	r.rec.Snapshot(&s, "a")
	if x := find(&s, backlog, "0"); x.Ranged {
		t.Errorf("no tick since the last scrape: %+v", x)
	}
	r.rec.Snapshot(&s, "b")
	if x := find(&s, backlog, "0"); x.Max != 300 || x.Min != 0 {
		t.Errorf("another scraper: %+v", x)
	}
}

// TestOdd: resets, absent rows, unread sources and series that come back.
func TestOdd(t *testing.T) {
	r := newRig()
	rx := r.add("node_network_receive_bytes_total", 0, "device", "eth0")
	step := func(v int64) { r.row.Set(rx, v); r.tick() }
	step(1000)
	step(2000) // 10 kB/s
	step(50)   // reset
	step(150)  // 1 kB/s
	r.row.Clear(rx)
	r.tick()
	step(1e6) // came back: no rate yet
	r.rec.Append(r.seq, r.mono, 1<<4, r.row.Values, r.row.Present)
	r.seq, r.mono = r.seq+1, r.mono+100e6 // not read
	step(1e6 + 1000)                      // over 200 ms: 5 kB/s
	var s Snapshot
	r.rec.Snapshot(&s, "a")
	if x := find(&s, receiveBytes, "eth0"); x.Count != 3 || x.Sum != 16e3 || x.Min != 1e3 || x.Max != 1e4 {
		t.Errorf("%+v", x)
	}
	r.row.Clear(rx)
	r.tick()
	r.rec.Snapshot(&s, "a")
	if x := find(&s, receiveBytes, "eth0"); x != nil {
		t.Errorf("an absent row is shown: %+v", x)
	}
	rx = r.add("node_network_receive_bytes_total", 0, "device", "eth0")
	step(0)
	step(200)
	r.rec.Snapshot(&s, "a")
	if x := find(&s, receiveBytes, "eth0"); x == nil || x.Count != 4 || x.Max != 2e3 {
		t.Errorf("in a new slot: %+v", x)
	}
	if len(r.rec.gauges) != 1 {
		t.Errorf("%d series are followed", len(r.rec.gauges))
	}
}

// TestBound: no more series than there is room for, nor scrapers.
func TestBound(t *testing.T) {
	r := newRig()
	for i := range maxSeries + 5 {
		r.add("node_network_receive_bytes_total", 0, "device", fmt.Sprint("veth", i))
	}
	r.tick()
	for i := range r.row.Values {
		r.row.Values[i] = 5
	}
	r.tick()
	var s Snapshot
	for i := range 3 * maxScrapers {
		r.rec.Snapshot(&s, fmt.Sprint(i))
	}
	if n := len(s.Families[receiveBytes].Series); n != maxSeries || s.Overflow != 5 {
		t.Errorf("%d series are followed, %d are not", n, s.Overflow)
	}
}

// TestMakesRoom: on a machine whose interfaces come and go, what is new takes the place
// of what is gone.
func TestMakesRoom(t *testing.T) {
	r := newRig()
	const at = "node_network_receive_bytes_total"
	for i := range maxSeries {
		r.add(at, 0, "device", fmt.Sprint("veth", i))
	}
	r.tick()
	for i := range 2 * maxSeries {
		r.row.Clear(i)
		r.tick()
		slot := r.add(at, 0, "device", fmt.Sprint("veth", maxSeries+i))
		r.tick()
		r.row.Values[slot] += 100
		r.tick()
		var s Snapshot
		r.rec.Snapshot(&s, "a")
		if x := find(&s, receiveBytes, fmt.Sprint("veth", maxSeries+i)); x == nil || x.Max != 1000 || x.Count != 1 || s.Overflow != 0 {
			t.Fatalf("interface %d: %+v, %d are left out", maxSeries+i, x, s.Overflow)
		}
	}
	if len(r.rec.gauges) != maxSeries || len(r.rec.byKey) != maxSeries {
		t.Errorf("%d gauges, %d names", len(r.rec.gauges), len(r.rec.byKey))
	}
}

// TestManyCPUs: a CPU that is not followed counts for its two series, whatever modes it
// has.
func TestManyCPUs(t *testing.T) {
	r := newRig()
	for cpu := range maxSeries/2 + 3 {
		for _, mode := range []string{"idle", "user", "softirq"} {
			r.add("node_cpu_seconds_total", 100, "cpu", fmt.Sprint(cpu), "mode", mode)
		}
	}
	r.tick()
	if n := r.rec.Overflow(); n != 6 || len(r.rec.cpus) != maxSeries/2 {
		t.Errorf("%d series are left out, %d CPUs followed", n, len(r.rec.cpus))
	}
}

func TestTiming(t *testing.T) {
	r := newRig()
	r.tick()
	r.rec.Timing(2000, 500_000, 1500)
	r.rec.Timing(20e6, 1e6, -1)
	var s Snapshot
	r.rec.Snapshot(&s, "a")
	for family, want := range map[int]extent{delay: {2e-6, 20e-3, true}, duration: {500e-6, 1e-3, true}, wakeup: {1.5e-6, 1.5e-6, true}} {
		if x := find(&s, family, ""); x == nil || x.Min != want.min || x.Max != want.max {
			t.Errorf("%s: %+v", s.Families[family].Name, x)
		}
	}
}

// TestHistogram compares with client_golang's.
func TestHistogram(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	bounds := families()[receiveBytes].Bounds
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", Buckets: bounds,
		NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: ZeroThreshold})
	ours := histogram{classic: make([]uint64, len(bounds)+1)}
	for i := range 20_000 {
		v := math.Exp2(rnd.Float64()*70 - 39)
		switch i % 10 {
		case 0:
			v = math.Exp2(float64(rnd.IntN(60) - 30)) // on a bound
		case 1:
			v = 0
		case 2:
			v = bounds[rnd.IntN(len(bounds))]
		}
		ours.observe(v, bounds)
		theirs.Observe(v)
	}
	var m dto.Metric
	if err := theirs.Write(&m); err != nil {
		t.Fatal(err)
	}
	h := m.GetHistogram()
	if h.GetSchema() != Schema || h.GetZeroThreshold() != ZeroThreshold {
		t.Fatalf("schema %d, threshold %v", h.GetSchema(), h.GetZeroThreshold())
	}
	want := map[int]uint64{}
	k, i, n := 0, 0, int64(0)
	for _, span := range h.GetPositiveSpan() {
		k += int(span.GetOffset())
		for range span.GetLength() {
			n += h.GetPositiveDelta()[i]
			if n > 0 {
				want[k] = uint64(n)
			}
			k, i = k+1, i+1
		}
	}
	got := map[int]uint64{}
	for i, n := range ours.native {
		if n > 0 {
			got[ours.first+i] = n
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("seed %d: %s", seed, d)
	}
	if ours.count != h.GetSampleCount() || ours.zero != h.GetZeroCount() || math.Abs(ours.sum/h.GetSampleSum()-1) > 1e-9 {
		t.Errorf("count %d, zero %d, sum %v", ours.count, ours.zero, ours.sum)
	}
	var all uint64
	for i, b := range h.GetBucket() {
		if all += ours.classic[i]; all != b.GetCumulativeCount() {
			t.Errorf("up to %v: %d, want %d", b.GetUpperBound(), all, b.GetCumulativeCount())
		}
	}
}

func TestExtremes(t *testing.T) {
	h := histogram{classic: make([]uint64, 1)}
	for _, v := range []float64{math.MaxFloat64, math.Inf(1), math.SmallestNonzeroFloat64, ZeroThreshold * 1.01, math.NaN(), -1} {
		h.observe(v, nil)
	}
	if h.count != 3 || h.zero != 1 || len(h.native) > maxKey-minKey+2*growKey {
		t.Errorf("%d, %d, %d buckets", h.count, h.zero, len(h.native))
	}
}

func filled() *rig {
	r := newRig()
	for cpu := range 4 {
		for _, mode := range []string{"idle", "user", "system", "softirq", "iowait", "nice", "irq", "steal"} {
			r.add("node_cpu_seconds_total", 100, "cpu", fmt.Sprint(cpu), "mode", mode)
		}
		r.add("node_softnet_processed_total", 0, "cpu", fmt.Sprint(cpu))
		r.add("node_softnet_backlog_len", 0, "cpu", fmt.Sprint(cpu))
		r.add("node_schedstat_running_seconds_total", 1e9, "cpu", fmt.Sprint(cpu))
	}
	for dev := range 8 {
		for name := range followedMetrics {
			if followedMetrics[name].label == "device" {
				r.add(name, 0, "device", fmt.Sprint("eth", dev))
			}
		}
	}
	return r
}

func (r *rig) move(i int) {
	for slot := range r.row.Values {
		r.row.Values[slot] += int64(1 + (slot+i)%13)
	}
	r.tick()
	r.rec.Timing(int64(1000+i%7), int64(400_000+i%9), int64(500+i%5))
}

func TestAllocs(t *testing.T) {
	r := filled()
	i := 0
	for ; i < 100; i++ {
		r.move(i)
	}
	if n := testing.AllocsPerRun(1000, func() { r.move(i); i++ }); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
	var s Snapshot
	if n := testing.AllocsPerRun(100, func() { r.rec.Snapshot(&s, "a") }); n > 0 {
		t.Errorf("%v allocations a snapshot", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	r := filled()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.move(i)
	}
}
