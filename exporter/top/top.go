package top

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ticktier/ticktier/exporter/follow"
)

// Match selects what is shown.
func Match() []string {
	return []string{"node_cpu_seconds_total", "node_schedstat_running_seconds_total",
		"node_network_receive_bytes_total", "node_network_transmit_bytes_total",
		"node_network_receive_packets_total", "node_network_transmit_packets_total"}
}

// Run shows a screen at the end of each second until src ends. On a terminal each
// takes the place of the one before, and what was there before is back at the end.
func Run(out io.Writer, src io.Reader, screen Screen) error {
	if screen.Terminal {
		if _, err := io.WriteString(out, enter); err != nil {
			return err
		}
		defer io.WriteString(out, leave) //nolint:errcheck // there is nobody to tell
	}
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
				if _, err := io.WriteString(out, screen.paint(s)); err != nil {
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
	of     string
	what   string
	unit   unit
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
		case "node_schedstat_running_seconds_total":
			s.row(cpuTasks, "CPU "+series.Labels["cpu"], "tasks", percent, 100).add(100 * v)
		default:
			s.network(series, v)
		}
	}
	for cpu, v := range all {
		if v > 0 {
			s.row(cpuShare, "CPU "+cpu, "", percent, 100).add(100 * (v - idle[cpu]) / v)
		}
	}
}

// The kinds of rows, in their order on the screen.
const (
	cpuShare = iota
	cpuTasks
	bytesRow
	packetsRow
)

func (s *second) network(series follow.Series, v float64) {
	what, ok := strings.CutPrefix(series.Name, "node_network_")
	if !ok {
		return
	}
	way := "in"
	if strings.HasPrefix(what, "transmit") {
		way = "out"
	}
	if strings.HasSuffix(what, "_packets_total") {
		s.row(packetsRow, series.Labels["device"], way, packets, 0).add(v)
		return
	}
	s.row(bytesRow, series.Labels["device"], way, bits, 0).add(8 * v)
}

func (s *second) row(kind int, of, what string, u unit, full float64) *row {
	key := fmt.Sprint(kind, " ", of, " ", what)
	r := s.rows[key]
	if r == nil {
		r = &row{kind: kind, of: of, what: what, unit: u, full: full}
		s.rows[key] = r
	}
	return r
}

func (r *row) add(v float64) { r.values = append(r.values, v) }

// sorted are the rows to show. Interfaces that stood still are left out.
func (s *second) sorted() []*row {
	var rows []*row
	for _, r := range s.rows {
		if len(r.values) > 0 && (r.kind <= cpuTasks || slices.Max(r.values) > 0) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int {
		if a.kind != b.kind {
			return a.kind - b.kind
		}
		if len(a.of) != len(b.of) && a.kind <= cpuTasks {
			return len(a.of) - len(b.of) // CPU 9 before CPU 10
		}
		return cmp.Or(strings.Compare(a.of, b.of), strings.Compare(a.what, b.what))
	})
	return rows
}

// marks draws the ticks with at most n marks: one stands for several ticks where there
// are more, and shows the highest.
func (r *row) marks(n int) string {
	full := r.full
	if full == 0 {
		full = slices.Max(r.values)
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	n = min(len(r.values), n)
	out := make([]rune, 0, max(n, 0))
	for i := range n {
		v := slices.Max(r.values[i*len(r.values)/n : (i+1)*len(r.values)/n])
		level := 0
		if full > 0 {
			level = min(max(int(v/full*8), 0), 7)
		}
		out = append(out, levels[level])
	}
	return string(out)
}

// unit is what values are in, in full and short.
type unit struct{ long, short string }

var (
	percent = unit{"%", "%"}
	bits    = unit{"bit/s", ""}
	packets = unit{"/s", ""}
)

// text is a number with three digits and a prefix.
func (u unit) text(v float64) string { return scaled(v, " ", u.long) }

// brief is the same in five places.
func (u unit) brief(v float64) string { return scaled(v, "", u.short) }

func scaled(v float64, space, unit string) string {
	if unit == "%" {
		return fmt.Sprintf("%.0f%s%%", v, space)
	}
	for _, p := range []string{"", "k", "M"} {
		if v < 999.5 {
			return fmt.Sprintf("%.3g%s%s%s", v, space, p, unit)
		}
		v /= 1000
	}
	return fmt.Sprintf("%.3g%sG%s", v, space, unit)
}
