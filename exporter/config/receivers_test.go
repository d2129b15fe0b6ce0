package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReceivers(t *testing.T) {
	c := good(t)
	c.RemoteWriteMatch = []string{"up"}
	c.RemoteWriteURL = []string{"http://a/w", "https://u:p@b/w?x=1#rate=1&flat=15s&match[]=node_a&match[]=node_b&tls-server-name=n&order=strict&interval=1m&proxy-url=http://p:1"}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	got, err := c.Receivers()
	if err != nil {
		t.Fatal(err)
	}
	a, b := got[0], got[1]
	if diff := cmp.Diff([]string{"http://a/w", "https://u:p@b/w?x=1"}, []string{a.RemoteWriteURL[0], b.RemoteWriteURL[0]}); diff != "" {
		t.Error(diff)
	}
	if a.RemoteWriteRate != 0 || a.RemoteWriteFlat != 0 || !cmp.Equal(a.RemoteWriteMatch, []string{"up"}) || a.RemoteWriteInterval != 5*time.Second {
		t.Errorf("the first has what the second was given: %+v", a)
	}
	if b.RemoteWriteRate != 1 || b.RemoteWriteFlat != 15*time.Second || !cmp.Equal(b.RemoteWriteMatch, []string{"node_a", "node_b"}) ||
		b.RemoteWriteTLSServerName != "n" || b.RemoteWriteOrder != "strict" || b.RemoteWriteInterval != time.Minute || b.RemoteWriteProxyURL != "http://p:1" {
		t.Errorf("the second: %+v", b)
	}
}

func TestReceiversWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for options, want := range map[string]string{
		"nothing=1":      "nothing: is nothing that one receiver",
		"rate=x":         `rate: "x" is no value`,
		"rate=1&rate=2":  "rate is given 2 times",
		"rate=3":         "--remote-write.rate: 3 is not 0 nor a whole fraction",
		"header=secret":  "--remote-write.header: a value is not NAME=VALUE",
		"header=%zz":     "NAME=VALUE&NAME=VALUE",
		"order=x":        `--remote-write.order: "x"`,
		"protocol=3":     `--remote-write.protocol: "3"`,
		"tls-key-file=x": "one needs the other",
		"tls-ca-file=" + file + "&tls-insecure-skip-verify=true": "makes nothing of",
		"proxy-url=ftp://user:secret@h":                          "--remote-write.proxy-url: ftp://h does not begin",
		"proxy-url=http://user:secret@":                          "names no host",
		"proxy-url=http://user:secret@a b":                       "is not a URL",
		"match[]={":                                              "--remote-write.match[]",
		"backlog-share=7":                                        "--remote-write.backlog-share: 7",
	} {
		c := good(t)
		c.RemoteWriteURL = []string{"http://user:secret@h/p#" + options}
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", options, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: a secret in %v", options, err)
		}
	}
}
