package receive

import (
	"encoding/binary"
	"fmt"
	"math"
)

// sample is one float sample; times are Unix milliseconds, st 0 means unknown.
type sample struct {
	st, t int64
	v     float64
}

// pair is a label as sent.
type pair struct{ name, value []byte }

// series is one decoded TimeSeries. Histograms and exemplars stay encoded until the
// label set is known to be good. It is reused for every series of a request.
type series struct {
	refs       []uint32 // 2.0: label references
	pairs      []pair   // 1.0: labels, at most maxLabels+1 of them
	samples    []sample
	histograms []span
	exemplars  []span
	meta       seriesMeta
}

// seriesMeta is a 2.0 series' Metadata message; all zero says nothing.
type seriesMeta struct {
	typ        int32
	help, unit uint32
}

func (s *series) reset() {
	*s = series{
		refs: s.refs[:0], pairs: s.pairs[:0], samples: s.samples[:0],
		histograms: s.histograms[:0], exemplars: s.exemplars[:0],
	}
}

// cost is what the series takes of the limit on samples.
func (s *series) cost() int {
	return len(s.samples) + heavy*(len(s.histograms)+len(s.exemplars))
}

// elements is the number of things in the series that are stored or refused.
func (s *series) elements() int {
	return len(s.samples) + len(s.histograms) + len(s.exemplars)
}

// decode reads the TimeSeries of q at the span. A series that costs more than room is
// a limitError.
func (s *series) decode(q *request, at span, room int) error {
	s.reset()
	b := q.body[:at.to:at.to]
	for i := int(at.from); i < len(b); {
		// Nearly all of a large push is this: a sample of less than 128 bytes.
		if n := i + 2; b[i] == tagSample && n <= len(b) && int(b[i+1]) <= min(len(b)-n, 0x7f) {
			i = n + int(b[i+1])
			s.samples = append(s.samples, sample{})
			if err := s.samples[len(s.samples)-1].decode(b[n:i:i], q.proto); err != nil {
				return err
			}
			if len(s.samples) > room {
				return errRoom
			}
			continue
		}
		num, typ, next, err := tag(b, i)
		if err != nil {
			return err
		}
		if num > 5 || num == 5 && q.proto == proto1 {
			if i, err = skip(b, i); err != nil {
				return err
			}
			continue
		}
		if num == 1 && typ == wireVarint && q.proto == proto2 {
			var ref uint64
			if ref, i, err = uvarint(b, next); err != nil {
				return err
			}
			s.refs = append(s.refs, uint32(ref))
			continue
		}
		if typ != wireBytes {
			return errWireType
		}
		data, end, err := chunk(b, next)
		if err != nil {
			return err
		}
		i = end
		if err := s.field(q.proto, num, data, span{uint32(end - len(data)), uint32(end)}); err != nil {
			return err
		}
		if s.cost() > room {
			return errRoom
		}
	}
	return nil
}

// field takes one length-delimited field of a TimeSeries.
func (s *series) field(p protocol, num int32, data []byte, at span) (err error) {
	switch {
	case num == 1 && p == proto1:
		return s.label(data)
	case num == 1:
		s.refs, err = appendRefs(s.refs, data)
	case num == 2:
		s.samples = append(s.samples, sample{})
		err = s.samples[len(s.samples)-1].decode(data, p)
	case num == 3 && p == proto1, num == 4 && p == proto2:
		s.exemplars = append(s.exemplars, at)
	case num == 3, num == 4:
		s.histograms = append(s.histograms, at)
	case num == 5:
		err = s.meta.decode(data)
	}
	return err
}

// label reads a 1.0 Label message.
func (s *series) label(b []byte) error {
	l, err := decodeLabel(b)
	if err == nil && len(s.pairs) <= maxLabels {
		s.pairs = append(s.pairs, l)
	}
	return err
}

func decodeLabel(b []byte) (l pair, err error) {
	for i := 0; i < len(b); {
		num, typ, next, err := tag(b, i)
		if err != nil {
			return l, err
		}
		switch {
		case num > 2:
			i, err = skip(b, i)
		case typ != wireBytes:
			err = errWireType
		case num == 1:
			l.name, i, err = chunk(b, next)
		default:
			l.value, i, err = chunk(b, next)
		}
		if err != nil {
			return l, err
		}
	}
	return l, nil
}

// appendRefs reads a packed list of uint32.
func appendRefs(refs []uint32, b []byte) ([]uint32, error) {
	for i := 0; i < len(b); {
		v, next, err := uvarint(b, i)
		if err != nil {
			return refs, packed(err)
		}
		refs = append(refs, uint32(v))
		i = next
	}
	return refs, nil
}

// packed turns the end of a packed field inside an element into errPacked.
func packed(err error) error {
	if err == errTruncated {
		return errPacked
	}
	return err
}

var errRoom = limitError{"the request has more samples than one request may have"}

// The tags of a TimeSeries' samples and of a Sample's fields as every encoder writes
// them.
const (
	tagSample    = 2<<3 | wireBytes
	tagValue     = 1<<3 | wireFixed64
	tagTimestamp = 2<<3 | wireVarint
	tagStart     = 3<<3 | wireVarint
)

// decode reads a Sample message: value, timestamp and, in 2.0, the start timestamp.
func (s *sample) decode(b []byte, p protocol) (err error) {
	i := 0
	if len(b) > 10 && b[0] == tagValue && b[9] == tagTimestamp { // the usual order
		s.v = math.Float64frombits(binary.LittleEndian.Uint64(b[1:]))
		var v uint64
		if v, i, err = uvarint(b, 10); err != nil {
			return err
		}
		s.t = int64(v)
		if i < len(b) && b[i] == tagStart && p == proto2 {
			if v, i, err = uvarint(b, i+1); err != nil {
				return err
			}
			s.st = int64(v)
		}
	}
	for i < len(b) {
		num, typ, next, err := tag(b, i)
		if err != nil {
			return err
		}
		var v uint64
		switch {
		case num == 1 && typ == wireFixed64:
			s.v, i, err = fixed64(b, next)
		case num == 2 && typ == wireVarint:
			v, i, err = uvarint(b, next)
			s.t = int64(v)
		case num == 3 && p == proto2 && typ == wireVarint:
			v, i, err = uvarint(b, next)
			s.st = int64(v)
		case num < 3 || num == 3 && p == proto2:
			err = errWireType
		default:
			i, err = skip(b, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decode reads a 2.0 Metadata message, on top of what an earlier one said.
func (m *seriesMeta) decode(b []byte) error {
	for i := 0; i < len(b); {
		num, typ, next, err := tag(b, i)
		if err != nil {
			return err
		}
		if num != 1 && num != 3 && num != 4 {
			if i, err = skip(b, i); err != nil {
				return err
			}
			continue
		}
		if typ != wireVarint {
			return errWireType
		}
		v, next, err := uvarint(b, next)
		if err != nil {
			return err
		}
		switch i = next; num {
		case 1:
			m.typ = int32(v)
		case 3:
			m.help = uint32(v)
		case 4:
			m.unit = uint32(v)
		}
	}
	return nil
}

// malformed names the series a decoding error was found in.
func malformed(index int, err error) error {
	return fmt.Errorf("timeseries %d: %w", index, err)
}
