package collectors

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Schema is the append-only table of the series that sources fill: a series'
// index is its slot. Slots are never reused for another series, so a reader that
// knows the first n series can decode every tick with n slots.
//
// One goroutine at a time adds; any number may read.
type Schema struct {
	mu         sync.RWMutex
	series     []Series
	generation atomic.Uint64
}

// Generation is how often Replace was called. What is worked out of the series of a
// schema is good until it changes.
func (s *Schema) Generation() uint64 { return s.generation.Load() }

// Replace gives slots to other series, for a schema that would grow for ever: the
// one exception to what is said above. It is right only where nobody is to read
// another tick in which one of these slots has a value. at is called for each
// slot; what it returns is the slot's new series, nil for no change.
func (s *Schema) Replace(at func(slot int) *Series) {
	s.mu.Lock()
	defer s.mu.Unlock()
	series := slices.Clone(s.series)
	for i := range series {
		if n := at(i); n != nil {
			series[i] = *n
		}
	}
	s.series = series
	s.generation.Add(1)
}

// Add appends a series and returns its slot. Labels are sorted in place; those with
// an empty value are dropped, because to Prometheus an empty label is no label and
// remote write forbids it.
func (s *Schema) Add(source uint8, m *Metric, labels ...Label) int {
	labels = slices.DeleteFunc(labels, func(l Label) bool { return l.Value == "" })
	slices.SortFunc(labels, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.series = append(s.series, Series{Metric: m, Labels: labels, Source: source})
	return len(s.series) - 1
}

// Len is the number of slots.
func (s *Schema) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.series)
}

// Series returns all series by slot. The slice is a snapshot and must not be
// written to; it stays valid for ever.
func (s *Schema) Series() []Series {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.series[:len(s.series):len(s.series)]
}

// Row is the state of all slots: the newest raw value of each, and which are
// present. Not safe for concurrent use.
type Row struct {
	Values  []int64
	Present []uint64 // bit slot%64 of word slot/64
}

// Grow makes room for n slots; new ones are absent.
func (r *Row) Grow(n int) {
	for len(r.Values) < n {
		r.Values = append(r.Values, 0)
	}
	for len(r.Present)*64 < n {
		r.Present = append(r.Present, 0)
	}
}

// Set stores a raw value and marks the slot present.
func (r *Row) Set(slot int, v int64) {
	r.Values[slot] = v
	r.Present[slot>>6] |= 1 << (slot & 63)
}

// Clear marks a slot absent; its last value stays where it is.
func (r *Row) Clear(slot int) { r.Present[slot>>6] &^= 1 << (slot & 63) }

// Has reports whether the slot is present.
func (r *Row) Has(slot int) bool { return r.Present[slot>>6]>>(slot&63)&1 == 1 }

// Stats counts what a source had to do beyond reading. Its counters are atomic:
// the reading goroutine adds, anyone may load.
type Stats struct {
	// BadRows are rows that could not be parsed and were left out.
	BadRows atomic.Uint64
	// Corrections are counters that stepped back by so little that the last value
	// was held.
	Corrections atomic.Uint64
	// Overflow counts rows left out because the source is at its cap; the same row
	// counts again at each read.
	Overflow atomic.Uint64
	// Hidden is the number of rows of the last read that are not exported because
	// they never moved.
	Hidden atomic.Uint64
	// Bytes is the number of bytes read so far.
	Bytes atomic.Uint64
}

// Out is where one source puts what it read.
type Out struct {
	// Stats is filled by the source.
	Stats Stats

	schema *Schema
	row    *Row
	source uint8
	slots  []int32 // of this source, in the order they were added
	clears uint64  // times that all were cleared
}

// NewOut makes the Out of source number source (0 to 63) on a shared schema and
// row. The row is only touched while the source reads.
func NewOut(schema *Schema, row *Row, source uint8) *Out {
	return &Out{schema: schema, row: row, source: source}
}

// Add adds a series of this source, absent until it is set, and returns its slot.
func (o *Out) Add(m *Metric, labels ...Label) int {
	slot := o.schema.Add(o.source, m, labels...)
	o.row.Grow(slot + 1)
	o.slots = append(o.slots, int32(slot))
	return slot
}

// taken tells that another source has a series of that name with those labels,
// which are sorted.
func (o *Out) taken(name string, labels []Label) bool {
	for _, s := range o.schema.Series() {
		if s.Source != o.source && s.Name == name && slices.Equal(s.Labels, labels) {
			return true
		}
	}
	return false
}

// Set stores the raw value of a slot that Add returned.
func (o *Out) Set(slot int, v int64) { o.row.Set(slot, v) }

// Clear marks a slot absent: its row is gone from the kernel file.
func (o *Out) Clear(slot int) { o.row.Clear(slot) }

// Value is the last raw value of a slot and whether it is present.
func (o *Out) Value(slot int) (int64, bool) { return o.row.Values[slot], o.row.Has(slot) }

// ClearAll marks every series of the source absent: its read failed.
func (o *Out) ClearAll() {
	o.clears++
	for _, s := range o.slots {
		o.row.Clear(int(s))
	}
}

// oddities is how many rows were bad or too many so far.
func (o *Out) oddities() uint64 { return o.Stats.BadRows.Load() + o.Stats.Overflow.Load() }

// Len is the number of series that the source has added.
func (o *Out) Len() int { return len(o.slots) }

// CopyTo brings every series of the source into dst, which is grown to fit: how a
// source that reads into a row of its own hands over what it read.
func (o *Out) CopyTo(dst *Row) {
	if len(o.slots) == 0 {
		return
	}
	dst.Grow(int(o.slots[len(o.slots)-1]) + 1)
	for _, s := range o.slots {
		slot := int(s)
		if o.row.Has(slot) {
			dst.Set(slot, o.row.Values[slot])
		} else {
			dst.Clear(slot)
		}
	}
}

// Slots are those of the source's series so far. The slice must not be written to;
// it stays valid, and as long, while the source adds more.
func (o *Out) Slots() []int32 { return o.slots[:len(o.slots):len(o.slots)] }
