package top

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ticktier/ticktier/exporter/follow"
)

// Match selects what is shown.
func Match() []string {
	return []string{"node_cpu_seconds_total", "node_network_receive_bytes_total", "node_network_transmit_bytes_total",
		"node_network_receive_packets_total", "node_network_transmit_packets_total"}
}

const (
	// clear moves to the corner and clears what is behind.
	clear = "\x1b[H\x1b[J"
	// maxMarks is how many marks a line has: one stands for several ticks where there
	// are more, and shows the highest.
	maxMarks = 50
)

// Run shows a screen at the end of each second until src ends. Where terminal is set
// each takes the place of the one before.
func Run(out io.Writer, src io.Reader, terminal bool) error {
	r := follow.NewReader(src)
	s := newSecond()
	for {
		o, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if o.Gap != nil {
			s.lost += o.Gap.Ticks
		}
		if o.Tick == nil {
			continue
		}
		if now := o.Tick.Time / 1000; now != s.at {
			if s.ticks > 0 {
				text := s.render()
				if terminal {
					text = clear + text
				}
				if _, err := io.WriteString(out, text); err != nil {
					return err
				}
			}
			s.begin(now)
		}
		s.add(r, o.Tick)
	}
}

// second gathers the ticks of one.
type second struct {
	at    int64
	ticks int
	lost  uint64
	rates follow.Rates
	rows  map[string]*row
}

// row is one line of the screen.
type row struct {
	kind   int // by which rows are sorted
	name   string
	unit   func(float64) string
	full   float64 // what a full mark stands for; 0 is the highest in sight
	values []float64
}

func newSecond() *second { return &second{rows: map[string]*row{}} }

func (s *second) begin(at int64) {
	s.at, s.ticks, s.lost = at, 0, 0
	for k, r := range s.rows {
		if len(r.values) == 0 { // gone
			delete(s.rows, k)
		}
		r.values = r.values[:0]
	}
}

// add takes one tick.
func (s *second) add(r *follow.Reader, t *follow.Tick) {
	s.ticks++
	idle, all := map[string]float64{}, map[string]float64{}
	for id := range t.Values {
		series, ok := r.Series[id]
		if !ok {
			continue
		}
		v, ok := s.rates.Of(id, t)
		if !ok {
			continue
		}
		switch series.Name {
		case "node_cpu_seconds_total":
			cpu := series.Labels["cpu"]
			all[cpu] += v
			if mode := series.Labels["mode"]; mode == "idle" || mode == "iowait" {
				idle[cpu] += v
			}
		default:
			s.network(series, v)
		}
	}
	for cpu, v := range all {
		if v > 0 {
			s.row(0, "CPU "+cpu, percent, 100).add(100 * (v - idle[cpu]) / v)
		}
	}
}

func (s *second) network(series follow.Series, v float64) {
	what, ok := strings.CutPrefix(series.Name, "node_network_")
	if !ok {
		return
	}
	what = strings.NewReplacer("receive", "in", "transmit", "out", "_total", "", "_", " ").Replace(what)
	unit, kind := bits, 1
	if strings.HasSuffix(what, "packets") {
		unit, kind = count, 2
	}
	s.row(kind, series.Labels["device"]+" "+strings.TrimSuffix(what, " bytes"), unit, 0).add(v)
}

func (s *second) row(kind int, name string, unit func(float64) string, full float64) *row {
	r := s.rows[name]
	if r == nil {
		r = &row{kind: kind, name: name, unit: unit, full: full}
		s.rows[name] = r
	}
	return r
}

func (r *row) add(v float64) { r.values = append(r.values, v) }

// render is the screen of a second that is over. Interfaces that stood still are left
// out.
func (s *second) render() string {
	var rows []*row
	for _, r := range s.rows {
		if len(r.values) > 0 && (r.kind == 0 || slices.Max(r.values) > 0) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int {
		if a.kind != b.kind {
			return a.kind - b.kind
		}
		if len(a.name) != len(b.name) && a.kind == 0 {
			return len(a.name) - len(b.name) // CPU 9 before CPU 10
		}
		return strings.Compare(a.name, b.name)
	})
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %d ticks, %d missing\n\n", time.Unix(s.at, 0).Format(time.DateTime), s.ticks, s.lost)
	fmt.Fprintf(&b, "%-22s %10s %10s %10s\n", "", "lowest", "mean", "highest")
	for _, r := range rows {
		sum := 0.0
		for _, v := range r.values {
			sum += v
		}
		fmt.Fprintf(&b, "%-22.22s %10s %10s %10s  %s\n", r.name, r.unit(slices.Min(r.values)),
			r.unit(sum/float64(len(r.values))), r.unit(slices.Max(r.values)), r.marks())
	}
	return b.String()
}

// marks draws the ticks.
func (r *row) marks() string {
	const levels = "▁▂▃▄▅▆▇█"
	full := r.full
	if full == 0 {
		full = slices.Max(r.values)
	}
	n := min(len(r.values), maxMarks)
	out := make([]rune, 0, n)
	for i := range n {
		v := slices.Max(r.values[i*len(r.values)/n : (i+1)*len(r.values)/n])
		level := 0
		if full > 0 {
			level = min(max(int(v/full*8), 0), 7)
		}
		out = append(out, []rune(levels)[level])
	}
	return string(out)
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", v) }
func bits(v float64) string    { return scaled(8*v, "bit/s") }
func count(v float64) string   { return scaled(v, "/s") }

// scaled is a number with three digits and a prefix.
func scaled(v float64, unit string) string {
	for _, p := range []string{"", "k", "M"} {
		if v < 999.5 {
			return fmt.Sprintf("%.3g %s%s", v, p, unit)
		}
		v /= 1000
	}
	return fmt.Sprintf("%.3g G%s", v, unit)
}
