package config

import (
	"strings"
	"testing"

	"github.com/ticktier/ticktier/collectors"
)

func TestSelected(t *testing.T) {
	series := func(name, cpu string) *collectors.Series {
		return &collectors.Series{Metric: &collectors.Metric{Name: name}, Labels: []collectors.Label{{Name: "cpu", Value: cpu}}}
	}
	for name, c := range map[string]struct {
		match, drop []string
		want        string // of a{cpu="0"}, a{cpu="1, b"}, b{cpu="0"}
	}{
		"match":            {[]string{"a"}, nil, "110"},
		"drop":             {nil, []string{`{cpu="0"}`}, "010"},
		"both":             {[]string{"a", "b"}, []string{`a{cpu="0"}`}, "011"},
		"one variable":     {[]string{`a{cpu="0"} b`}, nil, "101"},
		"commas":           {[]string{`a{cpu="0"},b{cpu=~"0|1"}`}, nil, "101"},
		"a space in quote": {[]string{`a{cpu="1, b"}`}, nil, "010"},
	} {
		cfg := Config{RemoteWriteMatch: c.match, RemoteWriteDrop: c.drop}
		sel, err := cfg.Selected()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := ""
		for _, s := range []*collectors.Series{series("a", "0"), series("a", "1, b"), series("b", "0")} {
			got += map[bool]string{true: "1", false: "0"}[sel(s)]
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if sel, err := (&Config{}).Selected(); sel != nil || err != nil {
		t.Errorf("without selectors: %v", err)
	}
	for _, bad := range []string{"a{", "a b{c=d}", "1x"} {
		cfg := Config{RemoteWriteDrop: []string{bad}}
		if _, err := cfg.Selected(); err == nil || !strings.Contains(err.Error(), "--remote-write.drop[]") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestDeliveryFaults(t *testing.T) {
	good := Config{Rate: 100, RemoteWriteBacklogShare: 0.5, RemoteWriteRate: 10, SpoolDir: "/x", SpoolMaxBytes: MinSpoolBytes}
	for flag, change := range map[string]func(*Config){
		"":                             func(*Config) {},
		"--remote-write.backlog-share": func(c *Config) { c.RemoteWriteBacklogShare = 1.5 },
		"--remote-write.flat":          func(c *Config) { c.RemoteWriteFlat = -1 },
		"--remote-write.rate":          func(c *Config) { c.RemoteWriteRate = 30 },
		"--remote-write.match[]":       func(c *Config) { c.RemoteWriteMatch = []string{"{"} },
		"--spool.max-bytes":            func(c *Config) { c.SpoolMaxBytes = 1 },
		"--spool.max-age":              func(c *Config) { c.SpoolMaxAge = -1 },
	} {
		c := good
		change(&c)
		var faults []string
		bad := func(format string, a ...any) {
			text := format
			if err, ok := a[0].(error); ok && format == "%w" {
				text = err.Error()
			}
			faults = append(faults, text)
		}
		c.checkDelivery(bad)
		c.checkSpool(bad)
		if flag == "" && len(faults) > 0 || flag != "" && (len(faults) != 1 || !strings.HasPrefix(faults[0], flag)) {
			t.Errorf("%s: %v", flag, faults)
		}
	}
}
