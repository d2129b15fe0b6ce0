package scrape

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/collectors/promtext"
)

var errProto = errors.New("not as protobuf should be")

// fields goes through the fields of a message. What is not as it should be ends it
// and leaves bad set.
type fields struct {
	b    []byte
	num  uint64
	wire byte
	v    uint64 // of a number, or the bits of one
	data []byte // of a text or a message
	bad  bool
}

func (f *fields) next() bool {
	if len(f.b) == 0 || f.bad {
		return false
	}
	tag := f.uvarint()
	f.num, f.wire, f.v, f.data = tag>>3, byte(tag&7), 0, nil
	switch f.wire {
	case 0:
		f.v = f.uvarint()
	case 1:
		if f.bad = f.bad || len(f.b) < 8; !f.bad {
			f.v, f.b = binary.LittleEndian.Uint64(f.b), f.b[8:]
		}
	case 2:
		f.data = f.bytes()
	case 5:
		if f.bad = f.bad || len(f.b) < 4; !f.bad {
			f.v, f.b = uint64(binary.LittleEndian.Uint32(f.b)), f.b[4:]
		}
	default:
		f.bad = true
	}
	f.bad = f.bad || f.num == 0
	return !f.bad
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.bad = true
		return 0
	}
	f.b = f.b[n:]
	return v
}

// bytes takes a length and as many bytes.
func (f *fields) bytes() []byte {
	n := f.uvarint()
	if f.bad || n > uint64(len(f.b)) {
		f.bad = true
		return nil
	}
	p := f.b[:n:n]
	f.b = f.b[n:]
	return p
}

// is reports whether the field has that number and wire type. One with that number
// and another type is bad.
func (f *fields) is(num uint64, wire byte) bool {
	if f.num != num {
		return false
	}
	f.bad = f.bad || f.wire != wire
	return !f.bad
}

func (f *fields) float() float64 { return math.Float64frombits(f.v) }

func (f *fields) err() error {
	if f.bad {
		return errProto
	}
	return nil
}

// metricTypes are the types by number.
var metricTypes = [...]collectors.Type{collectors.Counter, collectors.Gauge, collectors.Summary, collectors.Untyped, collectors.Histogram, collectors.GaugeHistogram}

