package send

import "math/bits"

// appendString appends a length-delimited field, number 1 to 15.
func appendString(dst []byte, field byte, s string) []byte {
	dst = append(dst, field<<3|2)
	dst = appendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// stringLen is how many bytes appendString appends.
func stringLen(s string) int { return 1 + uvarintLen(uint64(len(s))) + len(s) }

// appendUvarint appends a base-128 varint.
func appendUvarint(dst []byte, v uint64) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// uvarintLen is how many bytes appendUvarint appends.
func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
