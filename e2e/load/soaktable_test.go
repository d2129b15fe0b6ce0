package main

import (
	"strings"
	"testing"
	"time"
)

// TestSoakTable: what grew is told, and the chart has the time on its axis.
func TestSoakTable(t *testing.T) {
	s := soaked{name: "exporter"}
	for i := range 61 {
		s.points = append(s.points, point{at: time.Duration(i) * time.Minute, descriptors: 20 + i/40, threads: 9, gorout: 30,
			usage: usage{rss: int64(8+min(i, 10)/2) << 20, peak: 14 << 20, cpu: time.Duration(i) * time.Second}})
	}
	var out strings.Builder
	s.print(&out)
	for _, want := range []string{
		"| 1h0m0s | 13.0 | 14.0 | 21 | 9 | 30 | 1.67 |",
		"RSS MiB     median of the second quarter 13.0, of the last 13.0: +0.0",
		"descriptors median of the second quarter 20.0, of the last 21.0: +1.0",
		"    13.0 │", "1h0m0s\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if got := strings.Count(out.String(), "█"); got < 61*4 {
		t.Errorf("%d full blocks in\n%s", got, &out)
	}
}
