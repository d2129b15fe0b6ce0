package send

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

var wide = bounds{bytes: 1 << 30, samples: 1 << 30}

// encodeAll encodes a batch and decodes it again.
func encodeAll(t testing.TB, w written, e *encoder, tb *table, b *batch, lim bounds, starts []int64) (requests int) {
	t.Helper()
	for from := 0; from < b.slots; {
		r := e.encode(tb, b, from, lim, requests == 0, starts)
		if r.to <= from {
			t.Fatalf("request of slots %d to %d", from, r.to)
		}
		if r.series > 0 {
			n, err := w.decode(tb.protocol, r.body)
			if err != nil {
				t.Fatalf("slots %d to %d: %v", r.from, r.to, err)
			}
			if n != r.samples {
				t.Fatalf("%d samples decoded, %d said to be encoded", n, r.samples)
			}
			if r.series > 1 && (r.samples > lim.samples || len(r.body) > lim.bytes) {
				t.Fatalf("%d samples in %d bytes, bounds are %+v", r.samples, len(r.body), lim)
			}
			requests++
		}
		from = r.to
	}
	return requests
}

// starts gives every second slot a start time.
func startsOf(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = noStart
		if i%2 == 0 {
			out[i] = 1_750_000_000_123
		}
	}
	return out
}

var external = []collectors.Label{{Name: "instance", Value: "router"}, {Name: "Job", Value: "node"}, {Name: "cpu", Value: "overridden"}}

