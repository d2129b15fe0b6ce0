package promtext

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Label is one label of a series.
type Label struct{ Name, Value string }

// Labels are the name of the sample's metric and its labels, appended to dst, sorted,
// without those whose value is empty, which are no labels. Bounds of buckets and
// quantiles are written as OpenMetrics does.
func (p *Parser) Labels(dst []Label) (name string, labels []Label, err error) {
	name = unescape(p.b[p.spans[0].from:p.spans[0].to])
	from := len(dst)
	for i := 1; i+1 < len(p.spans); i += 2 {
		l := Label{unescape(p.b[p.spans[i].from:p.spans[i].to]), unescape(p.b[p.spans[i+1].from:p.spans[i+1].to])}
		if slices.ContainsFunc(dst[from:], func(o Label) bool { return o.Name == l.Name }) {
			return "", nil, fmt.Errorf("label %q is there twice", l.Name)
		}
		if l.Name == "__name__" {
			return "", nil, errors.New("the metric has two names")
		}
		if p.Type == Histogram && l.Name == "le" || p.Type == Summary && l.Name == "quantile" {
			if v, err := strconv.ParseFloat(l.Value, 64); err == nil {
				l.Value = Float(v)
			}
		}
		dst = append(dst, l)
	}
	dst = append(dst[:from], slices.DeleteFunc(dst[from:], func(l Label) bool { return l.Value == "" })...)
	slices.SortFunc(dst[from:], func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return name, dst, nil
}

// Float writes a number as OpenMetrics does in labels.
func Float(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(s, "e.") {
		s += ".0"
	}
	return s
}

// unescape is a text without its escapes. A backslash that begins none is itself.
func unescape(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b)
	}
	return string(appendUnescaped(nil, b, true))
}

// Help is the text of a HelpLine without its escapes.
func (p *Parser) Help() string {
	if bytes.IndexByte(p.Text, '\\') < 0 {
		return string(p.Text)
	}
	return string(appendUnescaped(nil, p.Text, p.format == OpenMetrics))
}

func appendUnescaped(dst, b []byte, quotes bool) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+1 < len(b) {
			switch c := b[i+1]; {
			case c == 'n':
				dst = append(dst, '\n')
				i++
				continue
			case c == '\\', c == '"' && quotes:
				dst = append(dst, c)
				i++
				continue
			}
		}
		dst = append(dst, b[i])
	}
	return dst
}

// suffixes are what a family's name has behind it in the names of its samples.
var suffixes = map[Type][]string{
	Counter:        {"_total", "_created"},
	Histogram:      {"_bucket", "_count", "_sum", "_created"},
	GaugeHistogram: {"_bucket", "_gcount", "_gsum", "_count", "_sum"},
	Summary:        {"", "_count", "_sum", "_created"},
	Info:           {"_info"},
	Gauge:          {""}, Unknown: {""}, StateSet: {""},
}

// Of reports whether a sample of that name is of a family. The text format's counters
// have the family's own name.
func Of(name, family string, t Type) bool {
	rest, ok := strings.CutPrefix(name, family)
	return ok && (slices.Contains(suffixes[t], rest) || t == Counter && rest == "" || t == Info && rest == "")
}
