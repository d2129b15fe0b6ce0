package send

import (
	"slices"
	"strings"

	"github.com/ticktier/ticktier/collectors"
)

// metricName is the label that carries a series' name.
const metricName = "__name__"

// appendLabels appends the labels that a series is sent with: its name, its own,
// and the external ones it has no label of the same name for, sorted by name as
// bytes. Empty values are left out, and what is not UTF-8 is made so: receivers
// reject both.
func appendLabels(dst []collectors.Label, s *collectors.Series, external []collectors.Label) []collectors.Label {
	start := len(dst)
	add := func(name, value string) {
		if value == "" {
			return
		}
		for _, l := range dst[start:] {
			if l.Name == name {
				return
			}
		}
		dst = append(dst, collectors.Label{Name: name, Value: valid(value)})
	}
	add(metricName, s.Name)
	for _, l := range s.Labels {
		add(l.Name, l.Value)
	}
	for _, l := range external {
		add(l.Name, l.Value)
	}
	slices.SortFunc(dst[start:], func(a, b collectors.Label) int { return strings.Compare(a.Name, b.Name) })
	return dst
}

// valid is s with what is not UTF-8 replaced.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