func TestEncodeDecodes(t *testing.T) {
	s := seed(t)
	for _, c := range []struct {
		name          string
		series, ticks int
		lim           bounds
		requests      int
	}{
		{"one sample", 1, 1, wide, 1},
		{"50 ticks", 500, 50, wide, 1},
		{"sample bound", 500, 50, bounds{bytes: 1 << 30, samples: 5000}, 5},
		{"series bound", 25_000, 2, wide, 3},
		{"byte bound", 500, 50, bounds{bytes: 100_000, samples: 1 << 30}, 0},
		{"one series at least", 3, 50, bounds{}, 3},
		{"no series", 0, 3, wide, 0},
	} {
		for _, p := range []Protocol{V2, V1} {
			t.Run(fmt.Sprintf("%s/v%d", c.name, p), func(t *testing.T) {
				r := newRun(s, c.series, c.ticks)
				starts := startsOf(c.series)
				if p == V1 {
					starts = nil
				}
				var e encoder
				got := written{}
				n := encodeAll(t, got, &e, newTable(p, r.series, external), r.batch(&batch{}, 0, c.ticks), c.lim, starts)
				if c.requests != 0 && n != c.requests {
					t.Errorf("%d requests, want %d", n, c.requests)
				}
				if diff := cmp.Diff(r.want(external, starts), got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestEncodeBatches splits runs in which series come and go at random places: the
// staleness markers must not depend on where a batch ends.
func TestEncodeBatches(t *testing.T) {
	s := seed(t)
	rnd := rand.New(rand.NewPCG(s, 2))
	for range 50 {
		r := newRun(rnd.Uint64(), 1+rnd.IntN(150), 1+rnd.IntN(60))
		for i := range r.ticks {
			for w := range r.ticks[i].Present {
				r.ticks[i].Present[w] &= rnd.Uint64() | rnd.Uint64() | rnd.Uint64()
			}
			r.ticks[i].Read = rnd.Uint64() | rnd.Uint64()
			if n := rnd.IntN(len(r.series) + 1); rnd.IntN(10) == 0 { // a schema that grew later
				r.ticks[i].Values, r.ticks[i].Present = r.ticks[i].Values[:n], r.ticks[i].Present[:(n+63)/64]
			}
		}
		starts := startsOf(len(r.series))
		tb := newTable(V2, r.series, nil)
		var e encoder
		var b batch
		got := written{}
		for from := 0; from < len(r.ticks); {
			to := min(len(r.ticks), from+1+rnd.IntN(20))
			encodeAll(t, got, &e, tb, r.batch(&b, from, to), bounds{bytes: 1 << 20, samples: 1 + rnd.IntN(500)}, starts)
			b.done()
			from = to
		}
		if diff := cmp.Diff(r.want(nil, starts), got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestEncodeTimes covers times that do not take six bytes: a clock that starts in
// 1970, before it, and far ahead.
func TestEncodeTimes(t *testing.T) {
	for _, first := range []int64{0, 1, 40_000, -5_000, 1<<35 - 50, 1<<42 - 50, math.MaxInt64 - 1000} {
		for _, start := range []int64{noStart, 0, -1, 1, 1 << 50} {
			r := newRun(1, 3, 5)
			for i := range r.ms {
				r.ms[i] = first + int64(i)*100
			}
			starts := []int64{start, start, start}
			got := written{}
			encodeAll(t, got, &encoder{}, newTable(V2, r.series, nil), r.batch(&batch{}, 0, 5), wide, starts)
			if diff := cmp.Diff(r.want(nil, starts), got); diff != "" {
				t.Errorf("first %d, start %d: %s", first, start, diff)
			}
		}
	}
}

// TestEncodeIsOneSnappyBody compares the block-by-block compression with one call.
func TestEncodeIsOneSnappyBody(t *testing.T) {
	r := newRun(1, 2000, 40)
	var e encoder
	body := e.encode(newTable(V2, r.series, nil), r.batch(&batch{}, 0, 40), 0, wide, false, nil).body
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := binary.Uvarint(body); int(n) != len(raw) || n < 5*blockSize {
		t.Errorf("length %d before %d bytes", n, len(raw))
	}
	if whole := len(snappy.Encode(nil, raw)); len(body) > whole+whole/50 {
		t.Errorf("%d bytes, %d when compressed as a whole", len(body), whole)
	}
}

func TestMetadata(t *testing.T) {
	series := []collectors.Series{
		{Metric: &collectors.Metric{Name: "a_total", Help: "A.", Type: collectors.Counter}},
		{Metric: &collectors.Metric{Name: "b_seconds", Help: "B\xff.", Unit: "seconds", Type: collectors.Gauge}, Labels: []collectors.Label{{Name: "x", Value: "1"}}},
		{Metric: &collectors.Metric{Name: "b_seconds", Help: "B\xff.", Unit: "seconds", Type: collectors.Gauge}, Labels: []collectors.Label{{Name: "x", Value: "2"}}},
		{Metric: &collectors.Metric{Name: "c"}},
	}
	r := &run{series: series, ms: []int64{5}, ticks: []frame.Tick{{Read: 1, Values: make([]int64, 4), Present: []uint64{15}}}}
	var e encoder
	raw, err := snappy.Decode(nil, e.encode(newTable(V1, series, nil), r.batch(&batch{}, 0, 1), 0, wide, true, nil).body)
	if err != nil {
		t.Fatal(err)
	}
	var one prompb.WriteRequest
	if err := one.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	want := []prompb.MetricMetadata{
		{Type: prompb.MetricMetadata_COUNTER, MetricFamilyName: "a_total", Help: "A."},
		{Type: prompb.MetricMetadata_GAUGE, MetricFamilyName: "b_seconds", Help: "B\uFFFD.", Unit: "seconds"},
		{MetricFamilyName: "c"},
	}
	if diff := cmp.Diff(want, one.Metadata); diff != "" {
		t.Error(diff)
	}
	if raw, err = snappy.Decode(nil, e.encode(newTable(V2, series, nil), r.batch(&batch{}, 0, 1), 0, wide, true, nil).body); err != nil {
		t.Fatal(err)
	}
	var two writev2.Request
	if err := two.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	for i, m := range []prompb.MetricMetadata{want[0], want[1], want[1], want[2]} {
		md := two.Timeseries[i].Metadata
		got := prompb.MetricMetadata{Type: prompb.MetricMetadata_MetricType(md.Type), MetricFamilyName: m.MetricFamilyName,
			Help: two.Symbols[md.HelpRef], Unit: two.Symbols[md.UnitRef]}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("series %d: %s", i, diff)
		}
	}
}

func TestLabels(t *testing.T) {
	m := &collectors.Metric{Name: "m"}
	for name, c := range map[string]struct {
		own, external, want []collectors.Label
	}{
		"name sorts as bytes": {
			external: []collectors.Label{{Name: "Zone", Value: "z"}, {Name: "a", Value: "1"}},
			want:     []collectors.Label{{Name: "Zone", Value: "z"}, {Name: "__name__", Value: "m"}, {Name: "a", Value: "1"}},
		},
		"own label wins": {
			own:      []collectors.Label{{Name: "job", Value: "own"}},
			external: []collectors.Label{{Name: "job", Value: "external"}},
			want:     []collectors.Label{{Name: "__name__", Value: "m"}, {Name: "job", Value: "own"}},
		},
		"empty values are no labels": {
			own:      []collectors.Label{{Name: "job", Value: ""}},
			external: []collectors.Label{{Name: "job", Value: "external"}, {Name: "x", Value: ""}},
			want:     []collectors.Label{{Name: "__name__", Value: "m"}, {Name: "job", Value: "external"}},
		},
		"not UTF-8": {
			own:  []collectors.Label{{Name: "dev", Value: "a\xc3"}},
			want: []collectors.Label{{Name: "__name__", Value: "m"}, {Name: "dev", Value: "a\uFFFD"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := appendLabels(nil, &collectors.Series{Metric: m, Labels: c.own}, c.external)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEncodeAllocates(t *testing.T) {
	for _, p := range []Protocol{V2, V1} {
		r := newRun(1, 500, 50)
		tb, starts := newTable(p, r.series, external), startsOf(500)
		var e encoder
		var b batch
		r.batch(&b, 0, 50)
		e.encode(tb, &b, 0, wide, true, starts)
		if n := testing.AllocsPerRun(20, func() {
			r.batch(&b, 0, 50)
			e.encode(tb, &b, 0, wide, true, starts)
			b.done()
		}); n != 0 {
			t.Errorf("v%d: %v allocations a request", p, n)
		}
	}
}

// FuzzEncode makes ticks of arbitrary bytes.
func FuzzEncode(f *testing.F) {
	f.Add([]byte("\x03\x01 some values and bits to begin with, none of them special"), "eth0", int64(1_760_000_000_000), int64(0), uint16(9))
	f.Add(bytes.Repeat([]byte{0xff, 0, 0x80}, 99), "\xff\xfe", int64(-1), int64(math.MinInt64), uint16(1))
	f.Add([]byte{2}, "", int64(1<<35-1), int64(1<<42), uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, label string, ms, start int64, maxSamples uint16) {
		if ms > math.MaxInt64-1<<20 || len(data) == 0 {
			return
		}
		n := 1 + int(data[0])%100
		r := &run{}
		for i := range n {
			m := &collectors.Metric{Name: fmt.Sprint("m", i), Help: label, Kind: collectors.Kind(i % 3), Type: collectors.Type(i % 3), Div: float64(i % 4)}
			r.series = append(r.series, collectors.Series{Metric: m, Source: uint8(i % 64), Labels: []collectors.Label{{Name: "l", Value: label}}})
		}
		at := func(i int) uint64 {
			var w [8]byte
			copy(w[:], data[i%len(data):])
			return binary.LittleEndian.Uint64(w[:])
		}
		for i := range min(batchTicks, 1+len(data)/8) {
			ms += 1 + int64(at(i)%1000)
			tick := frame.Tick{Seq: uint64(i), Read: at(i * 3)}
			for s := range int(at(i*5) % uint64(2*n)) {
				tick.Values = append(tick.Values, int64(at(i*7+s)))
			}
			for s := range int(at(i*11) % 4) {
				tick.Present = append(tick.Present, at(i*13+s))
			}
			r.ticks, r.ms = append(r.ticks, tick), append(r.ms, ms)
		}
		starts := make([]int64, n)
		for i := range starts {
			starts[i] = start
		}
		for _, p := range []Protocol{V2, V1} {
			st := starts
			if p == V1 {
				st = nil
			}
			got := written{}
			encodeAll(t, got, &encoder{}, newTable(p, r.series, external), r.batch(&batch{}, 0, len(r.ticks)), bounds{bytes: 1 << 20, samples: int(maxSamples)}, st)
			if diff := cmp.Diff(r.want(external, st), got); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// BenchmarkEncode is the mark of the design: 500 series × 50 ticks.
func BenchmarkEncode(b *testing.B) {
	for _, c := range []struct {
		name  string
		p     Protocol
		start bool
	}{{"v2 with start", V2, true}, {"v2", V2, false}, {"v1", V1, false}} {
		b.Run("protocol="+c.name+"/series=500/ticks=50", func(b *testing.B) {
			r := newRun(1, 500, 50)
			for i := range r.ticks {
				r.ticks[i].Read = math.MaxUint64
			}
			var starts []int64
			if c.start {
				starts = make([]int64, 500)
				for i := range starts {
					starts[i] = 1_750_000_000_000
				}
			}
			tb := newTable(c.p, r.series, external)
			var e encoder
			var bt batch
			b.ReportAllocs()
			var n, size int
			for b.Loop() {
				r.batch(&bt, 0, 50)
				req := e.encode(tb, &bt, 0, wide, false, starts)
				bt.done()
				n, size = req.samples, len(req.body)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/sample")
			b.ReportMetric(float64(size)/float64(n), "B/sample")
		})
	}
}
