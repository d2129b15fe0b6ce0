package scrape

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ticktier/ticktier/collectors"
)

// Target is one thing to scrape, as ParseTarget reads it.
type Target struct {
	URL      *url.URL
	Interval time.Duration
	Timeout  time.Duration
	// Labels are added to every series. job and instance are among them, unless they
	// are left to their defaults.
	Labels []collectors.Label
	// IgnoreTimes gives samples the time of the scrape where they have their own.
	IgnoreTimes bool
	Format      Format

	// Files with credentials, read for each scrape.
	TokenFile, Username, PasswordFile string
	// CAFile, where given, has the certificates that alone are trusted; Insecure
	// trusts any.
	CAFile   string
	Insecure bool
}

// Format says which form of metrics a target is asked for. It may answer in another.
type Format uint8

// The formats. Auto prefers protobuf, which has all there is, then OpenMetrics.
const (
	Auto Format = iota
	Protobuf
	OpenMetrics
	Text
)

var formats = map[string]Format{"auto": Auto, "protobuf": Protobuf, "openmetrics": OpenMetrics, "text": Text}

const (
	// MaxTargets is how many there may be: each has a bit in a row's Read mask.
	MaxTargets = 64

	defaultInterval = 15 * time.Second
	defaultTimeout  = 10 * time.Second
	minInterval     = 100 * time.Millisecond
)

// ParseTarget reads a URL and, behind semicolons, options: interval, timeout, labels,
// honor_timestamps, format, token_file, username, password_file, ca_file, insecure.
// A value that holds a semicolon, or a label's that holds a comma, stands in double
// quotes, as Go writes strings. Errors do not hold what may be secret.
func ParseTarget(s string) (Target, error) {
	parts, err := cutAt(s, ';')
	if err != nil {
		return Target{}, err
	}
	t := Target{Interval: defaultInterval}
	if t.URL, err = parseURL(parts[0]); err != nil {
		return t, err
	}
	given := map[string]bool{}
	for _, p := range parts[1:] {
		name, value, ok := strings.Cut(strings.TrimSpace(p), "=")
		switch {
		case name == "" && !ok:
			continue // a semicolon at the end
		case !ok:
			return t, fmt.Errorf("option %q has no value", name)
		case given[name]:
			return t, fmt.Errorf("option %s is given twice", name)
		}
		given[name] = true
		if name != "labels" {
			if value, err = unquote(value); err != nil {
				return t, fmt.Errorf("option %s: %w", name, err)
			}
		}
		if err := t.option(name, value); err != nil {
			return t, fmt.Errorf("option %s: %w", name, err)
		}
	}
	return t, t.check()
}

// option takes one option.
func (t *Target) option(name, value string) (err error) {
	switch name {
	case "interval":
		t.Interval, err = time.ParseDuration(value)
	case "timeout":
		t.Timeout, err = time.ParseDuration(value)
	case "labels":
		t.Labels, err = parseLabels(value)
	case "honor_timestamps", "honour_timestamps":
		var honour bool
		honour, err = strconv.ParseBool(value)
		t.IgnoreTimes = !honour
	case "format":
		var ok bool
		if t.Format, ok = formats[value]; !ok {
			err = fmt.Errorf("%q is not auto, protobuf, openmetrics or text", value)
		}
	case "token_file":
		t.TokenFile = value
	case "username":
		t.Username = value
	case "password_file":
		t.PasswordFile = value
	case "ca_file":
		t.CAFile = value
	case "insecure":
		t.Insecure, err = strconv.ParseBool(value)
	default:
		err = errors.New("there is none of that name")
	}
	return err
}

// check completes a target and says what is wrong with it.
func (t *Target) check() error {
	if t.Timeout == 0 {
		t.Timeout = min(defaultTimeout, t.Interval)
	}
	switch {
	case t.Interval < minInterval:
		return fmt.Errorf("interval %s is less than %s", t.Interval, minInterval)
	case t.Timeout <= 0 || t.Timeout > t.Interval:
		return fmt.Errorf("timeout %s is not more than 0 and at most the interval, %s", t.Timeout, t.Interval)
	case t.TokenFile != "" && t.Username != "":
		return errors.New("token_file and username do not go together")
	case (t.Username == "") != (t.PasswordFile == ""):
		return errors.New("username and password_file need each other")
	}
	for _, f := range []string{t.TokenFile, t.PasswordFile, t.CAFile} {
		if f == "" {
			continue
		}
		if _, err := os.ReadFile(f); err != nil {
			return err
		}
	}
	return nil
}

// parseURL reads the URL of a target.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	switch {
	case err != nil:
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err // the rest is the URL itself
		}
		return nil, fmt.Errorf("not a URL: %w", err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q is neither http nor https", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("no host in it")
	case u.User != nil:
		return nil, errors.New("a user stands in it: give username and password_file")
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/metrics"
	}
	return u, nil
}

// name is the URL without what may be secret in it.
func (t *Target) name() string {
	return (&url.URL{Scheme: t.URL.Scheme, Host: t.URL.Host, Path: t.URL.Path}).String()
}

// parseLabels reads NAME=VALUE with commas between.
func parseLabels(s string) ([]collectors.Label, error) {
	parts, err := cutAt(s, ',')
	if err != nil {
		return nil, err
	}
	var out []collectors.Label
	seen := map[string]bool{}
	for _, p := range parts {
		name, value, ok := strings.Cut(strings.TrimSpace(p), "=")
		if !ok || !isLabelName(name) {
			return nil, fmt.Errorf("%q is not NAME=VALUE", p)
		}
		if value, err = unquote(value); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		switch {
		case seen[name]:
			return nil, fmt.Errorf("%s is given twice", name)
		case !utf8.ValidString(value):
			return nil, fmt.Errorf("the value of %s is not UTF-8", name)
		}
		seen[name] = true
		out = append(out, collectors.Label{Name: name, Value: value})
	}
	return out, nil
}

// isLabelName refuses, with two underscores, what is reserved.
func isLabelName(s string) bool {
	for i, c := range []byte(s) {
		if c|0x20-'a' >= 26 && c != '_' && (c-'0' >= 10 || i == 0) {
			return false
		}
	}
	return s != "" && !strings.HasPrefix(s, "__")
}

// cutAt puts a text apart at a byte, but for where it stands in quotes.
func cutAt(s string, at byte) ([]string, error) {
	var out []string
	from, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case quoted && s[i] == '\\':
			i++
		case !quoted && s[i] == at:
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	if quoted {
		return nil, errors.New("quotes are not closed")
	}
	return append(out, s[from:]), nil
}

// unquote is a value without the quotes that it may stand in.
func unquote(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	v, err := strconv.Unquote(s)
	if err != nil {
		return "", errors.New("not a text in quotes")
	}
	return v, nil
}
