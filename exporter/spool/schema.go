package spool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/flate"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// maxSchema bounds the series of one record before compression.
const maxSchema = 64 << 20

// start is when a counter started, where that is known.
type start struct {
	mono  int64
	known bool
}

// appendSchema appends the payload of a schema record: series, by slot from slot
// first on.
func appendSchema(dst []byte, first int, series []collectors.Series, startOf func(*collectors.Series) (int64, bool)) []byte {
	metrics := map[*collectors.Metric]uint64{}
	var order []*collectors.Metric
	for i := range series {
		if _, ok := metrics[series[i].Metric]; !ok {
			metrics[series[i].Metric] = uint64(len(order))
			order = append(order, series[i].Metric)
		}
	}
	body := binary.AppendUvarint(nil, uint64(len(order)))
	for _, m := range order {
		body = appendString(appendString(appendString(body, m.Name), m.Help), m.Unit)
		body = append(body, byte(m.Type), byte(m.Kind))
		body = binary.LittleEndian.AppendUint64(body, math.Float64bits(m.Mul))
		body = binary.LittleEndian.AppendUint64(body, math.Float64bits(m.Div))
	}
	for i := range series {
		s := &series[i]
		body = binary.AppendUvarint(body, metrics[s.Metric])
		mono, ok := int64(0), false
		if startOf != nil {
			mono, ok = startOf(s)
		}
		body = append(body, s.Source)
		if ok {
			body = binary.AppendVarint(append(body, 1), mono)
		} else {
			body = append(body, 0)
		}
		body = binary.AppendUvarint(body, uint64(len(s.Labels)))
		for _, l := range s.Labels {
			body = appendString(appendString(body, l.Name), l.Value)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(first))
	dst = binary.AppendUvarint(dst, uint64(len(series)))
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	w := appender{dst}
	_ = flate.StatelessDeflate(&w, body, true, nil) // the appender never fails
	return w.b
}

type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// schema is the series of a segment's slots, as far as it was read.
type schema struct {
	series []collectors.Series
	starts []start
}

// add takes the payload of a schema record.
func (s *schema) add(payload []byte) error {
	c := cursorOf(payload)
	first, count, size := c.uvarint(), c.uvarint(), c.uvarint()
	switch {
	case c.bad || first != uint64(len(s.series)) || count > frame.MaxSlots || first+count > frame.MaxSlots:
		return fmt.Errorf("%w: %d series from slot %d, %d are known", errBad, count, first, len(s.series))
	case size > maxSchema || size > 1100*uint64(len(c.b)):
		// Deflate makes nothing smaller than that.
		return fmt.Errorf("%w: %d bytes of series in %d", errBad, size, len(c.b))
	}
	body := make([]byte, size)
	z := flate.NewReader(bytes.NewReader(c.b))
	if _, err := io.ReadFull(z, body); err != nil {
		return fmt.Errorf("%w: series: %w", errBad, err)
	}
	return s.parse(cursorOf(body), count)
}

func (s *schema) parse(c *cursor, count uint64) error {
	var metrics []*collectors.Metric
	for n := c.uvarint(); n > 0 && !c.bad; n-- {
		m := &collectors.Metric{Name: c.string(), Help: c.string(), Unit: c.string(),
			Type: collectors.Type(c.byte()), Kind: collectors.Kind(c.byte())}
		m.Mul, m.Div = math.Float64frombits(c.uint64()), math.Float64frombits(c.uint64())
		metrics = append(metrics, m)
	}
	for ; count > 0 && !c.bad; count-- {
		i := c.uvarint()
		if c.bad || i >= uint64(len(metrics)) {
			return fmt.Errorf("%w: metric %d of %d", errBad, i, len(metrics))
		}
		x := collectors.Series{Metric: metrics[i], Source: c.byte()}
		var st start
		if c.byte() == 1 {
			st = start{mono: c.varint(), known: true}
		}
		for n := c.uvarint(); n > 0 && !c.bad; n-- {
			x.Labels = append(x.Labels, collectors.Label{Name: c.string(), Value: c.string()})
		}
		if x.Source > 63 {
			return fmt.Errorf("%w: source %d", errBad, x.Source)
		}
		s.series, s.starts = append(s.series, x), append(s.starts, st)
	}
	if c.bad || len(c.b) > 0 {
		return fmt.Errorf("%w: series", errBad)
	}
	return nil
}

// cursor reads bytes that may be hostile: past their end it reads zeros and is bad.
type cursor struct {
	b   []byte
	bad bool
}

func cursorOf(b []byte) *cursor { return &cursor{b: b} }

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	p := c.b[:n]
	c.b = c.b[n:]
	return p
}

func (c *cursor) byte() byte {
	if p := c.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if p := c.take(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.b, c.bad = nil, true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) varint() int64 {
	u := c.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (c *cursor) string() string { return string(c.take(c.uvarint())) }
