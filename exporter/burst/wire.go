package burst

import (
	"encoding/binary"
	"math"
)

// emptyRun is how many empty buckets are cheaper in a run of buckets than between two.
const emptyRun = 2

// AppendSpans appends the runs of native buckets in use, as BucketSpan messages of both
// io.prometheus.client and io.prometheus.write.v2 in a field of that number.
func (s *Series) AppendSpans(dst []byte, field int) []byte {
	end := 0 // key after the last run, relative to what spans count from
	for i := 0; i < len(s.Native); {
		if s.Native[i] == 0 {
			i++
			continue
		}
		j, empty := i, 0
		for k := i; k < len(s.Native) && empty <= emptyRun; k++ {
			if empty++; s.Native[k] > 0 {
				j, empty = k+1, 0
			}
		}
		dst = appendTag(dst, field, 2)
		at := len(dst)
		dst = binary.AppendVarint(appendTag(dst, 1, 0), int64(s.First+i-end)) // Go's varint is zigzag
		dst = binary.AppendUvarint(appendTag(dst, 2, 0), uint64(j-i))
		dst = closeMessage(dst, at)
		end, i = s.First+j, j
	}
	return dst
}

// AppendDeltas appends each bucket's difference from the one before, for the runs that
// AppendSpans makes, in a field of that number. packed is how proto3 has them.
func (s *Series) AppendDeltas(dst []byte, field int, packed bool) []byte {
	at := 0
	if packed {
		if len(s.Native) == 0 {
			return dst
		}
		dst = appendTag(dst, field, 2)
		at = len(dst)
	}
	add := func(d int64) {
		if !packed {
			dst = appendTag(dst, field, 0)
		}
		dst = binary.AppendVarint(dst, d)
	}
	var last uint64
	empty := emptyRun + 1 // those before the first run are in none
	for _, n := range s.Native {
		if n == 0 {
			empty++
			continue
		}
		if empty <= emptyRun {
			for ; empty > 0; empty-- {
				add(-int64(last))
				last = 0
			}
		}
		add(int64(n - last))
		last, empty = n, 0
	}
	if packed {
		dst = closeMessage(dst, at)
	}
	return dst
}

func appendTag(dst []byte, field, wire int) []byte {
	return binary.AppendUvarint(dst, uint64(field<<3|wire))
}

func appendUint(dst []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(appendTag(dst, field, 0), v)
}

func appendDouble(dst []byte, field int, v float64) []byte {
	return binary.LittleEndian.AppendUint64(appendTag(dst, field, 1), math.Float64bits(v))
}

func appendText(dst []byte, field int, s string) []byte {
	dst = binary.AppendUvarint(appendTag(dst, field, 2), uint64(len(s)))
	return append(dst, s...)
}

// closeMessage puts the length of what was appended from at on before it.
func closeMessage(dst []byte, at int) []byte {
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(dst)-at))
	dst = append(dst, size[:n]...)
	copy(dst[at+n:], dst[at:])
	copy(dst[at:], size[:n])
	return dst
}
