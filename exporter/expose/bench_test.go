package expose

import (
	"fmt"
	"testing"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// A scrape of a machine that stands still allocates next to nothing.
func TestRenderAllocations(t *testing.T) {
	m := manySeries(1500)
	x := &metrics{latest: m, schema: &m.schema}
	var s scratch
	for _, f := range []format{asText, asOpen, asProto} {
		x.render(&s, f, "", true)
		if n := testing.AllocsPerRun(10, func() { x.render(&s, f, "", true) }); n != 0 {
			t.Errorf("format %d: %v allocations", f, n)
		}
	}
}

func manySeries(n int) *machine {
	m := &machine{}
	var metric *collectors.Metric
	for i := range n {
		if i%20 == 0 {
			metric = &collectors.Metric{Name: fmt.Sprintf("node_metric_%d_total", i/20), Help: "A metric of many series.", Type: collectors.Counter}
		}
		m.add(metric, int64(i)*1234567, label("cpu", fmt.Sprint(i%20)), label("mode", "user"))
	}
	return m
}

func BenchmarkScrape(b *testing.B) {
	m := manySeries(1500)
	h := m.handler(b, false)
	for _, enc := range []string{"identity", "gzip"} {
		b.Run(enc, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = len(body(b, get(b, h, "/metrics", "Accept-Encoding", enc)))
			}
			b.ReportMetric(float64(n), "bytes")
		})
	}
}

func BenchmarkSamples(b *testing.B) {
	m := manySeries(1500)
	o := objects{schema: &m.schema, wall: func(int64) int64 { return 1 }}
	var t frame.Tick
	m.Latest(&t)
	t.Read = 1
	o.grow(&t)
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst = o.appendTick(dst[:0], &t)
	}
	b.ReportMetric(float64(len(dst)), "bytes")
}
