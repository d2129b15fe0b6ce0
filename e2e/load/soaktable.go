package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
)

// tellSoak prints what the programs say of themselves at the end.
func tellSoak(ctx context.Context, out io.Writer, exporter, adapter *client.Client) error {
	for _, m := range []struct {
		c    *client.Client
		name string
	}{
		{exporter, "ticktier_exporter_ticks_total"}, {exporter, "ticktier_exporter_ticks_missed_total"},
		{exporter, "ticktier_exporter_ring_ticks"}, {exporter, "ticktier_exporter_ring_ticks_evicted_total"},
		{exporter, "ticktier_exporter_ring_ticks_evicted_undelivered_total"},
	} {
		v, err := m.c.Metric(ctx, m.name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "soak        %s %.0f\n", m.name, v)
	}
	_, err := adapter.Get(ctx, "/-/ready")
	return err
}

// print prints a program's table, a chart of its resident memory, and how much of
// each figure grew from the second quarter of the time to the last. What a program
// takes in the first quarter it takes once: caches fill, the ring comes to its bound.
func (s *soaked) print(out io.Writer) {
	fmt.Fprintf(out, "\n| %s, after | RSS MiB | highest | descriptors | threads | goroutines | CPU %% of a core |\n| --- | --- | --- | --- | --- | --- | --- |\n", s.name)
	last := s.points[0]
	for i := 0; i < len(s.points); i += max(1, len(s.points)/12) {
		p := s.points[i]
		cpu := 0.0
		if p.at > last.at {
			cpu = 100 * (p.usage.cpu - last.usage.cpu).Seconds() / (p.at - last.at).Seconds()
		}
		fmt.Fprintf(out, "| %s | %.1f | %.1f | %d | %d | %d | %.2f |\n", p.at.Round(time.Second), mib(p.usage.rss), mib(p.usage.peak),
			p.descriptors, p.threads, p.gorout, cpu)
		last = p
	}
	fmt.Fprintf(out, "\n%s\n", s.chart(8))
	for _, f := range []struct {
		name string
		of   func(point) float64
	}{
		{"RSS MiB", func(p point) float64 { return mib(p.usage.rss) }},
		{"descriptors", func(p point) float64 { return float64(p.descriptors) }},
		{"threads", func(p point) float64 { return float64(p.threads) }},
		{"goroutines", func(p point) float64 { return float64(p.gorout) }},
	} {
		before, after := s.quarter(1, f.of), s.quarter(3, f.of)
		fmt.Fprintf(out, "soak        %-8s %-11s median of the second quarter %.1f, of the last %.1f: %+.1f\n", s.name, f.name, before, after, after-before)
	}
}

// quarter is the median of one of the four parts of the time.
func (s *soaked) quarter(i int, of func(point) float64) float64 {
	n := len(s.points)
	var v []float64
	for _, p := range s.points[n*i/4 : n*(i+1)/4] {
		v = append(v, of(p))
	}
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// chart draws resident memory over time, from nothing to its highest, in lines of
// text.
func (s *soaked) chart(lines int) string {
	const levels = " ▁▂▃▄▅▆▇█"
	marks := []rune(levels)
	most := int64(1)
	for _, p := range s.points {
		most = max(most, p.usage.rss)
	}
	var b strings.Builder
	for row := lines - 1; row >= 0; row-- {
		fmt.Fprintf(&b, "%8.1f │", mib(most)*float64(row+1)/float64(lines))
		for _, p := range s.points {
			eighths := int(p.usage.rss*int64(8*lines)/most) - 8*row
			b.WriteRune(marks[min(max(eighths, 0), 8)])
		}
		b.WriteByte('\n')
	}
	end := s.points[len(s.points)-1].at.Round(time.Second).String()
	fmt.Fprintf(&b, "MiB RSS  └%s\n          0%*s\n", strings.Repeat("─", len(s.points)), len(s.points)-1, end)
	return b.String()
}
