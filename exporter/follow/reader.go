package follow

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
)

// maxLine is the longest object that is read: that of ten thousand series.
const maxLine = 16 << 20

// Reader reads objects one after the other, and knows the series named so far.
type Reader struct {
	s *bufio.Scanner
	// Line is the object that was read last, as JSON; valid until the next Next.
	Line []byte
	// Series are those named so far, by id.
	Series map[int]Series
}

// NewReader reads JSON lines, or server-sent events whose data are such.
func NewReader(r io.Reader) *Reader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &Reader{s: s, Series: map[int]Series{}}
}

// Next is the next object. The error is io.EOF at the end.
func (r *Reader) Next() (*Object, error) {
	for r.s.Scan() {
		line := r.s.Bytes()
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			line = data
		}
		if len(line) == 0 || line[0] != '{' {
			continue // of an event: its name, its id, a comment
		}
		o, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		for _, s := range o.Series {
			r.Series[s.ID] = s
		}
		r.Line = line
		return o, nil
	}
	if err := r.s.Err(); err != nil {
		return nil, fmt.Errorf("read a line: %w", err)
	}
	return nil, io.EOF
}

// Rates turns counters into rates per second, tick by tick. The zero value is ready.
type Rates struct {
	last map[int]point
}

type point struct {
	t int64
	v float64
}

// Of is the rate of a series since the tick before in which it was; false for the
// first one and after a reset.
func (r *Rates) Of(id int, t *Tick) (float64, bool) {
	v, ok := t.Values[id]
	if !ok || math.IsNaN(v) {
		return 0, false
	}
	if r.last == nil {
		r.last = map[int]point{}
	}
	before, ok := r.last[id]
	if ok && t.Time <= before.t {
		return 0, false
	}
	r.last[id] = point{t.Time, v}
	if !ok || v < before.v {
		return 0, false
	}
	return (v - before.v) * 1000 / float64(t.Time-before.t), true
}
