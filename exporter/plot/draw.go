package plot

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Format is a form of picture.
type Format int

// The formats.
const (
	SVG Format = iota
	PNG
)

// FormatOf is the format of a file by its name: PNG where it ends so, SVG otherwise.
func FormatOf(name string) Format {
	if strings.HasSuffix(strings.ToLower(name), ".png") {
		return PNG
	}
	return SVG
}

// The picture's measures, in its own units.
const (
	width, left, right = 1200, 80, 190
	height, gap, head  = 170, 50, 60
	plotWidth          = width - left - right
	foot               = 24
	maxLines           = 8 // of a panel; the legend has room for no more
)

const (
	ink, grey, grid, missing, paper = "#000000", "#555555", "#dddddd", "#f8d7da", "#ffffff"
)

// colours are told apart by people who see red and green alike, too (Okabe and Ito).
var colours = [maxLines]string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#000000"}

// modes is the order in which modes of a CPU lie upon each other, from below.
var modes = []string{"softirq", "irq", "system", "user", "nice", "steal", "iowait"}

// Draw reads a record and writes the picture.
func Draw(dst io.Writer, src io.Reader, format Format) error {
	rec, err := read(src)
	if err != nil {
		return err
	}
	const total = head + panelCount*(height+gap) + foot
	var s surface = newSVG(width, total)
	if format == PNG {
		s = newRaster(width, total)
	}
	s.rect(0, 0, width, total, paper)
	s.text(left, 24, when(rec.from).Format("2006-01-02 15:04:05")+" to "+when(rec.to).Format("15:04:05")+" UTC", style{large: true})
	about := fmt.Sprintf("%d ticks, %d missing; session %s", rec.ticks, rec.missed, rec.session)
	if rec.cut {
		about += "; the last line of the record is cut off and left out"
	}
	s.text(left, 42, about, style{colour: grey})
	for i, p := range []struct {
		title string
		unit  string
	}{{"CPU by mode, share of all CPUs", " %"}, {"Packets per second", ""}, {"Drops per second", ""}, {"Ticks late by, in whole ms: a tick that counts as late may be late by less", " ms"}} {
		c := canvas{s: s, rec: rec, top: head + i*(height+gap)}
		if i == cpu {
			c.stack(p.title)
			continue
		}
		c.curves(p.title, p.unit, rec.lines(i))
	}
	note := "CPU time by /proc/stat, which the kernel counts in its own ticks: bursts that are shorter are undercounted."
	s.text(left, total-10, note, style{colour: grey})
	return s.finish(dst)
}

