package receive

import (
	"encoding/binary"
	"errors"
	"math"
)

// What can be wrong with a protobuf message. errPacked is the only one for which the
// generated decoder of Prometheus is more lenient: it lets the last element of a
// packed field run past the field's end.
var (
	errTruncated = errors.New("the message ends inside a field")
	errVarint    = errors.New("a varint is longer than ten bytes")
	errTag       = errors.New("a field number is not valid")
	errWireType  = errors.New("a field has the wrong wire type")
	errGroup     = errors.New("a group ends that was not begun")
	errPacked    = errors.New("an element of a packed field runs past the field's end")
)

// The wire types of protobuf. Groups are only ever skipped.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireStart   = 3
	wireEnd     = 4
	wireFixed32 = 5
)

// uvarint reads the varint at b[i:] and returns the index behind it. Bits past the
// 64th are dropped, as the generated decoders do.
func uvarint(b []byte, i int) (uint64, int, error) {
	if i < len(b) && b[i] < 0x80 {
		return uint64(b[i]), i + 1, nil
	}
	return longUvarint(b, i)
}

// longUvarint is kept apart so that uvarint is small enough to be inlined.
//
//go:noinline
func longUvarint(b []byte, i int) (uint64, int, error) {
	var v uint64
	for shift := uint(0); shift < 64; shift += 7 {
		if i >= len(b) {
			return 0, 0, errTruncated
		}
		c := b[i]
		i++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, i, nil
		}
	}
	return 0, 0, errVarint
}

// fixed64 reads the double at b[i:].
func fixed64(b []byte, i int) (float64, int, error) {
	if len(b)-i < 8 {
		return 0, 0, errTruncated
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b[i:])), i + 8, nil
}

// chunk reads a length and that many bytes at b[i:]. The bytes are b's own.
func chunk(b []byte, i int) ([]byte, int, error) {
	n, i, err := uvarint(b, i)
	if err != nil {
		return nil, 0, err
	}
	if n > uint64(len(b)-i) {
		return nil, 0, errTruncated
	}
	end := i + int(n)
	return b[i:end:end], end, nil
}

// tag reads a field's number and wire type at b[i:].
func tag(b []byte, i int) (num int32, typ int, next int, err error) {
	t, next, err := uvarint(b, i)
	if err != nil {
		return 0, 0, 0, err
	}
	num, typ = int32(t>>3), int(t&7)
	if typ == wireEnd {
		return 0, 0, 0, errGroup
	}
	if num <= 0 {
		return 0, 0, 0, errTag
	}
	return num, typ, next, nil
}

// skip returns the index behind the field whose tag begins at b[i:].
func skip(b []byte, i int) (int, error) {
	for depth := 0; ; {
		t, next, err := uvarint(b, i)
		if err != nil {
			return 0, err
		}
		switch i = next; t & 7 {
		case wireVarint:
			_, i, err = uvarint(b, i)
		case wireFixed64:
			i += 8
		case wireBytes:
			_, i, err = chunk(b, i)
		case wireStart:
			depth++
		case wireEnd:
			if depth == 0 {
				return 0, errGroup
			}
			depth--
		case wireFixed32:
			i += 4
		default:
			return 0, errWireType
		}
		if err != nil {
			return 0, err
		}
		if i > len(b) {
			return 0, errTruncated
		}
		if depth == 0 {
			return i, nil
		}
	}
}

// zigzag32 and zigzag64 undo protobuf's sint encoding.
func zigzag32(v uint64) int32 { return int32(uint32(v)>>1) ^ -int32(v&1) }
func zigzag64(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
