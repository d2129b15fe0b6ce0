package burst

import (
	"math"
	"testing"

	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/ticktier/ticktier/collectors"
)

// writing is a rig with a writer and a bursty interface.
func writing() (*rig, *Writer, int, *int64) {
	r := newRig()
	rx := r.add("node_network_receive_bytes_total", 0, "device", "eth0\xff")
	now := int64(1_700_000_000_000)
	w := &Writer{Recorder: r.rec, Name: "w", Now: func() int64 { now += 5000; return now },
		External: []collectors.Label{{Name: "instance", Value: "r1"}, {Name: "device", Value: "mine"}, {Name: "gone", Value: ""}},
		Start:    func(mono int64) (int64, bool) { return 1_600_000_000_000 + mono/1e6, true }}
	r.tick()
	for _, d := range []int64{100, 0, 5000} {
		r.row.Values[rx] += d
		r.tick()
	}
	return r, w, rx, &now
}

func decode2(t *testing.T, b []byte) map[string]writev2.TimeSeries {
	t.Helper()
	var req writev2.Request
	if err := req.Unmarshal(b); err != nil {
		t.Fatal(err)
	}
	out := map[string]writev2.TimeSeries{}
	for _, ts := range req.Timeseries {
		name, last := "", ""
		for i := 0; i < len(ts.LabelsRefs); i += 2 {
			n := req.Symbols[ts.LabelsRefs[i]]
			if n <= last {
				t.Errorf("label %s after %s", n, last)
			}
			last = n
			name += n + "=" + req.Symbols[ts.LabelsRefs[i+1]] + " "
		}
		out[name] = ts
		if req.Symbols[0] != "" || req.Symbols[ts.Metadata.HelpRef] == "" {
			t.Errorf("symbols %q", req.Symbols)
		}
	}
	return out
}

const ofEth = "device=eth0\uFFFD instance=r1 "

// TestWrite2: Prometheus' decoder finds the histogram whole, and the range since the
// last request that was taken.
func TestWrite2(t *testing.T) {
	r, w, rx, now := writing()
	body, samples, histograms := w.Encode(nil, true)
	if samples != 2 || histograms != 1 {
		t.Fatalf("%d samples, %d histograms", samples, histograms)
	}
	all := decode2(t, body)
	ts, ok := all["__name__=ticktier_network_receive_bytes_per_second "+ofEth]
	if !ok || len(ts.Histograms) != 1 || ts.Metadata.Type != writev2.Metadata_METRIC_TYPE_HISTOGRAM {
		t.Fatalf("%+v", all)
	}
	h := ts.Histograms[0]
	if h.GetCountInt() != 3 || h.Sum != 51_000 || h.Schema != Schema || h.GetZeroCountInt() != 1 || h.ZeroThreshold != ZeroThreshold ||
		h.Timestamp != *now || h.StartTimestamp != 1_600_000_001_000 {
		t.Errorf("%+v", h)
	}
	if err := h.ToIntHistogram().Validate(); err != nil {
		t.Error(err)
	}
	it, buckets := h.ToIntHistogram().PositiveBucketIterator(), 0
	for it.Next() {
		b := it.At()
		if b.Count == 1 {
			buckets++
			if !(b.Lower < 1000 && 1000 <= b.Upper || b.Lower < 50_000 && 50_000 <= b.Upper) {
				t.Errorf("a value in %v", b)
			}
		}
	}
	if buckets != 2 {
		t.Errorf("%d buckets have a value", buckets)
	}
	highest := func(body []byte) float64 {
		ts, ok := decode2(t, body)["__name__=ticktier_network_receive_bytes_per_second_max "+ofEth]
		if !ok || ts.Samples[0].Timestamp != *now {
			return math.NaN()
		}
		return ts.Samples[0].Value
	}
	if got := highest(body); got != 50_000 {
		t.Errorf("highest %v", got)
	}
	w.Done(false) // it was not taken: the next one covers it
	r.row.Values[rx] += 10
	r.tick()
	body, _, _ = w.Encode(nil, true)
	if got := highest(body); got != 50_000 {
		t.Errorf("after a failure: highest %v", got)
	}
	w.Done(true)
	r.row.Values[rx] += 20
	r.tick()
	body, _, _ = w.Encode(nil, true)
	if got := highest(body); got != 200 {
		t.Errorf("after success: highest %v", got)
	}
	*now -= 60_000
	if body, samples, histograms = w.Encode(nil, true); len(body) > 0 || samples+histograms > 0 {
		t.Errorf("with a clock that was stepped back: %d bytes", len(body))
	}
}

