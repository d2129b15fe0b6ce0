package scrape

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
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
	// MaxAge is how long ago a sample's own time may be.
	MaxAge time.Duration
	Format Format

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
	// defaultMaxAge is what receivers take at most out of the box, and more.
	defaultMaxAge = 24 * time.Hour
)

// ParseTarget reads a URL and, behind a #, options as a URL's query has them:
// interval, timeout, label (NAME=VALUE, any number of times), honor_timestamps, max_age, format,
// token_file, username, password_file, ca_file, insecure. A % in a value is written
// %25, a & %26, a + %2B. Errors do not hold what may be secret.
func ParseTarget(s string) (Target, error) {
	t := Target{Interval: defaultInterval, MaxAge: defaultMaxAge}
	plain, options, _ := strings.Cut(strings.TrimSpace(s), "#")
	var err error
	if t.URL, err = parseURL(plain); err != nil {
		return t, err
	}
	given, err := url.ParseQuery(options)
	if err != nil {
		return t, errors.New("what is behind # is not NAME=VALUE&NAME=VALUE: a % is to be written %25, a & %26")
	}
	for name := range given {
		if name != "label" && len(given[name]) > 1 {
			return t, fmt.Errorf("option %s is given twice", name)
		}
		for _, value := range given[name] {
			if err := t.option(name, value); err != nil {
				return t, fmt.Errorf("option %s: %w", name, err)
			}
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
		if t.Timeout, err = time.ParseDuration(value); err == nil && t.Timeout <= 0 {
			err = errors.New("is not more than 0")
		}
	case "label":
		err = t.label(value)
	case "honor_timestamps":
		var honour bool
		honour, err = strconv.ParseBool(value)
		t.IgnoreTimes = !honour
	case "max_age":
		if t.MaxAge, err = time.ParseDuration(value); err == nil && t.MaxAge <= 0 {
			err = errors.New("is not more than 0")
		}
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
	u, err := url.Parse(s)
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
	if u.Path == "" {
		u.Path = "/metrics"
	}
	return u, nil
}

// name is the URL without what may be secret in it.
func (t *Target) name() string {
	return (&url.URL{Scheme: t.URL.Scheme, Host: t.URL.Host, Path: t.URL.Path}).String()
}

// label takes NAME=VALUE.
func (t *Target) label(s string) error {
	name, value, ok := strings.Cut(s, "=")
	switch {
	case !ok || !isLabelName(name):
		return fmt.Errorf("%q is not NAME=VALUE", s)
	case !utf8.ValidString(value):
		return fmt.Errorf("the value of %s is not UTF-8", name)
	case slices.ContainsFunc(t.Labels, func(l collectors.Label) bool { return l.Name == name }):
		return fmt.Errorf("%s is given twice", name)
	}
	t.Labels = append(t.Labels, collectors.Label{Name: name, Value: value})
	return nil
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
