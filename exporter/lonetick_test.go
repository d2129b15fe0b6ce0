package main

import (
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/burst"
	"github.com/ticktier/ticktier/exporter/expose"
	"github.com/ticktier/ticktier/exporter/follow"
	"github.com/ticktier/ticktier/exporter/ring"
)

// TestLoneTick: of an hour at 10 Hz a gauge is 0 but for one tick of 950, and another
// 950 but for one of 0. The ring of the default size still has both ticks at the end,
// and of 240 scrapes exactly one was told of each.
func TestLoneTick(t *testing.T) {
	r, err := ring.New(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	var schema collectors.Schema
	var row collectors.Row
	backlog := &collectors.Metric{Name: "node_softnet_backlog_len", Type: collectors.Gauge}
	for _, cpu := range []string{"0", "1"} {
		row.Grow(schema.Add(0, backlog, collectors.Label{Name: "cpu", Value: cpu}) + 1)
	}
	bursts := burst.New(&schema)
	h, err := expose.Handler(expose.Config{Latest: r, Schema: &schema, Bursts: bursts, Session: "s",
		Reader: func() expose.Reader { return r.Reader() }, Wall: func(mono int64) int64 { return mono / 1e6 }})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) []byte {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		return rec.Body.Bytes()
	}
	const hour, high, low = 36_000, 12_345, 23_456
	told := map[string]int{}
	for seq := range uint64(hour) {
		row.Set(0, 0)
		row.Set(1, 950)
		switch seq {
		case high:
			row.Set(0, 950)
		case low:
			row.Set(1, 0)
		}
		sinks{r, bursts}.Append(seq, int64(seq)*100e6, 1, row.Values, row.Present)
		if seq%150 == 149 {
			text := string(get("/metrics"))
			for _, line := range []string{`ticktier_softnet_backlog_packets_max{cpu="0"} 950`, `ticktier_softnet_backlog_packets_min{cpu="1"} 0`} {
				if strings.Contains(text, line+"\n") {
					told[line]++
				}
			}
		}
	}
	if len(told) != 2 || told[`ticktier_softnet_backlog_packets_max{cpu="0"} 950`] != 1 || told[`ticktier_softnet_backlog_packets_min{cpu="1"} 0`] != 1 {
		t.Errorf("scrapes were told %v, want each once", told)
	}
	stream := follow.NewReader(bytes.NewReader(get("/api/v1/samples?since=0&session=s&max=100000")))
	ticks := uint64(0)
	for {
		o, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			t.Fatal(err)
		case o.Gap != nil:
			t.Fatalf("%+v", o.Gap)
		case o.Tick == nil:
			continue
		}
		want0, want1 := 0.0, 950.0
		if ticks == high {
			want0 = 950
		}
		if ticks == low {
			want1 = 0
		}
		if o.Tick.Seq != ticks || o.Tick.Values[0] != want0 || o.Tick.Values[1] != want1 {
			t.Fatalf("tick %d: %+v", ticks, o.Tick)
		}
		ticks++
	}
	if ticks != hour {
		t.Errorf("%d ticks are held", ticks)
	}
}
