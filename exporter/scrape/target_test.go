package scrape

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/collectors"
)

func TestParseTarget(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret&file")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := ParseTarget(` http://127.0.0.1:9100/m?collect=a,b#interval=5s&timeout=2s&label=job=node&label=instance=a%3Bb,c=%26&label=empty=&honor_timestamps=false&format=text&token_file=` +
		url.QueryEscape(secret))
	if err != nil {
		t.Fatal(err)
	}
	want := []collectors.Label{{Name: "job", Value: "node"}, {Name: "instance", Value: "a;b,c=&"}, {Name: "empty"}}
	if d := cmp.Diff(want, x.Labels); d != "" {
		t.Error(d)
	}
	if x.URL.String() != "http://127.0.0.1:9100/m?collect=a,b" || x.Interval != 5*time.Second || x.Timeout != 2*time.Second || !x.IgnoreTimes || x.Format != Text || x.TokenFile != secret {
		t.Errorf("%+v", x)
	}
	if x.name() != "http://127.0.0.1:9100/m" {
		t.Error(x.name())
	}
	if x, err = ParseTarget("https://h"); err != nil || x.URL.String() != "https://h/metrics" || x.Interval != 15*time.Second || x.Timeout != 10*time.Second {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err = ParseTarget("http://h#interval=2s"); err != nil || x.Timeout != 2*time.Second {
		t.Errorf("%+v, %v", x, err)
	}
	for _, s := range []string{"", "h:9100", "ftp://h", "http://", "http://user:hidden@h", "http://h\x7f", "http://h#interval", "http://h#interval=x", "http://h#interval=1ms",
		"http://h#timeout=20s", "http://h#timeout=-1s", "http://h#no=1", "http://h#label=a", "http://h#label=1a=b", "http://h#label=__a=b", "http://h#label=a=1&label=a=2", "http://h#label=a=%zz",
		"http://h#format=x", "http://h#interval=1s&interval=2s", "http://h#token_file=/no/such", "http://h#username=a", "http://h#password_file=" + secret[:1],
		"http://h#honor_timestamps=x", "http://h#insecure=x", "http://h#label=a=%ff", "http://h#ca_file=/no/such"} {
		if x, err := ParseTarget(s); err == nil {
			t.Errorf("%q: no error, %+v", s, x)
		} else if strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestLabels(t *testing.T) {
	for _, c := range []struct{ target, instance, job string }{
		{"http://127.0.0.1:9100", "router:9100", "scrape"},
		{"http://localhost/x", "router:80", "scrape"},
		{"https://[::1]", "router:443", "scrape"},
		{"http://0.0.0.0:1", "router:1", "scrape"},
		{"http://192.0.2.1:9100#label=job=node", "192.0.2.1:9100", "node"},
		{"http://127.0.0.1:9100#label=instance=x&label=job=", "x", ""},
	} {
		x, err := ParseTarget(c.target)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, l := range x.labels("router") {
			got[l.Name] = l.Value
		}
		if got["instance"] != c.instance || got["job"] != c.job {
			t.Errorf("%s: %v", c.target, got)
		}
	}
}

// TestExported has what Prometheus' own test of conflicting labels has.
func TestExported(t *testing.T) {
	l := func(s ...string) (out []collectors.Label) {
		for i := 0; i < len(s); i += 2 {
			out = append(out, collectors.Label{Name: s[i], Value: s[i+1]})
		}
		return out
	}
	for _, c := range []struct{ own, target, want []collectors.Label }{
		{l("a", "1"), l("b", "2"), l("a", "1", "b", "2")},
		{l("foo", "1"), l("foo", "2"), l("exported_foo", "1", "foo", "2")},
		{l("exported_foo", "1", "foo", "2"), l("foo", "3"), l("exported_exported_foo", "2", "exported_foo", "1", "foo", "3")},
		{l("exported_foo", "1", "foo", "2"), l("exported_foo", "4", "foo", "3"), l("exported_exported_exported_foo", "1", "exported_exported_foo", "2", "exported_foo", "4", "foo", "3")},
		{l("exported_exported_foo", "1", "exported_foo", "2", "foo", "3"), l("exported_foo", "5", "foo", "4"), l("exported_exported_exported_exported_foo", "2", "exported_exported_exported_foo", "3", "exported_exported_foo", "1", "exported_foo", "5", "foo", "4")},
	} {
		if d := cmp.Diff(c.want, exported(c.own, c.target)); d != "" {
			t.Errorf("%v, %v:\n%s", c.own, c.target, d)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	f.Add("http://h:1/m#interval=5s&label=a=b%26&format=text")
	f.Fuzz(func(t *testing.T, s string) {
		x, err := ParseTarget(s)
		if err == nil && (x.URL.Host == "" || x.Interval < minInterval || x.Timeout > x.Interval) {
			t.Errorf("%+v", x)
		}
	})
}
