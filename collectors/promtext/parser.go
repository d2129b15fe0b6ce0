package promtext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Format is a text form of metrics.
type Format uint8

// The formats.
const (
	Text        Format = iota // Prometheus' text format 0.0.4
	OpenMetrics               // OpenMetrics 1.0
)

// Type is what a metric family is said to be.
type Type uint8

// The types. Unknown is "untyped" in the text format.
const (
	Unknown Type = iota
	Counter
	Gauge
	Histogram
	GaugeHistogram
	Summary
	Info
	StateSet
)

var typeNames = [...]string{Unknown: "unknown", Counter: "counter", Gauge: "gauge", Histogram: "histogram",
	GaugeHistogram: "gaugehistogram", Summary: "summary", Info: "info", StateSet: "stateset"}

// Entry is what a line holds.
type Entry uint8

// The entries. The text format has no units.
const (
	Nothing Entry = iota
	TypeLine
	HelpLine
	UnitLine
	Sample
)

// Parser goes through one exposition. Reset begins one, Next goes on. Its fields tell
// of the line that Next returned; slices are of the exposition, and are valid as long
// as that is. Not safe for concurrent use.
type Parser struct {
	// Strict refuses what Prometheus' lenient parser of the text format lets pass: an
	// end without a line break, labels without a comma between them, a backslash
	// that begins no escape, a value right behind a name, names in quotes.
	Strict bool

	// Of a line about a family: its name, without quotes but with escapes, and the
	// text, with escapes. Type is that of the last TypeLine, whatever it was about.
	Name, Text []byte
	Type       Type

	// Of a sample: the bytes of its name and labels, which tell a series from all
	// others but for the way in which they may be written; its value; its time in
	// Unix ms, where Timed says that it has one; and whether it has an exemplar.
	Series   []byte
	Value    float64
	Time     int64
	Timed    bool
	Exemplar bool

	format Format
	b      []byte
	i      int
	// spans are pairs of offsets in b: of the metric's name, and then of each label's
	// name and value, all without their quotes.
	spans []span
}

type span struct{ from, to int }

// canonicalNaN is the NaN that stands for all: one of them marks the end of a series.
var canonicalNaN = math.Float64frombits(0x7ff8000000000001)

// errors of whole expositions.
var (
	ErrCut   = errors.New("the last line is not finished")
	errNoEOF = errors.New("it does not end with # EOF")
	errLabel = errors.New("labels are not as they should be")
)

// Reset begins an exposition, which must not change until it is done with.
func (p *Parser) Reset(b []byte, f Format) {
	*p = Parser{Strict: p.Strict, format: f, b: b, spans: p.spans[:0]}
}

// Next reads the next line that holds something. io.EOF is the end of an exposition
// that is good as a whole. Any other error is final: nothing of it can be trusted.
func (p *Parser) Next() (Entry, error) {
	for {
		var e Entry
		var err error
		start := p.i
		if p.format == OpenMetrics {
			e, err = p.openMetricsLine()
		} else {
			e, err = p.textLine()
		}
		switch {
		case err == io.EOF:
			return Nothing, err
		case err != nil:
			n := 1 + bytes.Count(p.b[:min(start, len(p.b))], []byte{'\n'})
			return Nothing, fmt.Errorf("line %d: %w", n, err)
		case e != Nothing:
			return e, nil
		}
	}
}

// cut takes the rest of the line and the line break behind it.
func (p *Parser) cut() (line []byte, whole bool) {
	rest := p.b[p.i:]
	n := bytes.IndexByte(rest, '\n')
	if n < 0 {
		p.i = len(p.b)
		return rest, false
	}
	p.i += n + 1
	return rest[:n], true
}

// name takes a name; those of metrics may hold colons. It is empty where there is none.
func (p *Parser) name(metric bool) span {
	from := p.i
	for p.i < len(p.b) {
		c := p.b[p.i]
		if c|0x20-'a' >= 26 && c != '_' && (c-'0' >= 10 || p.i == from) && (c != ':' || !metric) {
			break
		}
		p.i++
	}
	return span{from, p.i}
}

// quoted takes a text in quotes and is what is between them. Line breaks may be in
// it where lines is set.
func (p *Parser) quoted(lines bool) (span, bool) {
	if p.peek() != '"' {
		return span{}, false
	}
	for i := p.i + 1; i < len(p.b); i++ {
		switch p.b[i] {
		case '"':
			s := span{p.i + 1, i}
			p.i = i + 1
			return s, true
		case '\n':
			if !lines {
				return span{}, false
			}
		case '\\':
			i++
			if i == len(p.b) || p.b[i] == '\n' || p.Strict && !escapes(p.b[i]) {
				return span{}, false
			}
		}
	}
	return span{}, false
}

func escapes(c byte) bool { return c == '\\' || c == '"' || c == 'n' }

// peek is the next byte; 0 is the end, and a byte that is nowhere allowed where peek
// is used.
func (p *Parser) peek() byte {
	if p.i < len(p.b) {
		return p.b[p.i]
	}
	return 0
}

// labels takes what is between braces, the first of which is taken already. spaced
// lets blanks stand between, and commas be left out.
func (p *Parser) labels(spaced, exemplar bool) error {
	for {
		p.blanks(spaced)
		if p.peek() == '}' {
			p.i++
			return nil
		}
		name, inQuotes := p.name(false), false
		if name.from == name.to {
			if name, inQuotes = p.quoted(!exemplar); !inQuotes || p.Strict {
				return errLabel
			}
		}
		p.blanks(spaced)
		c := p.peek()
		if inQuotes && !exemplar && (c == ',' || c == '}') {
			if p.spans[0].to >= 0 {
				return errors.New("the metric has two names")
			}
			p.spans[0] = name
			if c == ',' {
				p.i++
			}
			continue
		}
		if c != '=' {
			return errLabel
		}
		p.i++
		p.blanks(spaced)
		value, ok := p.quoted(p.format == Text)
		if !ok {
			return errLabel
		}
		if !utf8.Valid(p.b[value.from:value.to]) {
			return errors.New("a label's value is not UTF-8")
		}
		if !exemplar {
			p.spans = append(p.spans, name, value)
		}
		p.blanks(spaced)
		switch c := p.peek(); {
		case c == ',':
			p.i++
		case c != '}' && (!spaced || p.Strict):
			return errLabel
		}
	}
}

// blanks takes blanks and tabs.
func (p *Parser) blanks(any bool) {
	for any && (p.peek() == ' ' || p.peek() == '\t') {
		p.i++
	}
}

// float reads a number as Prometheus does: what Go takes, but for the forms that it
// did not take always.
func float(b []byte) (float64, error) {
	if bytes.ContainsAny(b, "pP_") {
		return 0, fmt.Errorf("%q is no number", b)
	}
	v, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(b), len(b)), 64)
	if err != nil {
		// The error holds the text, which is the caller's.
		return 0, fmt.Errorf("%q is no number", strings.Clone(string(b)))
	}
	if math.IsNaN(v) {
		v = canonicalNaN
	}
	return v, nil
}

// typeOf is the type of that name.
func typeOf(b []byte, f Format) (Type, error) {
	for i, name := range typeNames {
		t := Type(i)
		if f == Text {
			switch t {
			case Unknown:
				name = "untyped"
			case GaugeHistogram, Info, StateSet:
				continue
			}
		}
		if string(b) == name {
			return t, nil
		}
	}
	return Unknown, fmt.Errorf("type %q is not known", b)
}