// protobuf reads an answer of families, each behind its length.
func (r *reading) protobuf(body []byte) error {
	f := fields{b: body}
	for len(f.b) > 0 {
		msg := f.bytes()
		if f.bad {
			return errProto
		}
		if err := r.protoFamily(msg); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) protoFamily(msg []byte) error {
	fam := family{typ: collectors.Counter, from: len(r.points)}
	metrics, known := 0, true
	f := fields{b: msg}
	for f.next() {
		switch {
		case f.is(1, 2):
			fam.name = f.data
		case f.is(2, 2):
			fam.help = f.data
		case f.is(3, 0):
			if known = f.v < uint64(len(metricTypes)); known {
				fam.typ = metricTypes[f.v]
			}
		case f.is(4, 2):
			metrics++
		case f.is(5, 2):
			fam.unit = f.data
		}
	}
	switch {
	case f.bad:
		return errProto
	case metrics == 0:
		return nil
	case !known:
		return fmt.Errorf("the type of metric %.100q is not known", fam.name)
	case len(fam.name) == 0 || !utf8.Valid(fam.name):
		return fmt.Errorf("%.100q is no name of a metric", fam.name)
	case !utf8.Valid(fam.help):
		return fmt.Errorf("the help of %.100q is not UTF-8", fam.name)
	}
	r.fam = fam
	f = fields{b: msg}
	for f.next() {
		if f.num == 4 {
			if err := r.protoMetric(f.data); err != nil {
				return fmt.Errorf("metric %.100q: %w", fam.name, err)
			}
		}
	}
	return nil
}

// protoMetric reads one metric, which may be several series.
func (r *reading) protoMetric(msg []byte) error {
	m := protoMetric{msg: msg}
	r.key = append(append(r.key[:0], r.fam.name...), 0xff)
	var value []byte
	field := protoField(r.fam.typ)
	f := fields{b: msg}
	for f.next() {
		switch {
		case f.is(1, 2):
			r.key = binary.AppendUvarint(r.key, uint64(len(f.data)))
			r.key = append(r.key, f.data...)
		case f.is(6, 0):
			m.time = int64(f.v)
		case f.num <= 7 && f.is(f.num, 2) && f.num == field:
			value = f.data
		}
	}
	if f.bad {
		return errProto
	}
	switch r.fam.typ {
	case collectors.Summary:
		return r.protoSummary(&m, value)
	case collectors.Histogram, collectors.GaugeHistogram:
		return r.protoHistogram(&m, value)
	}
	v := 0.0
	f = fields{b: value}
	for f.next() {
		switch {
		case f.is(1, 1):
			v = f.float()
		case f.num == 2 && r.fam.typ == collectors.Counter && f.is(2, 2):
			r.exemplars++
		case f.num == 3 && r.fam.typ == collectors.Counter && f.is(3, 2):
			m.start = protoTime(f.data, &f.bad)
		}
	}
	if f.bad {
		return errProto
	}
	return r.protoSample(&m, "", "", 0, v)
}

// protoMetric is what the series of one metric share.
type protoMetric struct {
	msg         []byte
	time, start int64
}

// protoTime is a google.protobuf.Timestamp in Unix ms.
func protoTime(msg []byte, bad *bool) int64 {
	f := fields{b: msg}
	var sec, nanos int64
	for f.next() {
		switch {
		case f.is(1, 0):
			sec = int64(f.v)
		case f.is(2, 0):
			nanos = int64(int32(f.v))
		}
	}
	*bad = *bad || f.bad
	return sec*1000 + nanos/1e6
}

func (r *reading) protoSummary(m *protoMetric, msg []byte) error {
	var count uint64
	var sum float64
	f := fields{b: msg}
	for f.next() {
		switch {
		case f.is(1, 0):
			count = f.v
		case f.is(2, 1):
			sum = f.float()
		case f.is(3, 2):
		case f.is(4, 2):
			m.start = protoTime(f.data, &f.bad)
		}
	}
	if f.bad {
		return errProto
	}
	err := errors.Join(r.protoSample(m, "_count", "", 0, float64(count)), r.protoSample(m, "_sum", "", 0, sum))
	for f = (fields{b: msg}); err == nil && f.next(); {
		if f.num != 3 {
			continue
		}
		var at, v float64
		q := fields{b: f.data}
		for q.next() {
			switch {
			case q.is(1, 1):
				at = q.float()
			case q.is(2, 1):
				v = q.float()
			}
		}
		if err = q.err(); err == nil {
			err = r.protoSample(m, "", "quantile", at, v)
		}
	}
	return err
}

func (r *reading) protoHistogram(m *protoMetric, msg []byte) error {
	var count, sum float64
	var whole uint64
	native := false
	f := fields{b: msg}
	for f.next() {
		switch {
		case f.is(1, 0):
			whole = f.v
		case f.is(2, 1):
			sum = f.float()
		case f.is(3, 2):
		case f.is(4, 1):
			count = f.float()
		case f.is(15, 2):
			m.start = protoTime(f.data, &f.bad)
		case f.is(6, 1):
			native = native || f.float() > 0
		case f.is(7, 0):
			native = native || f.v > 0
		case f.is(9, 2), f.is(12, 2):
			native = true
		case f.is(16, 2):
			r.exemplars++
		}
	}
	if f.bad {
		return errProto
	}
	if native {
		r.native++
	}
	if count == 0 {
		count = float64(whole)
	}
	if err := errors.Join(r.protoSample(m, "_count", "", 0, count), r.protoSample(m, "_sum", "", 0, sum)); err != nil {
		return err
	}
	for f = (fields{b: msg}); f.next(); {
		if f.num != 3 {
			continue
		}
		bound, v, err := r.protoBucket(f.data)
		if err == nil {
			err = r.protoSample(m, "_bucket", "le", bound, v)
		}
		if err != nil || math.IsInf(bound, 1) {
			return err
		}
	}
	return r.protoSample(m, "_bucket", "le", math.Inf(1), count)
}

func (r *reading) protoBucket(msg []byte) (bound, v float64, err error) {
	var whole uint64
	f := fields{b: msg}
	for f.next() {
		switch {
		case f.is(1, 0):
			whole = f.v
		case f.is(2, 1):
			bound = f.float()
		case f.is(3, 2):
			r.exemplars++
		case f.is(4, 1):
			v = f.float()
		}
	}
	if v == 0 {
		v = float64(whole)
	}
	return bound, v, f.err()
}

// protoSample takes one series of a metric: the family's name with a suffix, and with
// a label of that name, where there is one, with the number as its value.
func (r *reading) protoSample(m *protoMetric, suffix, label string, number, v float64) error {
	if r.ignore {
		m.time = 0
	}
	n := len(r.key)
	key := append(append(r.key, suffix...), label...)
	if label != "" {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(number))
	}
	r.key = key[:n]
	e := r.known(key, r.fam.typ)
	if e == nil || (e.s.shape&timed != 0) != (m.time != 0) {
		var err error
		if e, err = r.addProto(m, key, suffix, label, number); err != nil {
			return err
		}
	}
	if math.IsNaN(v) && math.Float64bits(v) == staleNaN {
		v = math.NaN() // it would end the series
	}
	return r.take(e, point{value: v, time: m.time, timed: m.time != 0, start: m.start})
}

// staleNaN is the NaN that ends a series.
const staleNaN = 0x7ff0000000000002

func (r *reading) addProto(m *protoMetric, key []byte, suffix, label string, number float64) (*entry, error) {
	own := r.scratch[:0]
	f := fields{b: m.msg}
	for f.next() {
		if f.num != 1 {
			continue
		}
		var l collectors.Label
		p := fields{b: f.data}
		for p.next() {
			switch {
			case p.is(1, 2):
				l.Name = string(p.data)
			case p.is(2, 2):
				l.Value = string(p.data)
			}
		}
		if p.bad {
			return nil, errProto
		}
		own = append(own, l)
	}
	if label != "" {
		own = append(own, collectors.Label{Name: label, Value: promtext.Float(number)})
	}
	r.scratch = own
	slices.SortFunc(own, func(a, b collectors.Label) int { return strings.Compare(a.Name, b.Name) })
	for i, l := range own {
		switch {
		case l.Name == "" || !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value):
			return nil, errors.New("a label is not UTF-8, or has no name")
		case l.Name == "__name__" || i > 0 && own[i-1].Name == l.Name:
			return nil, fmt.Errorf("label %.100q is there twice", l.Name)
		}
	}
	own = slices.DeleteFunc(own, func(l collectors.Label) bool { return l.Value == "" })
	var sh shape
	if startable(r.fam.typ) || r.fam.typ == collectors.GaugeHistogram {
		sh |= started
	}
	if m.time != 0 {
		sh |= timed
	}
	return r.add(key, string(r.fam.name)+suffix, string(r.fam.help), string(r.fam.unit), own, sh)
}

// protoField is the number of the field that has the value of a metric.
func protoField(t collectors.Type) uint64 {
	switch t {
	case collectors.Gauge:
		return 2
	case collectors.Counter:
		return 3
	case collectors.Summary:
		return 4
	case collectors.Untyped:
		return 5
	}
	return 7
}
