package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Receivers are configurations of one receiver each, in the order of the URLs: that
// of all, with what is said behind a # in the receiver's URL in place of it.
// RemoteWriteURL is then the one URL, without that part.
func (c *Config) Receivers() ([]*Config, error) {
	var out []*Config
	for _, s := range c.RemoteWriteURL {
		r := *c
		plain, options, _ := strings.Cut(s, "#")
		r.RemoteWriteURL = []string{plain}
		if err := r.override(options); err != nil {
			return nil, fmt.Errorf("--remote-write.url: %s: %w", redact(plain), err)
		}
		out = append(out, &r)
	}
	return out, nil
}

// override sets what options say, which are written as the query of a URL is: names
// of flags without remote-write. before. A value may be a secret, so errors hold none.
func (c *Config) override(options string) error {
	given, err := url.ParseQuery(options)
	if err != nil {
		return fmt.Errorf("what is behind # is not NAME=VALUE&NAME=VALUE: a %% is to be written %%25, a & %%26")
	}
	names := make([]string, 0, len(given))
	for name := range given {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := given[name]
		if list := c.list(name); list != nil {
			if slices.ContainsFunc(values, func(v string) bool { return strings.Trim(v, " ,\t\n") == "" }) {
				return fmt.Errorf("%s is empty", name)
			}
			*list = values
			continue
		}
		if len(values) != 1 {
			return fmt.Errorf("%s is given %d times", name, len(values))
		}
		if err := c.set(name, values[0]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// list is the list that one receiver may have to itself by a name.
func (c *Config) list(name string) *[]string {
	switch name {
	case "header":
		return &c.RemoteWriteHeader
	case "match[]":
		return &c.RemoteWriteMatch
	case "drop[]":
		return &c.RemoteWriteDrop
	}
	return nil
}

// text is the text that one receiver may have to itself by a name.
func (c *Config) text(name string) *string {
	switch name {
	case "protocol":
		return &c.RemoteWriteProtocol
	case "order":
		return &c.RemoteWriteOrder
	case "bearer-token-file":
		return &c.RemoteWriteTokenFile
	case "username":
		return &c.RemoteWriteUsername
	case "password-file":
		return &c.RemoteWritePasswordFile
	case "tls-ca-file":
		return &c.RemoteWriteTLSCAFile
	case "tls-cert-file":
		return &c.RemoteWriteTLSCertFile
	case "tls-key-file":
		return &c.RemoteWriteTLSKeyFile
	case "tls-server-name":
		return &c.RemoteWriteTLSServerName
	case "proxy-url":
		return &c.RemoteWriteProxyURL
	}
	return nil
}

func (c *Config) set(name, value string) (err error) {
	if p := c.text(name); p != nil {
		*p = value
		return nil
	}
	var e error
	switch name {
	case "interval":
		c.RemoteWriteInterval, e = time.ParseDuration(value)
	case "timeout":
		c.RemoteWriteTimeout, e = time.ParseDuration(value)
	case "flat":
		c.RemoteWriteFlat, e = time.ParseDuration(value)
	case "rate":
		c.RemoteWriteRate, e = strconv.Atoi(value)
	case "backlog-share":
		c.RemoteWriteBacklogShare, e = strconv.ParseFloat(value, 64)
	case "bursts":
		c.RemoteWriteBursts, e = strconv.ParseBool(value)
	case "tls-insecure-skip-verify":
		c.RemoteWriteTLSInsecure, e = strconv.ParseBool(value)
	default:
		return fmt.Errorf("is nothing that one receiver can have to itself")
	}
	if e != nil {
		return fmt.Errorf("%q is no value for it", value)
	}
	return nil
}