func when(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// canvas is one panel.
type canvas struct {
	s   surface
	rec *record
	top int
	max float64
}

// frame draws what is around a panel; max is the value at its upper edge.
func (c *canvas) frame(title, unit string, maximum float64) {
	c.max = maximum
	bottom := float64(c.top + height)
	c.s.text(left, float64(c.top+10), title, style{bold: true})
	for _, g := range c.rec.gaps {
		x0, x1 := c.x(max(g.From, c.rec.from)), c.x(min(g.To, c.rec.to))
		if x1 >= x0 {
			c.s.rect(x0, float64(c.top+20), max(1, x1-x0), height-20, missing)
		}
	}
	for i := range 5 {
		v := maximum * float64(i) / 4
		c.s.rect(left, c.y(v), plotWidth, 0.5, grid)
		c.s.text(left-6, c.y(v)+4, number(v)+unit, style{anchor: end, colour: grey})
	}
	step, format := timeStep(c.rec.to - c.rec.from)
	for t := (c.rec.from + step - 1) / step * step; t <= c.rec.to; t += step {
		c.s.rect(c.x(t), float64(c.top+20), 0.5, height-20, grid)
		c.s.rect(c.x(t), bottom, 0.5, 4, grey)
		c.s.text(c.x(t), bottom+17, when(t).Format(format), style{anchor: middle, colour: grey})
	}
}

// timeStep is the time in ms between two marks of the axis, and how they are written:
// round times, eight at most.
func timeStep(span int64) (step int64, format string) {
	steps := []int64{100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000,
		1_800_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000, 86_400_000}
	step = steps[len(steps)-1]
	for _, s := range steps {
		if span/s <= 8 {
			step = s
			break
		}
	}
	switch {
	case step < 1000:
		return step, "15:04:05.0"
	case step < 60_000:
		return step, "15:04:05"
	}
	return max(step, span/8), "15:04"
}

func (c *canvas) x(t int64) float64 {
	return left + plotWidth*float64(t-c.rec.from)/float64(max(1, c.rec.to-c.rec.from))
}

func (c *canvas) y(v float64) float64 {
	return float64(c.top+height) - (height-20)*min(v/c.max, 1)
}

func (c *canvas) legend(i int, name, colour string) {
	y := float64(c.top + 30 + 17*i)
	c.s.rect(width-right+14, y-9, 10, 10, colour)
	c.s.text(width-right+30, y, name, style{})
}

// curves draws lines: from a column's lowest to its highest tick, and on to the next
// column.
func (c *canvas) curves(title, unit string, lines []*line) {
	top := 1.0
	if len(lines) > 0 {
		top = ceiling(lines[0].max)
	}
	c.frame(title, unit, top)
	if len(lines) == 0 {
		c.s.text(width-right+14, float64(c.top+30), "none", style{colour: grey})
	}
	for i, l := range lines[:min(len(lines), maxLines)] {
		c.legend(i, l.name, colours[i])
		var points []at
		for _, col := range columns(l, c.x, 1) {
			points = append(points, at{col.x, c.y(col.min)})
			if col.max > col.min {
				points = append(points, at{col.x, c.y(col.max)})
			}
		}
		c.s.line(points, colours[i])
	}
	if n := len(lines) - maxLines; n > 0 {
		c.s.text(width-right+14, float64(c.top+30+17*maxLines), fmt.Sprintf("and %d more", n), style{colour: grey})
	}
}

// column is the ticks that share one column of the picture.
type column struct{ x, min, max, sum, n float64 }

func columns(l *line, x func(int64) float64, wide float64) []column {
	var out []column
	for i, t := range l.t {
		at := math.Floor(x(t)/wide) * wide
		if n := len(out); n > 0 && out[n-1].x == at {
			c := &out[n-1]
			c.min, c.max, c.sum, c.n = min(c.min, l.v[i]), max(c.max, l.v[i]), c.sum+l.v[i], c.n+1
			continue
		}
		out = append(out, column{at, l.v[i], l.v[i], l.v[i], 1})
	}
	return out
}

// coarse is the least time that a column of CPU shares covers: the kernel counts in
// hundredths of a second, so a single tick may well be all or nothing.
const coarse = 200 * time.Millisecond

// stack draws the modes of all CPUs upon each other: the mean of a column's ticks, and
// a line for the busiest tick in it; where the kernel tells exactly how long tasks ran,
// one for that, too.
func (c *canvas) stack(title string) {
	c.frame(title, " %", 100)
	wide := max(3, math.Ceil(c.x(c.rec.from+coarse.Milliseconds())-c.x(c.rec.from)))
	below := map[float64]float64{}
	shown := 0
	for _, mode := range modes {
		l := c.rec.panels[cpu][mode]
		if l == nil || l.max == 0 {
			continue
		}
		colour := colours[shown%maxLines]
		c.legend(shown, mode, colour)
		shown++
		var upper, lower []at
		for _, col := range columns(l, c.x, wide) {
			x := max(col.x, left)
			lower = append(lower, at{x, c.y(below[col.x])})
			below[col.x] += col.sum / col.n
			upper = append(upper, at{x, c.y(below[col.x])})
		}
		c.s.area(upper, lower, colour)
	}
	for _, l := range []struct {
		mode, name, colour string
		of                 func(column) float64
	}{
		{"idle", "busiest tick", ink, func(col column) float64 { return 100 - col.min }},
		{tasks, "tasks, exact: busiest tick", "#d55e00", func(col column) float64 { return col.max }},
	} {
		values := c.rec.panels[cpu][l.mode]
		if values == nil {
			continue
		}
		var points []at
		for _, col := range columns(values, c.x, wide) {
			points = append(points, at{max(col.x, left), c.y(l.of(col))})
		}
		c.s.line(points, l.colour)
		c.legend(min(shown, maxLines), l.name, l.colour)
		shown++
	}
}

// ceiling is the next of 1, 2, 4, 8, 10, 20, … at or above v: a quarter of each is short.
func ceiling(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 4, 8} {
		if v <= f*p {
			return f * p
		}
	}
	return 10 * p
}

// number is short for an axis.
func number(v float64) string {
	i := 0
	for v >= 1000 && i < 3 {
		v, i = v/1000, i+1
	}
	return strings.TrimSpace(fmt.Sprintf("%.3g%s", v, []string{"", "k", "M", "G"}[i]))
}