// TestWrite1: the classic series of 1.0.
func TestWrite1(t *testing.T) {
	_, w, _, now := writing()
	w.Select = func(s *collectors.Series) bool {
		return s.Name == "ticktier_network_receive_bytes_per_second" && len(s.Labels) == 1
	}
	body, samples, histograms := w.Encode(nil, false)
	var req prompb.WriteRequest
	if err := req.Unmarshal(body); err != nil {
		t.Fatal(err)
	}
	bounds := len(families()[receiveBytes].Bounds)
	if histograms != 0 || samples != bounds+1+2+2 || len(req.Timeseries) != samples {
		t.Fatalf("%d samples, %d series", samples, len(req.Timeseries))
	}
	got := map[string]float64{}
	for _, ts := range req.Timeseries {
		key := ""
		for _, l := range ts.Labels {
			key += l.Name + "=" + l.Value + " "
		}
		if len(ts.Samples) != 1 || ts.Samples[0].Timestamp != *now {
			t.Errorf("%v", ts)
		}
		got[key] = ts.Samples[0].Value
	}
	const name = "__name__=ticktier_network_receive_bytes_per_second"
	for key, want := range map[string]float64{
		name + "_bucket device=eth0\uFFFD instance=r1 le=0 ": 1, name + "_bucket device=eth0\uFFFD instance=r1 le=1000 ": 2,
		name + "_bucket device=eth0\uFFFD instance=r1 le=+Inf ": 3, name + "_count " + ofEth: 3, name + "_sum " + ofEth: 51_000,
		name + "_min " + ofEth: 0, name + "_max " + ofEth: 50_000,
	} {
		if v, ok := got[key]; !ok || v != want {
			t.Errorf("%s is %v, want %v", key, v, want)
		}
	}
	w.Select = func(*collectors.Series) bool { return false }
	if body, samples, histograms := w.Encode(nil, false); len(body) > 0 || samples+histograms > 0 {
		t.Error("what is not selected is sent")
	}
}

// TestWriteEnd: the end of a run ends every series that was sent.
func TestWriteEnd(t *testing.T) {
	const stale = 0x7ff0000000000002
	_, w, _, _ := writing()
	if body, _, _ := w.End(nil, true); len(body) > 0 {
		t.Error("there is something to end before anything was sent")
	}
	body, _, _ := w.Encode(nil, true)
	sent := decode2(t, body)
	w.Done(true)
	body, samples, histograms := w.End(nil, true)
	if samples != 2 || histograms != 1 {
		t.Errorf("%d samples, %d histograms", samples, histograms)
	}
	ended := decode2(t, body)
	for name, was := range sent {
		ts := ended[name]
		for i, h := range ts.Histograms {
			if math.Float64bits(h.Sum) != stale || h.Timestamp <= was.Histograms[i].Timestamp {
				t.Errorf("%s: %+v", name, h)
			}
		}
		for i, x := range ts.Samples {
			if math.Float64bits(x.Value) != stale || x.Timestamp <= was.Samples[i].Timestamp {
				t.Errorf("%s: %+v", name, x)
			}
		}
		if len(ts.Histograms) != len(was.Histograms) || len(ts.Samples) != len(was.Samples) {
			t.Errorf("%s: %+v, was %+v", name, ts, was)
		}
	}
	body, _, _ = w.End(nil, false)
	var req prompb.WriteRequest
	if err := req.Unmarshal(body); err != nil || len(req.Timeseries) == 0 {
		t.Fatal(len(req.Timeseries), err)
	}
	for _, ts := range req.Timeseries {
		if math.Float64bits(ts.Samples[0].Value) != stale {
			t.Errorf("1.0: %v", ts)
		}
	}
}
