package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// textSample is one line of a text file.
type textSample struct {
	name   string
	labels []Label // sorted
	value  float64
}

// key tells a series from all others.
func (s *textSample) key() string {
	var b strings.Builder
	b.WriteString(s.name)
	for _, l := range s.labels {
		b.WriteString("\xff" + l.Name + "\xff" + l.Value)
	}
	return b.String()
}

// textFamily is what comments say of a metric.
type textFamily struct{ help, kind string }

// promText is what a file in Prometheus' text format 0.0.4 holds.
type promText struct {
	samples  []textSample
	families map[string]textFamily
}

var (
	errCut       = errors.New("the last line is not finished")
	errTimestamp = errors.New("samples with times are not supported")
	errDuplicate = errors.New("the series is there twice")
)

// parsePromText reads a whole file; an error means that nothing of it can be
// trusted. At most max samples are read.
func parsePromText(text []byte, max int) (*promText, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	p := &promText{families: map[string]textFamily{}}
	seen := map[string]bool{}
	for n := 1; len(text) > 0; n++ {
		line, rest, whole := cutLine(text)
		text = rest
		if !whole {
			return nil, fmt.Errorf("line %d: %w", n, errCut)
		}
		line = trim(line)
		if len(line) == 0 {
			continue
		}
		if line[0] == '#' {
			p.comment(line)
			continue
		}
		s, err := parseSample(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if key := s.key(); seen[key] {
			return nil, fmt.Errorf("line %d: %w", n, errDuplicate)
		} else {
			seen[key] = true
		}
		if len(p.samples) == max {
			return nil, fmt.Errorf("more than %d samples", max)
		}
		p.samples = append(p.samples, s)
	}
	return p, nil
}

// comment takes HELP and TYPE; all others are for people.
func (p *promText) comment(line []byte) {
	fields := strings.SplitN(string(line), " ", 4)
	if len(fields) < 3 || fields[0] != "#" {
		return
	}
	f := p.families[fields[2]]
	text := ""
	if len(fields) == 4 {
		text = fields[3]
	}
	switch fields[1] {
	case "HELP":
		f.help = strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(text)
	case "TYPE":
		f.kind = strings.TrimSpace(text)
	default:
		return
	}
	p.families[fields[2]] = f
}

// family finds what is known of a sample's metric. Histograms and summaries are
// taken apart: their buckets, sums and counts are counters, their quantiles gauges.
func (p *promText) family(name string) (t Type, help string) {
	if f, ok := p.families[name]; ok {
		switch f.kind {
		case "counter":
			return Counter, f.help
		case "gauge", "summary":
			return Gauge, f.help
		}
		return Untyped, f.help
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, ok := strings.CutSuffix(name, suffix)
		if f := p.families[base]; ok && (f.kind == "histogram" || f.kind == "summary") {
			return Counter, f.help
		}
	}
	return Untyped, ""
}

// parseSample reads a line like name{a="b",c="d"} 1.5.
func parseSample(line []byte) (s textSample, err error) {
	end := nameEnd(line, true)
	if end == 0 {
		return s, errors.New("no metric name")
	}
	s.name = string(line[:end])
	rest := trim(line[end:])
	if len(rest) > 0 && rest[0] == '{' {
		if s.labels, rest, err = parseLabels(rest[1:]); err != nil {
			return s, err
		}
	} else if len(rest) == len(line[end:]) {
		return s, errors.New("no blank behind the name")
	}
	start, valueEnd := field(rest, 0)
	if s.value, err = strconv.ParseFloat(string(rest[start:valueEnd]), 64); err != nil {
		return s, fmt.Errorf("value %q is no number", rest[start:valueEnd])
	}
	if len(trim(rest[valueEnd:])) > 0 {
		return s, errTimestamp
	}
	return s, nil
}

// parseLabels reads behind the opening brace and returns what follows the other.
func parseLabels(b []byte) (labels []Label, rest []byte, err error) {
	for {
		b = trim(b)
		if len(b) > 0 && b[0] == '}' {
			break
		}
		end := nameEnd(b, false)
		name := string(b[:end])
		b = trim(b[end:])
		if end == 0 || len(b) == 0 || b[0] != '=' {
			return nil, nil, errors.New("no label name")
		}
		b = trim(b[1:])
		var value string
		if value, b, err = parseQuoted(b); err != nil {
			return nil, nil, fmt.Errorf("label %s: %w", name, err)
		}
		if slices.ContainsFunc(labels, func(l Label) bool { return l.Name == name }) {
			return nil, nil, fmt.Errorf("label %s is there twice", name)
		}
		labels = append(labels, Label{name, value})
		b = trim(b)
		if len(b) > 0 && b[0] == ',' {
			b = b[1:]
		} else if len(b) == 0 || b[0] != '}' {
			return nil, nil, errors.New("labels do not end")
		}
	}
	labels = slices.DeleteFunc(labels, func(l Label) bool { return l.Value == "" })
	slices.SortFunc(labels, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return labels, b[1:], nil
}

// parseQuoted reads a value in quotes, in which \\, \" and \n are escaped.
func parseQuoted(b []byte) (value string, rest []byte, err error) {
	if len(b) == 0 || b[0] != '"' {
		return "", nil, errors.New("no value in quotes")
	}
	var v []byte
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return string(v), b[i+1:], nil
		case '\\':
			i++
			if i == len(b) {
				return "", nil, errors.New("the value does not end")
			}
			at := bytes.IndexByte([]byte(`\"n`), b[i])
			if at < 0 {
				return "", nil, fmt.Errorf("escape \\%c is not known", b[i])
			}
			v = append(v, "\\\"\n"[at])
		default:
			v = append(v, b[i])
		}
	}
	return "", nil, errors.New("the value does not end")
}

// nameEnd is where the name that b begins with ends; metrics may hold colons.
func nameEnd(b []byte, metric bool) int {
	for i, c := range b {
		switch {
		case c|0x20-'a' < 26, c == '_', c-'0' < 10 && i > 0, c == ':' && metric:
		default:
			return i
		}
	}
	return len(b)
}
