package collectors

import (
	"bytes"
	"math"
	"strings"
)

// found is what a look for a number came to.
type found uint8

const (
	none found = iota // nothing left on the line
	bad               // a field that is no number, or one too large for 64 bits
	good
)

// cutLine cuts the first line off text. whole tells that a newline ended it: the
// kernel ends every line with one, so a line without may have been cut short.
func cutLine(text []byte) (line, rest []byte, whole bool) {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, nil, false
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// field returns where the next field at or after i begins and ends; start is
// len(b) when there is none.
func field(b []byte, i int) (start, end int) {
	for i < len(b) && blank(b[i]) {
		i++
	}
	start = i
	for i < len(b) && !blank(b[i]) {
		i++
	}
	return start, i
}

// number reads the unsigned decimal field at or after i. next is where it ended,
// or where the field began that is no number.
func number(b []byte, i int) (v uint64, next int, f found) {
	for i < len(b) && blank(b[i]) {
		i++
	}
	start := i
	for i < len(b) {
		d := b[i] - '0'
		if d > 9 {
			break
		}
		if i-start >= 19 && !fits(v, d) {
			return 0, start, bad
		}
		v = v*10 + uint64(d)
		i++
	}
	if i == start {
		if i == len(b) {
			return 0, i, none
		}
		return 0, start, bad
	}
	if i < len(b) && !blank(b[i]) {
		return 0, start, bad
	}
	return v, i, good
}

// fits tells whether another decimal digit fits behind v.
func fits(v uint64, d byte) bool {
	return v < math.MaxUint64/10 || v == math.MaxUint64/10 && d <= math.MaxUint64%10
}

// hex reads the hexadecimal field at or after i, as number does.
func hex(b []byte, i int) (v uint64, next int, f found) {
	for i < len(b) && blank(b[i]) {
		i++
	}
	start := i
	for i < len(b) && !blank(b[i]) {
		c := b[i]
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c-'a' <= 5:
			c -= 'a' - 10
		case c-'A' <= 5:
			c -= 'A' - 10
		default:
			return 0, start, bad
		}
		if v > math.MaxUint64>>4 {
			return 0, start, bad
		}
		v = v<<4 | uint64(c)
		i++
	}
	if i == start {
		return 0, i, none
	}
	return v, i, good
}

// hexes reads up to len(dst) hexadecimal fields of a line, and returns how many and why
// it stopped: none, bad, or good where dst is full.
func hexes(b []byte, dst []uint64) (n int, f found) {
	for at := 0; n < len(dst); n++ {
		if dst[n], at, f = hex(b, at); f != good {
			return n, f
		}
	}
	return n, good
}

// numbers reads up to len(dst) unsigned decimal fields from i on and returns how
// many it read, where it stopped and why.
func numbers(b []byte, i int, dst []uint64) (n, next int, f found) {
	for n < len(dst) {
		v, j, f := number(b, i)
		if f != good {
			return n, j, f
		}
		dst[n] = v
		i = j
		n++
	}
	return n, i, good
}

// decimal reads a field like 1.25 as hundredths; further digits are dropped.
func decimal(b []byte, i int) (hundredths int64, next int, f found) {
	start, end := field(b, i)
	if start == end {
		return 0, end, none
	}
	whole, frac, dotted := bytes.Cut(b[start:end], []byte{'.'})
	v, n, f := number(whole, 0)
	if f != good || n != len(whole) || v > math.MaxInt64/100-1 {
		return 0, start, bad
	}
	hundredths = int64(v) * 100
	if !dotted {
		return hundredths, end, good
	}
	if len(frac) == 0 {
		return 0, start, bad
	}
	unit := int64(10)
	for _, c := range frac {
		if c-'0' > 9 {
			return 0, start, bad
		}
		hundredths += int64(c-'0') * unit
		unit /= 10
	}
	return hundredths, end, good
}

// trim is bytes.TrimSpace for the blanks of kernel files.
func trim(b []byte) []byte {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && (blank(b[len(b)-1]) || b[len(b)-1] == '\n') {
		b = b[:len(b)-1]
	}
	return b
}

// allDigits tells that b is a decimal number and nothing else.
func allDigits(b []byte) bool {
	for _, c := range b {
		if c-'0' > 9 {
			return false
		}
	}
	return len(b) > 0
}

// label makes a label value of kernel text: names may hold any byte, labels only
// UTF-8.
func label(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// metricName makes a part of a metric name of kernel text.
func metricName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s)
}
