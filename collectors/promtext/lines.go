package promtext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// textLine reads a line of the text format.
func (p *Parser) textLine() (Entry, error) {
	p.blanks(true)
	if p.i >= len(p.b) {
		return Nothing, io.EOF
	}
	if p.Strict && bytes.IndexByte(p.b[p.i:], '\n') < 0 {
		return Nothing, ErrCut
	}
	switch p.b[p.i] {
	case '\n':
		p.i++
		return Nothing, nil
	case '#':
		return p.textComment()
	}
	if err := p.series(true); err != nil {
		return Nothing, err
	}
	p.blanks(true)
	value := p.word(" \t\n{")
	p.blanks(true)
	at := p.word(" \t\n")
	p.blanks(true)
	rest, _ := p.cut()
	if len(rest) > 0 {
		return Nothing, errors.New("there is more behind the sample")
	}
	var err error
	if p.Value, err = float(value); err != nil {
		return Nothing, err
	}
	p.Exemplar, p.Timed = false, len(at) > 0
	if !p.Timed {
		return Sample, nil
	}
	// Digits only: no sign, as Prometheus has it.
	if at[0] == '-' || at[0] == '+' {
		return Nothing, fmt.Errorf("%q is no time", at)
	}
	if p.Time, err = strconv.ParseInt(unsafe.String(unsafe.SliceData(at), len(at)), 10, 64); err != nil {
		return Nothing, fmt.Errorf("%q is no time", string(at))
	}
	return Sample, nil
}

// word takes bytes up to one of those in end.
func (p *Parser) word(end string) []byte {
	from := p.i
	for p.i < len(p.b) && bytes.IndexByte(unsafe.Slice(unsafe.StringData(end), len(end)), p.b[p.i]) < 0 {
		p.i++
	}
	return p.b[from:p.i]
}

// textComment reads a line that begins with #. All but HELP and TYPE are for people.
func (p *Parser) textComment() (Entry, error) {
	p.i++
	if p.peek() != ' ' && p.peek() != '\t' {
		p.cut()
		return Nothing, nil
	}
	p.blanks(true)
	e := Nothing
	if rest := p.b[p.i:]; len(rest) > 4 && (rest[4] == ' ' || rest[4] == '\t') {
		switch string(rest[:4]) {
		case "HELP":
			e = HelpLine
		case "TYPE":
			e = TypeLine
		}
	}
	if e == Nothing {
		p.cut()
		return e, nil
	}
	p.i += len("HELP")
	p.blanks(true)
	if !p.metricName() {
		return Nothing, errors.New("no name of a metric")
	}
	p.Text, _ = p.cut()
	if len(bytes.TrimLeft(p.Text, " \t")) == 0 {
		p.Text = nil
	} else {
		p.Text = p.Text[1:] // the blank
	}
	return e, p.meta(e)
}

// metricName takes the name of a family.
func (p *Parser) metricName() bool {
	name := p.name(true)
	ok := name.from < name.to
	if !ok {
		name, ok = p.quoted(true)
	}
	p.Name = p.b[name.from:name.to]
	return ok
}

// meta checks what a line says of a family.
func (p *Parser) meta(e Entry) (err error) {
	switch e {
	case TypeLine:
		p.Type, err = typeOf(p.Text, p.format)
	case HelpLine:
		if !utf8.Valid(p.Text) {
			err = errors.New("the help is not UTF-8")
		}
	case UnitLine:
		n := len(p.Name) - len(p.Text)
		if len(p.Text) > 0 && (n < 1 || !bytes.HasSuffix(p.Name, p.Text) || p.Name[n-1] != '_') {
			err = fmt.Errorf("unit %q is not at the end of the name %q", p.Text, p.Name)
		}
	}
	return err
}

