package expose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// table is everything of an exposition that does not change while the schema has
// the same length: the order, the comments, and each series' name and labels.
type table struct {
	series   []collectors.Series
	families []family
	// older is the slot of an earlier series with the very same name and labels,
	// by slot: of two, the newest that is present is shown.
	older map[int32]int32
}

// family is the series that share a name.
type family struct {
	text, open string // HELP and TYPE in Prometheus text and in OpenMetrics
	counts     bool   // it is a counter in OpenMetrics
	lines      []line
}

// line is one series: what comes before its value.
type line struct {
	prefix string // name{labels} and a space
	slot   int32
}

// newTable groups series into families, in the order of their names; in a family
// they stay in the order of their slots.
func newTable(series []collectors.Series) *table {
	t := &table{series: series, older: map[int32]int32{}}
	byName := map[string]int{}
	for i := range series {
		if _, ok := byName[series[i].Name]; !ok {
			byName[series[i].Name] = 0
			t.families = append(t.families, family{})
		}
	}
	names := make([]string, 0, len(byName))
	for n := range byName {
		names = append(names, n)
	}
	slices.Sort(names)
	for i, n := range names {
		byName[n] = i
	}
	seen := make(map[string]lineAt, len(series))
	for i := range series {
		s, slot := &series[i], int32(i)
		f := &t.families[byName[s.Name]]
		if f.text == "" {
			f.text = textHead(s.Metric)
			_, clash := byName[strings.TrimSuffix(s.Name, "_total")]
			f.open = openHead(s.Metric, clash)
			f.counts = isOpenCounter(s.Metric, clash)
		}
		p := prefix(s)
		if at, ok := seen[p]; ok {
			l := &at.family.lines[at.index]
			t.older[slot] = l.slot
			l.slot = slot
			continue
		}
		seen[p] = lineAt{f, len(f.lines)}
		f.lines = append(f.lines, line{p, slot})
	}
	return t
}

type lineAt struct {
	family *family
	index  int
}

// textHead is the comment of a family in Prometheus text 0.0.4.
func textHead(m *collectors.Metric) string {
	typ := "untyped"
	switch m.Type {
	case collectors.Counter:
		typ = "counter"
	case collectors.Gauge:
		typ = "gauge"
	}
	return "# HELP " + m.Name + " " + helpText.Replace(utf8Text(m.Help)) + "\n# TYPE " + m.Name + " " + typ + "\n"
}

// openHead is the comment of a family in OpenMetrics 1.0. There a counter's family
// is called without _total, and its sample with it. A counter without _total would
// have to change its name between the formats, so it is of unknown type instead;
// so is one whose family would be called as another is (clash).
func openHead(m *collectors.Metric, clash bool) string {
	name, typ := m.Name, "unknown"
	switch m.Type {
	case collectors.Counter:
		if isOpenCounter(m, clash) {
			name, typ = strings.TrimSuffix(name, "_total"), "counter"
		}
	case collectors.Gauge:
		typ = "gauge"
	}
	head := "# TYPE " + name + " " + typ + "\n"
	// A unit is legal only where the family's name ends with it.
	if m.Unit != "" && strings.HasSuffix(name, "_"+m.Unit) {
		head += "# UNIT " + name + " " + m.Unit + "\n"
	}
	return head + "# HELP " + name + " " + quotedText.Replace(utf8Text(m.Help)) + "\n"
}

func isOpenCounter(m *collectors.Metric, clash bool) bool {
	return m.Type == collectors.Counter && strings.HasSuffix(m.Name, "_total") && !clash
}

var (
	helpText   = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	quotedText = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// utf8Text makes text valid: both formats are UTF-8, the kernel's names need not be.
func utf8Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// prefix is a series' name and labels, as they stand before the value.
func prefix(s *collectors.Series) string {
	if len(s.Labels) == 0 {
		return s.Name + " "
	}
	var b strings.Builder
	b.WriteString(s.Name)
	sep := byte('{')
	for _, l := range s.Labels {
		b.WriteByte(sep)
		b.WriteString(l.Name)
		b.WriteString(`="`)
		quotedText.WriteString(&b, utf8Text(l.Value))
		b.WriteByte('"')
		sep = ','
	}
	b.WriteString("} ")
	return b.String()
}

// append appends the exposition of a tick. Families without a present series are
// left out. starts, for OpenMetrics, adds when counters began; nil leaves that out.
func (t *table) append(dst []byte, tick *frame.Tick, open bool, starts *starts) []byte {
	for i := range t.families {
		f := &t.families[i]
		headed := false
		for _, l := range f.lines {
			slot, ok := t.present(tick, l.slot)
			if !ok {
				continue
			}
			if !headed {
				headed = true
				if open {
					dst = append(dst, f.open...)
				} else {
					dst = append(dst, f.text...)
				}
			}
			s := &t.series[slot]
			dst = append(dst, l.prefix...)
			dst = strconv.AppendFloat(dst, s.Value(tick.Values[slot]), 'g', -1, 64)
			dst = append(dst, '\n')
			if !open || !f.counts {
				continue
			}
			if ms, ok := starts.of(s); ok {
				dst = append(dst, strings.TrimSuffix(s.Name, "_total")...)
				dst = append(dst, "_created"...)
				dst = appendMs(append(dst, l.prefix[len(s.Name):]...), ms)
			}
		}
	}
	return dst
}

// present is the slot to show for a line: its own, or an older one of the same
// series, where that is the one with a value.
func (t *table) present(tick *frame.Tick, slot int32) (int32, bool) {
	for {
		if int(slot) < len(tick.Values) && tick.Has(int(slot)) {
			return slot, true
		}
		older, ok := t.older[slot]
		if !ok {
			return 0, false
		}
		slot = older
	}
}
