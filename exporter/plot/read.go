package plot

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ticktier/ticktier/exporter/follow"
)

// Match selects what is drawn.
func Match() []string {
	out := []string{"node_cpu_seconds_total", running, "ticktier_exporter_tick_rate_configured_hertz"}
	for name := range panelOf {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// The panels.
const (
	cpu = iota
	packets
	drops
	lateness
	panelCount
)

// running is where the kernel counts exactly how long tasks ran, and tasks its line.
const (
	running = "node_schedstat_running_seconds_total"
	tasks   = "tasks"
)

// panelOf are the counters that are drawn as rates.
var panelOf = map[string]struct {
	panel int
	label string // names the line, with short before it
	short string
}{
	"node_network_receive_packets_total":  {packets, "device", "in "},
	"node_network_transmit_packets_total": {packets, "device", "out "},
	"node_network_receive_drop_total":     {drops, "device", "in "},
	"node_network_transmit_drop_total":    {drops, "device", "out "},
	"node_softnet_dropped_total":          {drops, "cpu", "softnet CPU "},
	"node_softnet_times_squeezed_total":   {drops, "cpu", "squeezed CPU "},
}

// line is one line of a panel.
type line struct {
	name string
	t    []int64 // Unix ms
	v    []float64
	max  float64
}

// record is what is drawn.
type record struct {
	from, to int64 // Unix ms
	ticks    int
	missed   uint64
	cut      bool // its last line is not whole, and left out
	session  string
	gaps     []follow.Gap
	panels   [panelCount]map[string]*line
}

// read reads all of a record.
func read(src io.Reader) (*record, error) {
	rec := &record{}
	for i := range rec.panels {
		rec.panels[i] = map[string]*line{}
	}
	r := follow.NewReader(src)
	var rates follow.Rates
	late := lateTicks{}
	for {
		o, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			// What cannot be read and has nothing behind it was cut off.
			if _, after := r.Next(); rec.ticks > 0 && errors.Is(after, io.EOF) {
				rec.cut = true
				break
			}
			return nil, err
		}
		switch {
		case o.Hello != nil:
			rec.session = o.Hello.Session
		case o.Gap != nil:
			rec.gaps = append(rec.gaps, *o.Gap)
			rec.missed += o.Gap.Ticks
		case o.Tick != nil:
			rec.add(r, &rates, o.Tick)
			late.add(r, o.Tick)
		}
	}
	if rec.ticks < 2 {
		return nil, fmt.Errorf("the record has %d ticks", rec.ticks)
	}
	late.draw(rec)
	return rec, nil
}

func (rec *record) add(r *follow.Reader, rates *follow.Rates, t *follow.Tick) {
	if rec.ticks == 0 {
		rec.from = t.Time
	}
	rec.ticks++
	rec.to = t.Time
	modes, all := map[string]float64{}, 0.0
	ran, cpus := 0.0, 0.0
	for id := range t.Values {
		s, ok := r.Series[id]
		if !ok {
			continue
		}
		p, drawn := panelOf[s.Name]
		if !drawn && s.Name != "node_cpu_seconds_total" && s.Name != running {
			continue
		}
		v, ok := rates.Of(id, t)
		switch {
		case !ok:
		case drawn:
			rec.point(p.panel, p.short+s.Labels[p.label], t.Time, v)
		case s.Name == running:
			ran, cpus = ran+v, cpus+1
		default:
			all += v
			modes[s.Labels["mode"]] += v
		}
	}
	if cpus > 0 {
		rec.point(cpu, tasks, t.Time, 100*ran/cpus)
	}
	if all > 0 {
		for mode, v := range modes {
			rec.point(cpu, mode, t.Time, 100*v/all)
		}
	}
}

func (rec *record) point(panel int, name string, t int64, v float64) {
	l := rec.panels[panel][name]
	if l == nil {
		l = &line{name: name}
		rec.panels[panel][name] = l
	}
	l.t, l.v, l.max = append(l.t, t), append(l.v, v), max(l.max, v)
}

// lines are those of a panel that ever moved, the highest first.
func (rec *record) lines(panel int) []*line {
	var out []*line
	for _, l := range rec.panels[panel] {
		if l.max > 0 {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *line) int {
		switch {
		case a.max > b.max:
			return -1
		case a.max < b.max:
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return out
}

// lateTicks finds out how late ticks were: a tick carries its slot's number and the
// time at which it was read.
type lateTicks struct {
	rate float64
	seq  []uint64
	t    []int64
}

func (l *lateTicks) add(r *follow.Reader, t *follow.Tick) {
	l.seq, l.t = append(l.seq, t.Seq), append(l.t, t.Time)
	if l.rate > 0 {
		return
	}
	for id, v := range t.Values {
		if r.Series[id].Name == "ticktier_exporter_tick_rate_configured_hertz" {
			l.rate = v
		}
	}
}

// draw compares with the schedule: that through the earliest ticks of the record.
func (l *lateTicks) draw(rec *record) {
	n := len(l.t)
	if l.rate <= 0 { // guess it
		l.rate = float64(l.seq[n-1]-l.seq[0]) * 1000 / float64(max(1, l.t[n-1]-l.t[0]))
	}
	behind := make([]float64, n)
	for i := range behind {
		behind[i] = float64(l.t[i]-l.t[0]) - float64(int64(l.seq[i]-l.seq[0]))*1000/l.rate
	}
	least := slices.Min(behind)
	for i, b := range behind {
		rec.point(lateness, "late", l.t[i], max(0, b-least))
	}
}
