package expose

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/ticktier/ticktier/collectors"
)

// startsOf are the start times that Prometheus' parser finds, by series.
func startsOf(t *testing.T, b []byte, contentType string) map[string]int64 {
	t.Helper()
	p, err := textparse.New(b, contentType, labels.NewSymbolTable(),
		textparse.ParserOptions{KeepClassicOnClassicAndNativeHistograms: true, OpenMetricsSkipSTSeries: true})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for {
		e, err := p.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, b)
		}
		if e != textparse.EntrySeries && e != textparse.EntryHistogram {
			continue
		}
		var ls labels.Labels
		p.Labels(&ls)
		if start := p.StartTimestamp(); start != 0 {
			out[ls.String()] = start
		}
	}
}

// TestStarts: both formats that can say when a counter began say so, where that is
// known, and once the clock is right; text says it to those only who ask.
func TestStarts(t *testing.T) {
	m := netMachine()
	rec := bursty(t, m, 100, 0, 2e9)
	known := true
	h, err := Handler(Config{Latest: m, Schema: &m.schema, Bursts: rec,
		Start: func(s *collectors.Series) (int64, bool) {
			return -5e9, s.Name == "node_cpu_seconds_total" || s.Name == "node_time_seconds"
		},
		StartWall: func(mono int64) (int64, bool) {
			return 1_700_000_000_250 + mono/1e6, known
		}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{
		`{__name__="node_cpu_seconds_total", cpu="0", mode="user"}`: 1_699_999_995_250,
		`{__name__="node_cpu_seconds_total", cpu="1", mode="idle"}`: 1_699_999_995_250,
	}
	for _, c := range []struct{ path, accept string }{
		{"/metrics?created=1", "application/openmetrics-text"},
		{"/metrics", typeProto},
		{"/metrics", "application/openmetrics-text"},
	} {
		resp := get(t, h, c.path, "Accept", c.accept)
		b := body(t, resp)
		got := startsOf(t, []byte(b), resp.Header.Get("Content-Type"))
		if c.path == "/metrics" && c.accept != typeProto {
			if len(got) > 0 || strings.Contains(b, "_created") {
				t.Errorf("%v, though nobody asked", got)
			}
			continue
		}
		bursts := 0
		for series, at := range got {
			if strings.Contains(series, "ticktier_network_receive_bytes_per_second") {
				if bursts++; at != 1_700_000_001_250 {
					t.Errorf("%s began at %d", series, at)
				}
			} else if want[series] != at {
				t.Errorf("%s: %s began at %d, want %d", c.accept, series, at, want[series])
			}
		}
		if bursts == 0 || len(got)-bursts != len(want) {
			t.Errorf("%s: %v", c.accept, got)
		}
	}
	known = false
	resp := get(t, h, "/metrics?created=1", "Accept", "application/openmetrics-text")
	if b := body(t, resp); strings.Contains(b, "_created") {
		t.Error("a clock that is not set is told of")
	}
}
