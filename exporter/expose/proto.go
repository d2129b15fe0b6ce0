package expose

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/burst"
	"github.com/ticktier/ticktier/exporter/frame"
)

// typeProto is the only format that has native histograms. It is written by hand:
// the generated code for io.prometheus.client.MetricFamily links all of protobuf.
// Numbers of fields are from client_model's io/prometheus/client/metrics.proto.
const typeProto = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

// The values of MetricType.
const (
	protoCounter   = 0
	protoGauge     = 1
	protoUntyped   = 3
	protoHistogram = 4
)

// message is an open message: where its content began. Its length goes before it
// once it is known.
type message int

// begin opens a message in the field; 0 is for a whole message by itself.
func begin(dst []byte, field int) ([]byte, message) {
	if field > 0 {
		dst = appendTag(dst, field, 2)
	}
	return dst, message(len(dst))
}

// end closes a message. What is in it moves by the few bytes of its length.
func (m message) end(dst []byte) []byte {
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(dst)-int(m)))
	dst = append(dst, size[:n]...)
	copy(dst[int(m)+n:], dst[m:])
	copy(dst[m:], size[:n])
	return dst
}

func appendTag(dst []byte, field, wire int) []byte {
	return binary.AppendUvarint(dst, uint64(field<<3|wire))
}

func appendUint(dst []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(appendTag(dst, field, 0), v)
}

// appendSint appends a sint32 or a sint64.
func appendSint(dst []byte, field int, v int64) []byte {
	return binary.AppendVarint(appendTag(dst, field, 0), v) // Go's varint is zigzag
}

func appendDouble(dst []byte, field int, v float64) []byte {
	return binary.LittleEndian.AppendUint64(appendTag(dst, field, 1), math.Float64bits(v))
}

func appendText(dst []byte, field int, s string) []byte {
	s = utf8Text(s)
	dst = binary.AppendUvarint(appendTag(dst, field, 2), uint64(len(s)))
	return append(dst, s...)
}

func appendFamily(dst []byte, name, help, unit string, typ uint64) ([]byte, message) {
	dst, m := begin(dst, 0)
	dst = appendText(dst, 1, name)
	dst = appendText(dst, 2, help)
	dst = appendUint(dst, 3, typ)
	if unit != "" && strings.HasSuffix(strings.TrimSuffix(name, "_total"), "_"+unit) {
		dst = appendText(dst, 5, unit)
	}
	return dst, m
}

func appendPairs(dst []byte, labels []collectors.Label) []byte {
	for _, l := range labels {
		var m message
		dst, m = begin(dst, 1)
		dst = appendText(dst, 1, l.Name)
		dst = m.end(appendText(dst, 2, l.Value))
	}
	return dst
}

// appendValue appends a Metric that is one number; in has the field of its type. start
// is the Unix ms at which a counter began; 0 is not known.
func appendValue(dst []byte, labels []collectors.Label, in int, v float64, start int64) []byte {
	dst, m := begin(dst, 4)
	dst = appendPairs(dst, labels)
	dst, n := begin(dst, in)
	dst = appendDouble(dst, 1, v)
	if start > 0 {
		dst = appendTime(dst, 3, start)
	}
	dst = n.end(dst)
	return m.end(dst)
}

// appendProto appends the families of a tick that have a present series.
func (t *table) appendProto(dst []byte, tick *frame.Tick, starts *starts) []byte {
	for i := range t.families {
		var m message
		headed, field := false, 0
		for _, l := range t.families[i].lines {
			slot, ok := t.present(tick, l.slot)
			if !ok {
				continue
			}
			s := &t.series[slot]
			if !headed {
				headed = true
				var typ uint64
				typ, field = protoType(t.series[t.families[i].lines[0].slot].Type)
				dst, m = appendFamily(dst, s.Name, s.Help, s.Unit, typ)
			}
			start, _ := starts.of(s)
			dst = appendValue(dst, s.Labels, field, s.Value(tick.Values[slot]), start)
		}
		if headed {
			dst = m.end(dst)
		}
	}
	return dst
}

// protoType is a type's number, and the field of a Metric that has its value.
func protoType(t collectors.Type) (typ uint64, field int) {
	switch t {
	case collectors.Counter:
		return protoCounter, 3
	case collectors.Gauge:
		return protoGauge, 2
	}
	return protoUntyped, 5
}

// appendProtoBursts appends histograms with native and classic buckets, and their
// ranges.
func appendProtoBursts(dst []byte, snap *burst.Snapshot, starts *starts) []byte {
	for i := range snap.Families {
		f := &snap.Families[i]
		if len(f.Series) == 0 {
			continue
		}
		dst2, m := appendFamily(dst, f.Name, f.Help, f.Unit, protoHistogram)
		dst = dst2
		for j := range f.Series {
			dst = appendHistogram(dst, f, &f.Series[j], starts)
		}
		dst = m.end(dst)
		for _, e := range extremes {
			dst = appendProtoExtremes(dst, f, e)
		}
	}
	return dst
}

func appendProtoExtremes(dst []byte, f *burst.Family, e extreme) []byte {
	var m message
	headed := false
	for i := range f.Series {
		s := &f.Series[i]
		if !s.Ranged {
			continue
		}
		if !headed {
			headed = true
			dst, m = appendFamily(dst, f.Name+e.suffix, f.Help+e.help, "", protoGauge)
		}
		dst = appendValue(dst, s.Labels, 2, e.of(s), 0)
	}
	if headed {
		dst = m.end(dst)
	}
	return dst
}

func appendHistogram(dst []byte, f *burst.Family, s *burst.Series, starts *starts) []byte {
	dst, m := begin(dst, 4)
	dst = appendPairs(dst, s.Labels)
	dst, h := begin(dst, 7)
	dst = appendUint(dst, 1, s.Count)
	dst = appendDouble(dst, 2, s.Sum)
	var all uint64
	for i, bound := range f.Bounds {
		all += s.Classic[i]
		var b message
		dst, b = begin(dst, 3)
		dst = appendUint(dst, 1, all)
		dst = b.end(appendDouble(dst, 2, bound))
	}
	dst = appendSint(dst, 5, burst.Schema)
	dst = appendDouble(dst, 6, burst.ZeroThreshold)
	dst = appendUint(dst, 7, s.Zero)
	dst = s.AppendSpans(dst, 12)
	dst = s.AppendDeltas(dst, 13, false)
	if start, ok := starts.at(s.Start); ok {
		dst = appendTime(dst, 15, start)
	}
	return m.end(h.end(dst))
}
