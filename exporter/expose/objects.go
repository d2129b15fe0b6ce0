package expose

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
	"github.com/ticktier/ticktier/exporter/selector"
)

// objects writes the JSON objects that API.md describes, for one client. It knows
// which series the client has been told of.
type objects struct {
	schema *collectors.Schema
	wall   func(mono int64) int64
	match  []selector.Selector

	known  int     // slots that were looked at
	slots  []int32 // the selected ones
	series []collectors.Series
}

// hello begins a session.
func appendHello(dst []byte, session string) []byte {
	dst = append(dst, `{"hello":{"session":`...)
	dst = appendString(dst, session)
	return append(dst, `,"version":1}}`...)
}

// grow looks at the series that a tick has and the client does not know, and
// reports whether there are selected ones among them.
func (o *objects) grow(t *frame.Tick) (from int, any bool) {
	from = len(o.slots)
	if len(t.Values) > o.known {
		o.series = o.schema.Series()
	}
	for ; o.known < min(len(t.Values), len(o.series)); o.known++ {
		if o.selects(&o.series[o.known]) {
			o.slots = append(o.slots, int32(o.known))
		}
	}
	return from, len(o.slots) > from
}

func (o *objects) selects(s *collectors.Series) bool {
	for _, sel := range o.match {
		if sel.Selects(s) {
			return true
		}
	}
	return len(o.match) == 0
}

// appendSeries names the selected series from the from-th on.
func (o *objects) appendSeries(dst []byte, from int) []byte {
	dst = append(dst, `{"series":[`...)
	for i, slot := range o.slots[from:] {
		if i > 0 {
			dst = append(dst, ',')
		}
		s := &o.series[slot]
		dst = append(dst, `{"id":`...)
		dst = strconv.AppendInt(dst, int64(slot), 10)
		dst = append(dst, `,"name":`...)
		dst = appendString(dst, s.Name)
		dst = append(dst, `,"labels":{`...)
		for j, l := range s.Labels {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, l.Name)
			dst = append(dst, ':')
			dst = appendString(dst, l.Value)
		}
		dst = append(dst, `},"type":`...)
		dst = appendString(dst, typeName(s.Type))
		if s.Unit != "" {
			dst = append(dst, `,"unit":`...)
			dst = appendString(dst, s.Unit)
		}
		dst = append(dst, '}')
	}
	return append(dst, `]}`...)
}

func typeName(t collectors.Type) string {
	switch t {
	case collectors.Counter:
		return "counter"
	case collectors.Gauge:
		return "gauge"
	}
	return "unknown"
}

// appendTick writes the selected series that were read in a tick.
func (o *objects) appendTick(dst []byte, t *frame.Tick) []byte {
	dst = append(dst, `{"tick":{"seq":`...)
	dst = strconv.AppendUint(dst, t.Seq, 10)
	dst = append(dst, `,"t":`...)
	dst = strconv.AppendInt(dst, o.wall(t.Time), 10)
	dst = append(dst, `,"v":{`...)
	sep := false
	for _, slot := range o.slots {
		s := &o.series[slot]
		if int(slot) >= len(t.Values) || !t.Has(int(slot)) || t.Read>>(s.Source&63)&1 == 0 {
			continue
		}
		if sep {
			dst = append(dst, ',')
		}
		sep = true
		dst = append(dst, '"')
		dst = strconv.AppendInt(dst, int64(slot), 10)
		dst = append(dst, `":`...)
		dst = appendNumber(dst, s.Value(t.Values[slot]))
	}
	return append(dst, `}}}`...)
}

// gap is ticks that are not there.
type gap struct {
	reason           string
	from, to, ticks  uint64
	fromMono, toMono int64
}

func (o *objects) appendGap(dst []byte, g gap) []byte {
	dst = append(dst, `{"gap":{"reason":"`...)
	dst = append(dst, g.reason...)
	dst = append(dst, `","from":`...)
	dst = strconv.AppendUint(dst, g.from, 10)
	dst = append(dst, `,"to":`...)
	dst = strconv.AppendUint(dst, g.to, 10)
	dst = append(dst, `,"ticks":`...)
	dst = strconv.AppendUint(dst, g.ticks, 10)
	dst = append(dst, `,"fromTime":`...)
	dst = strconv.AppendInt(dst, o.wall(g.fromMono), 10)
	dst = append(dst, `,"toTime":`...)
	dst = strconv.AppendInt(dst, o.wall(g.toMono), 10)
	return append(dst, `}}`...)
}

func appendSessionGap(dst []byte, asked string) []byte {
	dst = append(dst, `{"gap":{"reason":"session","session":`...)
	dst = appendString(dst, asked)
	return append(dst, `}}`...)
}

func appendEnd(dst []byte, next uint64, more bool) []byte {
	dst = append(dst, `{"end":{"next":`...)
	dst = strconv.AppendUint(dst, next, 10)
	dst = append(dst, `,"more":`...)
	dst = strconv.AppendBool(dst, more)
	return append(dst, `}}`...)
}

// appendNumber writes a value; what JSON has no number for becomes a string.
func appendNumber(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		dst = append(dst, '"')
		dst = strconv.AppendFloat(dst, v, 'g', -1, 64)
		return append(dst, '"')
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

func appendString(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("BUG: expose: a string that is not JSON: " + err.Error())
	}
	return append(dst, b...)
}
