package selector

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ticktier/ticktier/collectors"
)

// Selector is a series selector as PromQL writes it, without a range: a series is
// selected when every matcher agrees.
type Selector []matcher

// matcher is one condition on a label; __name__ is the metric's name.
type matcher struct {
	name, value string
	re          *regexp.Regexp // of =~ and !~
	not         bool
}

// Parse reads a selector: a name, matchers in braces, or both.
func Parse(s string) (Selector, error) {
	p := &scanner{s: s}
	var sel Selector
	p.space()
	if name := p.take(isNameStart, isName); name != "" {
		sel = append(sel, matcher{name: "__name__", value: name})
	}
	p.space()
	if p.eat("{") {
		ms, err := p.matchers(len(sel) > 0)
		if err != nil {
			return nil, fmt.Errorf("%q at byte %d: %w", s, p.pos, err)
		}
		sel = append(sel, ms...)
	}
	if p.space(); p.pos < len(s) || len(sel) == 0 {
		return nil, fmt.Errorf("%q is not a series selector", s)
	}
	return sel, nil
}

// Selects reports whether a series is selected.
func (sel Selector) Selects(s *collectors.Series) bool {
	for i := range sel {
		if !sel[i].matches(value(s, sel[i].name)) {
			return false
		}
	}
	return true
}

func (m *matcher) matches(v string) bool {
	if m.re != nil {
		return m.re.MatchString(v) != m.not
	}
	return (v == m.value) != m.not
}

// value is a label of a series; one that it has not is empty.
func value(s *collectors.Series, name string) string {
	if name == "__name__" {
		return s.Name
	}
	for _, l := range s.Labels {
		if l.Name == name {
			return strings.ToValidUTF8(l.Value, "\uFFFD")
		}
	}
	return ""
}

// scanner reads a selector from left to right.
type scanner struct {
	s   string
	pos int
}

func (p *scanner) matchers(named bool) ([]matcher, error) {
	var ms []matcher
	for {
		p.space()
		if p.eat("}") {
			return ms, nil
		}
		m, err := p.matcher()
		if err != nil {
			return nil, err
		}
		if m.name == "__name__" && !m.not && m.re == nil && named {
			return nil, errors.New("the metric's name is there twice")
		}
		ms = append(ms, m)
		p.space()
		if p.eat("}") {
			return ms, nil
		}
		if !p.eat(",") {
			return nil, errors.New("want , or }")
		}
	}
}

func (p *scanner) matcher() (m matcher, err error) {
	if m.name = p.take(isNameStart, isLabel); m.name == "" {
		return m, errors.New("want a label's name")
	}
	p.space()
	re := false
	switch {
	case p.eat("=~"):
		re = true
	case p.eat("!~"):
		re, m.not = true, true
	case p.eat("!="):
		m.not = true
	case p.eat("="):
	default:
		return m, errors.New("want =, !=, =~ or !~")
	}
	p.space()
	if m.value, err = p.quoted(); err != nil {
		return m, err
	}
	if re {
		if m.re, err = regexp.Compile("^(?s:" + m.value + ")$"); err != nil {
			return m, fmt.Errorf("regular expression: %w", err)
		}
	}
	return m, nil
}

// quoted reads a string in any of PromQL's three quotes.
func (p *scanner) quoted() (string, error) {
	if p.pos == len(p.s) || !strings.ContainsRune("\"'`", rune(p.s[p.pos])) {
		return "", errors.New("want a quoted string")
	}
	start, quote := p.pos, p.s[p.pos]
	for p.pos++; p.pos < len(p.s) && p.s[p.pos] != quote; p.pos++ {
		if p.s[p.pos] == '\\' && quote != '`' {
			p.pos++
		}
	}
	if p.pos >= len(p.s) {
		p.pos = len(p.s)
		return "", errors.New("a string without end")
	}
	p.pos++
	if quote == '`' {
		return p.s[start+1 : p.pos-1], nil
	}
	return unquote(p.s[start+1:p.pos-1], quote)
}

// unquote resolves the escapes, which are Go's, of the inside of a string.
func unquote(s string, quote byte) (string, error) {
	var b strings.Builder
	for s != "" {
		if s[0] == '\n' {
			return "", errors.New("a string over two lines")
		}
		r, multibyte, rest, err := strconv.UnquoteChar(s, quote)
		if err != nil {
			return "", errors.New("a string with a wrong escape")
		}
		if multibyte || r < 0x80 {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
		s = rest
	}
	return b.String(), nil
}

func (p *scanner) space() {
	for p.pos < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *scanner) eat(token string) bool {
	ok := strings.HasPrefix(p.s[p.pos:], token)
	if ok {
		p.pos += len(token)
	}
	return ok
}

func (p *scanner) take(first, more func(byte) bool) string {
	start := p.pos
	for p.pos < len(p.s) && (p.pos == start && first(p.s[p.pos]) || p.pos > start && more(p.s[p.pos])) {
		p.pos++
	}
	return p.s[start:p.pos]
}

func isNameStart(c byte) bool { return c == ':' || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isName(c byte) bool      { return isNameStart(c) || c >= '0' && c <= '9' }
func isLabel(c byte) bool     { return isName(c) && c != ':' }
