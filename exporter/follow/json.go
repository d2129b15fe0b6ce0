package follow

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// parser reads one line of JSON. encoding/json does it with a decoder for every type
// there is, for 64 KiB of a program that has to be small (docs/decisions/0008).
type parser struct {
	b []byte
	i int
}

// maxDepth bounds what is passed over.
const maxDepth = 32

var errJSON = errors.New("not JSON")

func (p *parser) bad(what string) error {
	return fmt.Errorf("%w: %s expected at byte %d", errJSON, what, p.i)
}

// peek is the next byte that is not blank; 0 at the end.
func (p *parser) peek() byte {
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (p *parser) take(c byte) bool {
	if p.peek() != c || p.i >= len(p.b) {
		return false
	}
	p.i++
	return true
}

// list reads what stands between two brackets, with commas between; item reads one.
func (p *parser) list(from, to byte, item func() error) error {
	if !p.take(from) {
		return p.bad(strconv.QuoteRune(rune(from)))
	}
	for first := true; !p.take(to); first = false {
		if !first && !p.take(',') {
			return p.bad("a comma")
		}
		if err := item(); err != nil {
			return err
		}
	}
	return nil
}

// object reads an object; value reads the value of a key.
func (p *parser) object(value func(key string) error) error {
	return p.list('{', '}', func() error {
		key, err := p.text()
		if err != nil {
			return err
		}
		if !p.take(':') {
			return p.bad("a colon")
		}
		return value(key)
	})
}

// text reads a string.
func (p *parser) text() (string, error) {
	if !p.take('"') {
		return "", p.bad("a string")
	}
	start := p.i
	for ; p.i < len(p.b) && p.b[p.i] != '\\'; p.i++ {
		if p.b[p.i] == '"' { // as nearly all are, without an escape
			p.i++
			return string(p.b[start : p.i-1]), nil
		}
	}
	out := append([]byte(nil), p.b[start:p.i]...)
	for p.i < len(p.b) {
		c := p.b[p.i]
		p.i++
		switch {
		case c == '"':
			return string(out), nil
		case c != '\\':
			out = append(out, c)
		default:
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		}
	}
	return "", p.bad("the end of a string")
}

// escape reads what follows a backslash.
func (p *parser) escape() (rune, error) {
	if p.i >= len(p.b) {
		return 0, p.bad("an escape")
	}
	c := p.b[p.i]
	p.i++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, err := p.hex()
		if err != nil || !utf16.IsSurrogate(r) {
			return r, err
		}
		if p.i+1 < len(p.b) && p.b[p.i] == '\\' && p.b[p.i+1] == 'u' {
			p.i += 2
			low, err := p.hex()
			return utf16.DecodeRune(r, low), err
		}
		return utf8.RuneError, nil
	}
	return 0, p.bad("an escape")
}

func (p *parser) hex() (rune, error) {
	if p.i+4 > len(p.b) {
		return 0, p.bad("four digits")
	}
	n, err := strconv.ParseUint(string(p.b[p.i:p.i+4]), 16, 16)
	if err != nil {
		return 0, p.bad("four digits")
	}
	p.i += 4
	return rune(n), nil
}

// token is a number, true, false or null, as it stands.
func (p *parser) token() string {
	p.peek()
	start := p.i
	for ; p.i < len(p.b); p.i++ {
		switch p.b[p.i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n', ':', '"', '{', '[':
			return string(p.b[start:p.i])
		}
	}
	return string(p.b[start:p.i])
}

// number reads a number, or a string with what JSON has no number for.
func (p *parser) number() (float64, error) {
	var s string
	if p.peek() == '"' {
		var err error
		if s, err = p.text(); err != nil {
			return 0, err
		}
	} else {
		s = p.token()
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, p.bad("a number")
	}
	return v, nil
}

func (p *parser) integer() (int64, error) {
	n, err := strconv.ParseInt(p.token(), 10, 64)
	if err != nil {
		return 0, p.bad("a whole number")
	}
	return n, nil
}

// skip passes over a value of any kind.
func (p *parser) skip(depth int) error {
	if depth > maxDepth {
		return p.bad("less depth")
	}
	switch p.peek() {
	case '{':
		return p.object(func(string) error { return p.skip(depth + 1) })
	case '[':
		return p.list('[', ']', func() error { return p.skip(depth + 1) })
	case '"':
		_, err := p.text()
		return err
	}
	if p.token() == "" {
		return p.bad("a value")
	}
	return nil
}
