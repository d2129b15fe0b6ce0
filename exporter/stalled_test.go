package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/expose"
	"github.com/ticktier/ticktier/exporter/follow"
	"github.com/ticktier/ticktier/exporter/ring"
)

// TestStalledReader: a client that asks for the stream, over a real socket, and then
// does not read holds up no tick. When it reads again, gaps tell of each tick that it
// did not get, and of no other.
func TestStalledReader(t *testing.T) {
	r, err := ring.New(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	var schema collectors.Schema
	var row collectors.Row
	for i := range 100 {
		row.Set(schemaSlot(&schema, &row, i), 0)
	}
	h, err := expose.Handler(expose.Config{Latest: r, Schema: &schema, Session: "s",
		Reader: func() expose.Reader { return r.Reader() }, Wall: func(mono int64) int64 { return mono / 1e6 }})
	if err != nil {
		t.Fatal(err)
	}
	seq := uint64(0)
	take := func(n int) {
		for range n {
			for i := range row.Values {
				row.Values[i] += 1e9 + int64(i)
			}
			r.Append(seq, int64(seq)*100e6, 1, row.Values, row.Present)
			seq++
		}
	}
	take(1)
	srv := httptest.NewServer(h)
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /api/v1/stream HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	stream := follow.NewReader(resp.Body)
	next := func() *follow.Object {
		o, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for next().Tick == nil {
	}
	// A hundred megabytes, where sockets buffer a few: the writer has to stall. Were a
	// tick to wait for it, this would not come to an end.
	take(60_000)

	covered, slow := uint64(1), 0
	for covered < seq {
		switch o := next(); {
		case o.Gap != nil:
			if o.Gap.Ticks == 0 || !strings.Contains("slow evicted", o.Gap.Reason) {
				t.Fatalf("%+v", o.Gap)
			}
			if o.Gap.Reason == "slow" {
				slow++
			}
			covered += o.Gap.Ticks
		case o.Tick != nil:
			if o.Tick.Seq != covered {
				t.Fatalf("tick %d, want %d", o.Tick.Seq, covered)
			}
			covered++
		}
	}
	if slow == 0 {
		t.Error("it was never told that it is slow")
	}
}

// schemaSlot adds the i-th series of a test.
func schemaSlot(schema *collectors.Schema, row *collectors.Row, i int) int {
	slot := schema.Add(0, &collectors.Metric{Name: "x_total", Type: collectors.Counter}, collectors.Label{Name: "i", Value: fmt.Sprint(i)})
	row.Grow(slot + 1)
	return slot
}
