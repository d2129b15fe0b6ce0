package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestOverrides(t *testing.T) {
	for text, want := range map[string]string{
		`{job="lab"}=30d@1h`:           "",
		`up=0@1h`:                      "",
		`{__name__=~"a=b|c@d"}=1y@1h`:  "",
		`up{a!="x",b=~"=1d@1h"}=2y@1h`: "",
		`{job="lab"}=13d@1h`:           "less than --retention.5m",
		`{job="lab"}=30d@5m`:           "only @1h",
		`{job="lab"}=30d@raw`:          "only @1h",
		`{job="lab"}=30d@2h`:           `no tier "2h"`,
		`{job="lab"}=30d`:              "form SELECTOR=TIME@1h",
		`=30d@1h`:                      "form SELECTOR=TIME@1h",
		`{job="lab"}=soon@1h`:          "is not a time",
		`{job="lab"=30d@1h`:            "read the selector",
		`{job=~""}=30d@1h`:             "",
		`{}=30d@1h`:                    "--retention.1h is for",
		`{job="lab"}=7d@1h`:            "7d is less than --retention.5m (14d)",
		`{a="x"}=20d@1h {b="y"}=1y@1h`: "separated by ;",
		`rate(up[5m])=30d@1h`:          "read the selector",
		``:                             "form SELECTOR=TIME@1h",
	} {
		c := good(t)
		c.RetentionMatch = []string{text}
		got, err := c.Overrides()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
		if (c.Validate() == nil) != (want == "") {
			t.Errorf("%s: Validate says %v", text, c.Validate())
		}
		if want == "" && len(got) != 1 {
			t.Errorf("%s: %d overrides", text, len(got))
		}
	}
	for text, want := range map[string]int{
		`{job="a"}=20d@1h;{job="c"}=20d@1h`:                        2,
		"\n{job=\"a\"}=20d@1h;\n up=20d@1h \n;\n":                  2,
		`{job=~"a;b\";c",x='\';',y=` + "`;\\`" + `}=1y@1h;up=0@1h`: 2,
	} {
		c := good(t)
		c.RetentionMatch = []string{text}
		if got, err := c.Overrides(); err != nil || len(got) != want {
			t.Errorf("%s: %d, %v, want %d", text, len(got), err, want)
		}
	}
	c := good(t)
	for range maxOverrides + 1 {
		c.RetentionMatch = append(c.RetentionMatch, "up=1y@1h")
	}
	if _, err := c.Overrides(); err == nil {
		t.Error("too many are not refused")
	}
	c.RetentionMatch = c.RetentionMatch[:1]
	if l := c.Longest(); l != 365*24*time.Hour {
		t.Errorf("longest is %s", l)
	}
}

func FuzzOverride(f *testing.F) {
	for _, s := range []string{`{job="lab"}=30d@1h`, `a=b=1y@1h`, `@`, `=`, `{a=~"("}=1d@1h`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, part := range splitOverrides(s) {
			if len(part) > len(s) {
				t.Errorf("%q has a part %q", s, part)
			}
		}
		if o, err := parseOverride(s); err == nil && (len(o.Matchers) == 0 || o.Age < 0) {
			t.Errorf("%q gives %+v", s, o)
		}
	})
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "1000000": 1e6, "20GB": 20e9, "512MiB": 512 << 20, "1.5 GiB": 3 << 29, "7B": 7, "2TB": 2e12,
	} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%s: %d, %v", text, b, err)
		}
		var again Bytes
		if err := again.UnmarshalText([]byte(fmt.Sprint(b))); err != nil || again != b {
			t.Errorf("%s is written as %s", text, b)
		}
	}
	for _, text := range []string{"", "GB", "-1GB", "1XB", "NaN", "Inf", "99999999TB"} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken as %d", text, b)
		}
	}
}
