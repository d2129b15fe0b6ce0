package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Label is an external label.
type Label struct{ Name, Value string }

// split puts apart what came in one value, as from the environment: at spaces and
// commas, where what follows begins an item of its own. Label values and URLs may
// hold both.
func split(values []string, begins func(string) bool) []string {
	var out []string
	for _, v := range values {
		item := ""
		for v = strings.Trim(v, " ,\t\n"); v != ""; {
			i := strings.IndexAny(v, " ,\t\n")
			if i < 0 {
				i = len(v)
			}
			rest := strings.TrimLeft(v[i:], " ,\t\n")
			if rest != "" && !begins(rest) {
				n := len(v) - len(rest)
				item += v[:n]
				v = rest
				continue
			}
			out = append(out, item+v[:i])
			item, v = "", rest
		}
	}
	return out
}

// splitWords puts apart what has neither spaces nor commas in it.
func splitWords(values []string) []string { return split(values, func(string) bool { return true }) }

func isURL(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// isPath tells whether a text can be nothing else than a path of its own: one may
// have spaces and commas in it.
func isPath(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../")
}

// labelStart is what the name of a label with its = looks like, if a wrong one
// too: that is to be reported, not taken for a part of the value before it.
var labelStart = regexp.MustCompile(`^[0-9A-Za-z_]+=`)

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// Labels are the external labels that were given, sorted by name. A label with an
// empty value is one that must not be sent.
func (c *Config) Labels() ([]Label, error) {
	var out []Label
	for _, s := range split(c.ExternalLabel, labelStart.MatchString) {
		name, value, ok := strings.Cut(s, "=")
		switch {
		case !ok:
			return nil, fmt.Errorf("--external-label: %q is not NAME=VALUE", s)
		case !labelName.MatchString(name):
			return nil, fmt.Errorf("--external-label: %q is no label name", name)
		case strings.HasPrefix(name, "__"):
			return nil, fmt.Errorf("--external-label: names like %q, with two underscores, are reserved", name)
		case !utf8.ValidString(value):
			return nil, fmt.Errorf("--external-label: the value of %s is not UTF-8", name)
		case slices.ContainsFunc(out, func(l Label) bool { return l.Name == name }):
			return nil, fmt.Errorf("--external-label: %s is given twice", name)
		}
		out = append(out, Label{name, value})
	}
	slices.SortFunc(out, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// LabelsOf are the labels to send from a host: those given, and for what was not,
// instance with the host's name and job with node.
func (c *Config) LabelsOf(host string) ([]Label, error) {
	given, err := c.Labels()
	if err != nil {
		return nil, err
	}
	out := given
	for _, d := range []Label{{"instance", host}, {"job", "node"}} {
		if !slices.ContainsFunc(given, func(l Label) bool { return l.Name == d.Name }) {
			out = append(out, d)
		}
	}
	out = slices.DeleteFunc(slices.Clone(out), func(l Label) bool { return l.Value == "" })
	slices.SortFunc(out, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// headerToken is what RFC 9110 lets a header's name be.
var headerToken = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

var headerStart = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+=")

// Header is a header to send.
type Header struct{ Name, Value string }

// Headers are the headers that were given for pushes.
func (c *Config) Headers() ([]Header, error) {
	var out []Header
	for _, s := range split(c.RemoteWriteHeader, headerStart.MatchString) {
		name, value, ok := strings.Cut(s, "=")
		switch {
		case !ok:
			// The text may be a secret.
			return nil, fmt.Errorf("--remote-write.header: a value is not NAME=VALUE")
		case !headerToken.MatchString(name):
			return nil, fmt.Errorf("--remote-write.header: %q is no header name", name)
		case reserved(name):
			return nil, fmt.Errorf("--remote-write.header: %s belongs to the protocol", name)
		case strings.ContainsAny(value, "\r\n\x00"):
			return nil, fmt.Errorf("--remote-write.header: the value of %s has a line break in it", name)
		}
		out = append(out, Header{name, value})
	}
	return out, nil
}

// reserved are the headers that the specification lets nobody set.
func reserved(name string) bool {
	switch strings.ToLower(name) {
	case "content-encoding", "content-type", "x-prometheus-remote-write-version", "user-agent", "content-length", "host":
		return true
	}
	return false
}
