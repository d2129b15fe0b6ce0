package config

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// good is a configuration without fault.
func good(t *testing.T) *Config {
	return &Config{
		Listen: ":9747", Rate: 10, PathProcfs: t.TempDir(), PathSysfs: "/sys", PathRootfs: "/",
		RemoteWriteURL:      []string{"http://localhost:9748/api/v1/write"},
		RemoteWriteInterval: 5 * time.Second, RemoteWriteTimeout: 30 * time.Second,
		RemoteWriteBacklogShare: 0.5, RingMaxBytes: 4 << 20, ShutdownTimeout: 5 * time.Second,
	}
}

func TestValidate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	for name, c := range map[string]struct {
		change func(*Config)
		want   []string // in the error; none means that there is no error
	}{
		"good":              {func(*Config) {}, nil},
		"no listener":       {func(c *Config) { c.Listen = "" }, nil},
		"nothing to do":     {func(c *Config) { c.Listen, c.RemoteWriteURL = "", []string{""} }, []string{"--listen: is empty", "nobody"}},
		"no port":           {func(c *Config) { c.Listen = "localhost" }, []string{`--listen: "localhost" is no address`}},
		"rate 0":            {func(c *Config) { c.Rate = 0 }, []string{"--rate: 0 is not between 1 and 1000"}},
		"rate 1001":         {func(c *Config) { c.Rate = 1001 }, []string{"--rate: 1001 is not between 1 and 1000"}},
		"floor":             {func(c *Config) { c.FloorHz = 10 }, nil},
		"floor over rate":   {func(c *Config) { c.FloorHz = 11 }, []string{"--floor-hz: 11 is not between 0 and the rate, 10"}},
		"share over 1":      {func(c *Config) { c.RateProtect = 1.5 }, []string{"--rate.protect: 1.5 is not between 0 and 1"}},
		"share of NaN":      {func(c *Config) { c.RateProtect = math.NaN() }, []string{"--rate.protect: NaN"}},
		"floor below 0":     {func(c *Config) { c.FloorHz = -1 }, []string{"--floor-hz: -1"}},
		"no procfs":         {func(c *Config) { c.PathProcfs = missing }, []string{"--path.procfs: ", missing, "no such file or directory"}},
		"procfs is a file":  {func(c *Config) { c.PathProcfs = file }, []string{"--path.procfs: ", file, "is no directory"}},
		"procfs empty":      {func(c *Config) { c.PathProcfs = "" }, []string{"--path.procfs: is empty"}},
		"chosen sysfs":      {func(c *Config) { c.PathSysfs = missing }, []string{"--path.sysfs: ", missing}},
		"scheme":            {func(c *Config) { c.RemoteWriteURL = []string{"ftp://u:secret@h/p"} }, []string{"--remote-write.url: ftp://h/p does not begin with http:// or https://"}},
		"no scheme":         {func(c *Config) { c.RemoteWriteURL = []string{"localhost:9748"} }, []string{"--remote-write.url: localhost:9748 does not begin"}},
		"no host":           {func(c *Config) { c.RemoteWriteURL = []string{"http://:80/"} }, []string{"--remote-write.url: http://:80/ names no host"}},
		"bad URL":           {func(c *Config) { c.RemoteWriteURL = []string{"http://u:secret@a b/"} }, []string{"--remote-write.url: not a URL: "}},
		"URL twice":         {func(c *Config) { c.RemoteWriteURL = []string{"http://u:secret@h/", "http://u:secret@h/"} }, []string{"--remote-write.url: http://h/ is given twice"}},
		"interval":          {func(c *Config) { c.RemoteWriteInterval = 0 }, []string{"--remote-write.interval: 0s is less than 10ms"}},
		"timeout":           {func(c *Config) { c.RemoteWriteTimeout = -1 }, []string{"--remote-write.timeout: -1ns is less than 10ms"}},
		"shutdown":          {func(c *Config) { c.ShutdownTimeout = -time.Second }, []string{"--shutdown.timeout: -1s is negative"}},
		"ring":              {func(c *Config) { c.RingMaxBytes = 1 }, []string{"--ring.max-bytes: 1 is not between 64KiB and 64GiB"}},
		"ring duration":     {func(c *Config) { c.RingDuration = -time.Second }, []string{"--ring.duration: -1s is negative"}},
		"label no value":    {func(c *Config) { c.ExternalLabel = []string{"site"} }, []string{`--external-label: "site" is not NAME=VALUE`}},
		"label name":        {func(c *Config) { c.ExternalLabel = []string{"1x=y"} }, []string{`--external-label: "1x" is no label name`}},
		"label reserved":    {func(c *Config) { c.ExternalLabel = []string{"__name__=y"} }, []string{"--external-label", "reserved"}},
		"label twice":       {func(c *Config) { c.ExternalLabel = []string{"a=b a=c"} }, []string{"--external-label: a is given twice"}},
		"label not UTF-8":   {func(c *Config) { c.ExternalLabel = []string{"a=\xff"} }, []string{"--external-label: the value of a is not UTF-8"}},
		"header reserved":   {func(c *Config) { c.RemoteWriteHeader = []string{"content-type=secret"} }, []string{"--remote-write.header: content-type belongs to the protocol"}},
		"header no value":   {func(c *Config) { c.RemoteWriteHeader = []string{"secret"} }, []string{"--remote-write.header: a value is not NAME=VALUE"}},
		"header name":       {func(c *Config) { c.RemoteWriteHeader = []string{"a b:c=secret"} }, []string{"--remote-write.header"}},
		"header line break": {func(c *Config) { c.RemoteWriteHeader = []string{"a=b\rsecret"} }, []string{"--remote-write.header: the value of a has a line break"}},
		"token and user": {func(c *Config) {
			c.RemoteWriteTokenFile, c.RemoteWriteUsername, c.RemoteWritePasswordFile = file, "u", file
		}, []string{"--remote-write.bearer-token-file: not together"}},
		"no token file":    {func(c *Config) { c.RemoteWriteTokenFile = missing }, []string{"--remote-write.bearer-token-file: ", missing}},
		"user alone":       {func(c *Config) { c.RemoteWriteUsername = "u" }, []string{"--remote-write.username: needs --remote-write.password-file"}},
		"password alone":   {func(c *Config) { c.RemoteWritePasswordFile = file }, []string{"--remote-write.password-file: needs --remote-write.username"}},
		"textfile":         {func(c *Config) { c.TextfileDirectory = []string{"/a*, /b"} }, nil},
		"textfile pattern": {func(c *Config) { c.TextfileDirectory = []string{"/a /b["} }, []string{`--collector.textfile.directory: "/b[": `}},
		"all at once":      {func(c *Config) { c.Rate, c.RingMaxBytes = 0, 1 }, []string{"--rate", "--ring.max-bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good(t)
			c.change(cfg)
			err := cfg.Validate()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("got %v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("a secret is told: %v", err)
			}
		})
	}
}