// series takes the name of a metric and its labels.
func (p *Parser) series(spaced bool) error {
	from := p.i
	p.spans = append(p.spans[:0], span{from, -1})
	name := p.name(true)
	if name.from < name.to {
		p.spans[0] = name
	} else if p.peek() != '{' {
		return errors.New("no name of a metric")
	}
	end := p.i
	p.blanks(spaced)
	if p.peek() == '{' {
		p.i++
		if err := p.labels(spaced, false); err != nil {
			return err
		}
		end = p.i
	} else if p.Strict && p.i == end {
		return errors.New("no blank behind the name")
	}
	p.Series = p.b[from:end]
	if p.spans[0].to < 0 {
		return errors.New("the metric has no name")
	}
	return p.names()
}

// names checks the names, which in quotes may be anything: Prometheus' parsers leave
// that to what comes behind them.
func (p *Parser) names() error {
	for i, s := range p.spans {
		if i > 0 && i%2 == 0 {
			continue // a value
		}
		if name := p.b[s.from:s.to]; len(name) == 0 || !utf8.Valid(name) {
			return errors.New("a name is empty or not UTF-8")
		}
	}
	return nil
}

// openMetricsLine reads a line of OpenMetrics.
func (p *Parser) openMetricsLine() (Entry, error) {
	if p.i >= len(p.b) {
		return Nothing, errNoEOF
	}
	if p.b[p.i] == '#' {
		return p.openMetricsComment()
	}
	if err := p.series(false); err != nil {
		return Nothing, err
	}
	var err error
	if p.Value, err = p.number(); err != nil {
		return Nothing, err
	}
	p.Timed, p.Exemplar = false, false
	if p.peek() == ' ' && !p.atExemplar() {
		if p.Time, err = p.seconds(); err != nil {
			return Nothing, err
		}
		p.Timed = true
	}
	if p.atExemplar() {
		p.Exemplar = true
		if err := p.exemplar(); err != nil {
			return Nothing, err
		}
	}
	return Sample, p.lineBreak()
}

// number takes a blank and a number.
func (p *Parser) number() (float64, error) {
	if p.peek() != ' ' {
		return 0, errors.New("no value")
	}
	p.i++
	return float(p.word(" \n"))
}

// seconds takes a blank and a time in seconds, which is given in ms.
func (p *Parser) seconds() (int64, error) {
	v, err := p.number()
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		err = errors.New("a time is no number")
	}
	return int64(v * 1000), err
}

func (p *Parser) atExemplar() bool { return bytes.HasPrefix(p.b[p.i:], []byte(" # {")) }

// exemplar takes an exemplar, of which nothing is told.
func (p *Parser) exemplar() error {
	p.i += len(" # {")
	if err := p.labels(false, true); err != nil {
		return err
	}
	if _, err := p.number(); err != nil {
		return err
	}
	if p.peek() != ' ' {
		return nil
	}
	_, err := p.seconds()
	return err
}

func (p *Parser) lineBreak() error {
	switch {
	case p.i >= len(p.b):
		return errNoEOF
	case p.b[p.i] != '\n':
		return errors.New("there is more behind the sample")
	}
	p.i++
	return nil
}

// openMetricsComment reads a line that begins with #: there are none for people.
func (p *Parser) openMetricsComment() (Entry, error) {
	rest := p.b[p.i:]
	if tail, ok := bytes.CutPrefix(rest, []byte("# EOF")); ok {
		if tail, _ = bytes.CutPrefix(tail, []byte{'\n'}); len(tail) > 0 {
			return Nothing, errors.New("there is more behind # EOF")
		}
		return Nothing, io.EOF
	}
	e := Nothing
	switch {
	case bytes.HasPrefix(rest, []byte("# HELP ")):
		e = HelpLine
	case bytes.HasPrefix(rest, []byte("# TYPE ")):
		e = TypeLine
	case bytes.HasPrefix(rest, []byte("# UNIT ")):
		e = UnitLine
	default:
		return Nothing, errors.New("a comment that OpenMetrics does not know")
	}
	p.i += len("# HELP ")
	if !p.metricName() || p.peek() != ' ' {
		return Nothing, errors.New("no name of a metric")
	}
	p.i++
	var whole bool
	if p.Text, whole = p.cut(); !whole {
		return Nothing, errNoEOF
	}
	return e, p.meta(e)
}
