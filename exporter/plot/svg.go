package plot

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"time"
)

// The picture's measures, in its own units.
const (
	width, left, right = 1200, 80, 170
	height, gap, head  = 170, 46, 60
	plotWidth          = width - left - right
	maxLines           = 8 // of a panel; the legend has room for no more
)

// colours are told apart by people who see red and green alike, too (Okabe and Ito).
var colours = [maxLines]string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#000000"}

// modes is the order in which modes of a CPU lie upon each other, from below.
var modes = []string{"softirq", "irq", "system", "user", "nice", "steal", "iowait"}

// Draw reads a record and writes the picture.
func Draw(dst io.Writer, src io.Reader) error {
	rec, err := read(src)
	if err != nil {
		return err
	}
	b := new(bytes.Buffer)
	total := head + panelCount*(height+gap)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, total)
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, total)
	fmt.Fprintf(b, `<text x="%d" y="24" font-size="16">%s to %s</text>`+"\n", left,
		when(rec.from).Format("2006-01-02 15:04:05"), when(rec.to).Format("15:04:05 UTC"))
	fmt.Fprintf(b, `<text x="%d" y="42" fill="#555">%d ticks, %d missing; session %s</text>`+"\n", left, rec.ticks, rec.missed, html.EscapeString(rec.session))
	for i, p := range []struct {
		title string
		unit  string
	}{{"CPU by mode", "%"}, {"Packets per second", ""}, {"Drops per second", ""}, {"Ticks late", "ms"}} {
		c := canvas{b: b, rec: rec, top: head + i*(height+gap)}
		if i == cpu {
			c.stack(p.title)
			continue
		}
		c.curves(p.title, p.unit, rec.lines(i))
	}
	b.WriteString("</svg>\n")
	_, err = b.WriteTo(dst)
	return err
}

func when(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// canvas is one panel.
type canvas struct {
	b   *bytes.Buffer
	rec *record
	top int
	max float64
}

// frame draws what is around a panel; max is the value at its upper edge.
func (c *canvas) frame(title, unit string, maximum float64) {
	c.max = maximum
	fmt.Fprintf(c.b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", left, c.top+10, title)
	for i := range 5 {
		v := maximum * float64(i) / 4
		y := c.y(v)
		fmt.Fprintf(c.b, `<path d="M%d %.1fh%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end" fill="#555">%s</text>`+"\n",
			left, y, plotWidth, left-6, y+4, number(v)+unit)
	}
	for _, g := range c.rec.gaps {
		x0, x1 := c.x(max(g.From, c.rec.from)), c.x(min(g.To, c.rec.to))
		if x1 >= x0 {
			fmt.Fprintf(c.b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#f8d7da"/>`+"\n", x0, c.top+20, max(1, x1-x0), height-20)
		}
	}
	for i := range 7 {
		t := c.rec.from + (c.rec.to-c.rec.from)*int64(i)/6
		fmt.Fprintf(c.b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%s</text>`+"\n", c.x(t), c.top+height+15, when(t).Format("15:04:05"))
	}
}

func (c *canvas) x(t int64) float64 {
	return left + plotWidth*float64(t-c.rec.from)/float64(max(1, c.rec.to-c.rec.from))
}

func (c *canvas) y(v float64) float64 {
	return float64(c.top+height) - (height-20)*min(v/c.max, 1)
}

func (c *canvas) legend(i int, name, colour string) {
	y := c.top + 30 + 17*i
	fmt.Fprintf(c.b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
		width-right+14, y-9, colour, width-right+30, y, html.EscapeString(name))
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
		fmt.Fprintf(c.b, `<text x="%d" y="%d" fill="#555">none</text>`+"\n", width-right+14, c.top+30)
	}
	for i, l := range lines[:min(len(lines), maxLines)] {
		c.legend(i, l.name, colours[i])
		fmt.Fprintf(c.b, `<path fill="none" stroke="%s" d="`, colours[i])
		verb := byte('M')
		for _, col := range columns(l, c.x, 1) {
			fmt.Fprintf(c.b, "%c%.1f %.1f", verb, col.x, c.y(col.min))
			if col.max > col.min {
				fmt.Fprintf(c.b, "V%.1f", c.y(col.max))
			}
			verb = 'L'
		}
		c.b.WriteString(`"/>` + "\n")
	}
	if n := len(lines) - maxLines; n > 0 {
		fmt.Fprintf(c.b, `<text x="%d" y="%d" fill="#555">and %d more</text>`+"\n", width-right+14, c.top+30+17*maxLines, n)
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
// a line for the busiest tick in it.
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
		cols := columns(l, c.x, wide)
		colour := colours[shown%maxLines]
		c.legend(shown, mode, colour)
		shown++
		fmt.Fprintf(c.b, `<path fill="%s" d="`, colour)
		verb := byte('M')
		for _, col := range cols {
			fmt.Fprintf(c.b, "%c%.1f %.1f", verb, col.x, c.y(below[col.x]))
			verb = 'L'
		}
		for _, col := range slices.Backward(cols) {
			below[col.x] += col.sum / col.n
			fmt.Fprintf(c.b, "L%.1f %.1f", col.x, c.y(below[col.x]))
		}
		c.b.WriteString(`Z"/>` + "\n")
	}
	idle := c.rec.panels[cpu]["idle"]
	if idle == nil {
		return
	}
	fmt.Fprint(c.b, `<path fill="none" stroke="#000" d="`)
	verb := byte('M')
	for _, col := range columns(idle, c.x, wide) {
		fmt.Fprintf(c.b, "%c%.1f %.1f", verb, col.x, c.y(100-col.min))
		verb = 'L'
	}
	c.b.WriteString(`"/>` + "\n")
	c.legend(shown, "busiest tick", "#000")
}

// ceiling is the next of 1, 2, 5, 10, 20, … at or above v.
func ceiling(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if v <= f*p {
			return f * p
		}
	}
	return 10 * p
}

// number is short for an axis.
func number(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}