func TestLists(t *testing.T) {
	for _, c := range []struct {
		name   string
		given  []string
		begins func(string) bool
		want   []string
	}{
		{"flags", []string{"http://a/", "https://b/?x=1,2"}, isURL, []string{"http://a/", "https://b/?x=1,2"}},
		{"spaces", []string{"http://a/  https://b/"}, isURL, []string{"http://a/", "https://b/"}},
		{"commas", []string{" http://a/,https://b/, "}, isURL, []string{"http://a/", "https://b/"}},
		{"nothing", []string{"", " "}, isURL, nil},
		{"not a URL", []string{"a b"}, isURL, []string{"a b"}},
		{"labels", []string{"a=b,c=d e=f"}, labelStart.MatchString, []string{"a=b", "c=d", "e=f"}},
		{"values with both", []string{"site=North Hall, 2nd floor,b=c"}, labelStart.MatchString, []string{"site=North Hall, 2nd floor", "b=c"}},
		{"line breaks", []string{"a=b\nc=d\n"}, labelStart.MatchString, []string{"a=b", "c=d"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, split(c.given, c.begins)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLabelsOf(t *testing.T) {
	for name, c := range map[string]struct {
		given []string
		want  []Label
	}{
		"defaults":  {nil, []Label{{"instance", "router"}, {"job", "node"}}},
		"own":       {[]string{"job=edge", "Zone=3"}, []Label{{"Zone", "3"}, {"instance", "router"}, {"job", "edge"}}},
		"left out":  {[]string{"job=", "instance="}, nil},
		"with an =": {[]string{"instance=a=b", "job="}, []Label{{"instance", "a=b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&Config{ExternalLabel: c.given}).LabelsOf("router")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got[:len(got):len(got)]); diff != "" && len(got)+len(c.want) > 0 {
				t.Error(diff)
			}
		})
	}
}

func TestBytes(t *testing.T) {
	for s, want := range map[string]Bytes{
		"0": 0, "65536": 64 << 10, "64KiB": 64 << 10, "4MiB": 4 << 20, "4 mib": 4 << 20, "1GiB": 1 << 30,
		"": -1, "MiB": -1, "4MB": -1, "4M": -1, "-1": -1, "1.5MiB": -1, "9223372036854775807KiB": -1, "99999999999999999999": -1,
	} {
		var b Bytes
		err := b.UnmarshalText([]byte(s))
		if (err != nil) != (want == -1) || err == nil && b != want {
			t.Errorf("%q is %d, %v, want %d", s, b, err, want)
		}
	}
}

func FuzzBytes(f *testing.F) {
	for _, s := range []string{"4MiB", "65536", "1 GiB", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var a, b Bytes
		if a.UnmarshalText([]byte(s)) != nil {
			return
		}
		if err := b.UnmarshalText([]byte(a.String())); err != nil || a != b || a < 0 {
			t.Errorf("%q is %d, that is %s, that is %d, %v", s, a, a, b, err)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("a=b,c=d e=f")
	f.Add(" , x")
	f.Fuzz(func(t *testing.T, s string) {
		for _, item := range split([]string{s}, labelStart.MatchString) {
			if item == "" || !strings.Contains(s, item) {
				t.Errorf("%q has no %q", s, item)
			}
		}
	})
}
