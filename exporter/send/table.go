package send

import (
	"strings"

	"github.com/ticktier/ticktier/collectors"
)

// Protocol is a remote-write version.
type Protocol uint8

const (
	// V2 is io.prometheus.write.v2.Request.
	V2 Protocol = 2
	// V1 is prometheus.WriteRequest.
	V1 Protocol = 1
)

// maxSeries is how many series one request may hold. Receivers set limits on it
// and build a symbols table of it.
const maxSeries = 10_000

// table holds all of a request that does not change from push to push, encoded:
// it is made once per schema length, and a push then encodes only numbers.
type table struct {
	protocol Protocol
	series   []collectors.Series
	of       uint64    // the schema's generation
	starts   []int     // slots that tell when the series in the slot before started
	sections []section // of maxSeries series each
	bytes    []byte
	parts    []part // by slot
	// metadata is the 1.0 metadata of every metric family.
	metadata []byte
}

// section is a run of slots that share a symbols table.
type section struct {
	from, to int
	header   []byte // the symbols of a 2.0 request
}

// part says where in table.bytes the constant bytes of a series' message are: the
// labels before its samples and, in 2.0, the metadata behind them.
type part struct{ labels, metadata, end uint32 }

// newTable encodes the constant parts of all series.
func newTable(p Protocol, series []collectors.Series, external []collectors.Label) *table {
	t := &table{protocol: p, series: series, parts: make([]part, len(series))}
	var scratch []collectors.Label
	for from := 0; from < len(series); from += maxSeries {
		s := section{from: from, to: min(from+maxSeries, len(series))}
		refs := symbols{refs: map[string]uint32{"": 0}}
		refs.encoded = appendString(refs.encoded, 4, "")
		for slot := from; slot < s.to; slot++ {
			t.parts[slot].labels = uint32(len(t.bytes))
			if typ := series[slot].Type; typ.Companion() {
				if typ == collectors.StartTime && slot > 0 {
					t.starts = append(t.starts, slot)
				}
				t.parts[slot].metadata, t.parts[slot].end = t.parts[slot].labels, t.parts[slot].labels
				continue
			}
			scratch = appendLabels(scratch[:0], &series[slot], external)
			if p == V2 {
				t.bytes = appendRefs(t.bytes, scratch, &refs)
				t.parts[slot].metadata = uint32(len(t.bytes))
				t.bytes = appendMetadata2(t.bytes, series[slot].Metric, &refs)
			} else {
				t.bytes = appendLabels1(t.bytes, scratch)
				t.parts[slot].metadata = uint32(len(t.bytes))
			}
			t.parts[slot].end = uint32(len(t.bytes))
		}
		if p == V2 {
			s.header = refs.encoded
		}
		t.sections = append(t.sections, s)
	}
	if p == V1 {
		t.metadata = appendMetadata1(nil, series)
	}
	return t
}

// section is the section that holds a slot.
func (t *table) section(slot int) *section { return &t.sections[slot/maxSeries] }

// symbols is a 2.0 symbols table while it is built.
type symbols struct {
	refs    map[string]uint32
	encoded []byte
}

// ref is the reference of a string, which is added when it is new.
func (s *symbols) ref(v string) uint32 {
	r, ok := s.refs[v]
	if !ok {
		r = uint32(len(s.refs))
		s.refs[v] = r
		s.encoded = appendString(s.encoded, 4, v)
	}
	return r
}

// appendRefs appends the labels_refs field of a 2.0 TimeSeries.
func appendRefs(dst []byte, labels []collectors.Label, refs *symbols) []byte {
	size := 0
	for _, l := range labels {
		size += uvarintLen(uint64(refs.ref(l.Name))) + uvarintLen(uint64(refs.ref(l.Value)))
	}
	dst = append(dst, 1<<3|2)
	dst = appendUvarint(dst, uint64(size))
	for _, l := range labels {
		dst = appendUvarint(dst, uint64(refs.ref(l.Name)))
		dst = appendUvarint(dst, uint64(refs.ref(l.Value)))
	}
	return dst
}

// appendMetadata2 appends the metadata field of a 2.0 TimeSeries.
func appendMetadata2(dst []byte, m *collectors.Metric, refs *symbols) []byte {
	help, unit := refs.ref(valid(m.Help)), refs.ref(valid(m.Unit))
	fields := [...]struct {
		tag   byte
		value uint64
	}{{1 << 3, uint64(metricType(m))}, {3 << 3, uint64(help)}, {4 << 3, uint64(unit)}}
	size := 0
	for _, f := range fields {
		if f.value != 0 {
			size += 1 + uvarintLen(f.value)
		}
	}
	if size == 0 {
		return dst
	}
	dst = append(dst, 5<<3|2, byte(size))
	for _, f := range fields {
		if f.value != 0 {
			dst = appendUvarint(append(dst, f.tag), f.value)
		}
	}
	return dst
}

// appendLabels1 appends the labels of a 1.0 TimeSeries.
func appendLabels1(dst []byte, labels []collectors.Label) []byte {
	for _, l := range labels {
		dst = append(dst, 1<<3|2)
		dst = appendUvarint(dst, uint64(stringLen(l.Name)+stringLen(l.Value)))
		dst = appendString(dst, 1, l.Name)
		dst = appendString(dst, 2, l.Value)
	}
	return dst
}

// appendMetadata1 appends the metadata of every metric family as the fields of a
// 1.0 WriteRequest.
func appendMetadata1(dst []byte, series []collectors.Series) []byte {
	seen := map[string]bool{}
	var msg []byte
	for _, s := range series {
		name := family(s.Metric)
		if s.Type.Companion() || seen[name] {
			continue
		}
		seen[name] = true
		msg = msg[:0]
		if t := metricType(s.Metric); t != 0 {
			msg = append(msg, 1<<3, t)
		}
		msg = appendString(msg, 2, valid(name))
		if s.Help != "" {
			msg = appendString(msg, 4, valid(s.Help))
		}
		if s.Unit != "" {
			msg = appendString(msg, 5, valid(s.Unit))
		}
		dst = append(dst, 3<<3|2)
		dst = appendUvarint(dst, uint64(len(msg)))
		dst = append(dst, msg...)
	}
	return dst
}

// metricType is the enum value that both protocols give a metric's type.
func metricType(m *collectors.Metric) byte {
	if m.Type > collectors.StateSet {
		return 0
	}
	return byte(m.Type)
}

// family is the name of the family that a metric is a part of.
func family(m *collectors.Metric) string {
	var suffixes []string
	switch m.Type {
	case collectors.Histogram, collectors.Summary:
		suffixes = []string{"_bucket", "_sum", "_count"}
	case collectors.GaugeHistogram:
		suffixes = []string{"_bucket", "_gsum", "_gcount"}
	}
	for _, s := range suffixes {
		if name, ok := strings.CutSuffix(m.Name, s); ok {
			return name
		}
	}
	return m.Name
}

// timeOf is the slot that tells when a series' samples were taken, -1 where the tick
// does.
func (t *table) timeOf(slot int) int {
	for i := slot + 1; i < len(t.series) && t.series[i].Type.Companion(); i++ {
		if t.series[i].Type == collectors.SampleTime {
			return i
		}
	}
	return -1
}
