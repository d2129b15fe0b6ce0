package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// The forms of a float column in the extension of an aggregate chunk.
const (
	formXOR     = 0 // a Prometheus XOR chunk, its times 0, 1, 2, …
	formDecimal = 1 // form − 1 is the number of decimal places, up to maxPlaces
	maxPlaces   = 6
)

var (
	errInts   = fmt.Errorf("%w: column of integers", errAggr)
	errFloats = fmt.Errorf("%w: column of floats", errAggr)
)

// maxScaled bounds scaled values: larger integers have no exact float.
const maxScaled = 1 << 53

var pow10 = [maxPlaces + 1]float64{1, 10, 100, 1e3, 1e4, 1e5, 1e6}

// appendInts appends integers as the zigzag varints of their differences, a run of
// zeros as one zero and its length.
func appendInts(dst []byte, vs []int64) []byte {
	prev := int64(0)
	for i := 0; i < len(vs); {
		d := vs[i] - prev
		prev = vs[i]
		dst = binary.AppendVarint(dst, d)
		i++
		if d != 0 {
			continue
		}
		run := i
		for run < len(vs) && vs[run] == prev {
			run++
		}
		dst = binary.AppendUvarint(dst, uint64(run-i))
		i = run
	}
	return dst
}

// cutInts reads n integers into dst, which it reuses, and returns what follows.
func cutInts(dst []int64, b []byte, n int) ([]int64, []byte, error) {
	dst = dst[:0]
	prev := int64(0)
	for len(dst) < n {
		d, k := binary.Varint(b)
		if k < 1 {
			return dst, nil, errInts
		}
		b = b[k:]
		prev += d
		dst = append(dst, prev)
		if d != 0 {
			continue
		}
		run, k := binary.Uvarint(b)
		if k < 1 || run > uint64(n-len(dst)) {
			return dst, nil, errInts
		}
		b = b[k:]
		for range run {
			dst = append(dst, prev)
		}
	}
	return dst, b, nil
}

// skipInts returns what follows n integers.
func skipInts(b []byte, n int) ([]byte, error) {
	for n > 0 {
		d, k := binary.Varint(b)
		if k < 1 {
			return nil, errInts
		}
		b = b[k:]
		if n--; d != 0 {
			continue
		}
		run, k := binary.Uvarint(b)
		if k < 1 || run > uint64(n) {
			return nil, errInts
		}
		b, n = b[k:], n-int(run)
	}
	return b, nil
}

// places is the least number of decimal places with which every value can be
// written and read back bit by bit; ok is false where there is none.
func places(vs []float64) (p int, ok bool) {
	for _, v := range vs {
		for ; p <= maxPlaces; p++ {
			s := math.Round(v * pow10[p])
			if math.Abs(s) < maxScaled && math.Float64bits(s/pow10[p]) == math.Float64bits(v) {
				break
			}
		}
		if p > maxPlaces {
			return 0, false
		}
	}
	return p, true
}

// scale is v as an integer of p decimal places. A base that does not fit is 0:
// reader and writer agree on it.
func scale(v float64, p int) int64 {
	s := math.Round(v * pow10[p])
	if !(math.Abs(s) < maxScaled) {
		return 0
	}
	return int64(s)
}

// appendFloats appends a column of values that are expected to be close to base,
// which the reader has too: base(i) may use the values before i.
func appendFloats(dst []byte, vs []float64, base func(i int) float64) ([]byte, error) {
	if p, ok := places(vs); ok {
		dst = append(dst, byte(formDecimal+p))
		prev := int64(0)
		ints := make([]int64, len(vs))
		for i, v := range vs {
			// appendInts codes differences; what is coded here is the distance to base.
			prev += scale(v, p) - scale(base(i), p)
			ints[i] = prev
		}
		return appendInts(dst, ints), nil
	}
	c := chunkenc.NewXORChunk()
	app, err := c.Appender()
	if err != nil {
		return nil, err
	}
	for i, v := range vs {
		app.Append(0, int64(i), v)
	}
	dst = append(dst, formXOR)
	dst = binary.AppendUvarint(dst, uint64(len(c.Bytes())))
	return append(dst, c.Bytes()...), nil
}

// floatColumn reads one column in order.
type floatColumn struct {
	places int
	ints   []int64 // distances, added up
	i      int
	it     chunkenc.Iterator // where the form is XOR
}

// cutFloats prepares to read n values; rest is what follows the column.
func cutFloats(b []byte, n int, scratch []int64) (c floatColumn, rest []byte, err error) {
	if len(b) == 0 || b[0] > formDecimal+maxPlaces {
		return c, nil, errFloats
	}
	form := int(b[0])
	b = b[1:]
	if form >= formDecimal {
		c.places = form - formDecimal
		c.ints, rest, err = cutInts(scratch, b, n)
		return c, rest, err
	}
	l, k := binary.Uvarint(b)
	if k < 1 || l > uint64(len(b)-k) || l < 2 {
		return c, nil, errFloats
	}
	chk, err := chunkenc.FromData(chunkenc.EncXOR, slices.Clip(b[k:k+int(l)]))
	if err != nil {
		return c, nil, err
	}
	if chk.NumSamples() != n {
		return c, nil, errFloats
	}
	c.it = chk.Iterator(nil)
	return c, b[k+int(l):], nil
}

// skipFloats returns what follows a column of n values.
func skipFloats(b []byte, n int) ([]byte, error) {
	if len(b) == 0 || b[0] > formDecimal+maxPlaces {
		return nil, errFloats
	}
	form := int(b[0])
	b = b[1:]
	if form >= formDecimal {
		return skipInts(b, n)
	}
	l, k := binary.Uvarint(b)
	if k < 1 || l > uint64(len(b)-k) || l < 2 {
		return nil, errFloats
	}
	return b[k+int(l):], nil
}

// next is the next value; base is what appendFloats' base gave for it.
func (c *floatColumn) next(base float64) (float64, error) {
	if c.it != nil {
		if c.it.Next() != chunkenc.ValFloat {
			return 0, fmt.Errorf("%w: column of floats: %w", errAggr, c.it.Err())
		}
		_, v := c.it.At()
		return v, nil
	}
	d := c.ints[c.i]
	if c.i > 0 {
		d -= c.ints[c.i-1]
	}
	c.i++
	return float64(scale(base, c.places)+d) / pow10[c.places], nil
}
