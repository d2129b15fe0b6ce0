package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func good(t *testing.T) Config {
	return Config{
		Listen: ":0", DataDir: t.TempDir(),
		RetentionRaw: Duration(48 * time.Hour), Retention5m: Duration(14 * 24 * time.Hour), Retention1h: Duration(90 * 24 * time.Hour),
		OutOfOrderWindow: Duration(24 * time.Hour), FoldInterval: Duration(time.Minute), FoldLag: Duration(30 * time.Second),
		QueryLookback: Duration(5 * time.Minute), QueryTimeout: Duration(2 * time.Minute), QueryMaxSamples: 1, QueryConcurrency: 1, Limits: Limits{DeviceLabels: 128, DeviceAhead: Duration(time.Minute)}, QueryMaxSeries: 1, QueryMaxBytes: 1,
		DevicesDownAfter: Duration(time.Minute), DevicesClones: "refuse",
		Rules: Rules{
			RulesInterval: Duration(15 * time.Second), RulesQueryOffset: Duration(15 * time.Second), RulesOutage: Duration(time.Hour),
			RulesGrace: Duration(time.Minute), RulesResend: Duration(time.Minute),
			RulesMaxOffset: Duration(2 * time.Minute), RulesFillWindow: Duration(24 * time.Hour), RulesFillDelay: Duration(30 * time.Second),
		},
	}
}

func TestValidate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	hours := func(n int) Duration { return Duration(time.Duration(n) * time.Hour) }
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string // in the error; empty for none
	}{
		"defaults":             {func(*Config) {}, ""},
		"for ever":             {func(c *Config) { c.RetentionRaw, c.Retention5m, c.Retention1h = 0, 0, 0 }, ""},
		"hours for ever":       {func(c *Config) { c.Retention1h = 0 }, ""},
		"raw for ever only":    {func(c *Config) { c.RetentionRaw = 0 }, "--retention.5m"},
		"5m for ever only":     {func(c *Config) { c.Retention5m = 0 }, "--retention.1h"},
		"raw too short":        {func(c *Config) { c.RetentionRaw = hours(27) }, "--retention.raw: 1d3h is less than"},
		"raw just long enough": {func(c *Config) { c.RetentionRaw = hours(28) }, ""},
		"raw longer than 5m":   {func(c *Config) { c.RetentionRaw = hours(15 * 24) }, "--retention.5m"},
		"5m too short":         {func(c *Config) { c.Retention5m, c.RetentionRaw = hours(47), hours(40) }, "--retention.5m"},
		"5m longer than 1h":    {func(c *Config) { c.Retention5m = hours(91 * 24) }, "--retention.1h"},
		"no interval":          {func(c *Config) { c.FoldInterval = 0 }, "--fold.interval"},
		"no series":            {func(c *Config) { c.QueryMaxSeries = 0 }, "--query.max-series"},
		"no answers":           {func(c *Config) { c.QueryMaxBytes = 0 }, "--query.max-response-bytes"},
		"clients together":     {func(c *Config) { c.ClientConcurrency = -1 }, "--query.client-max-concurrency"},
		"clients' samples":     {func(c *Config) { c.ClientSamples = -1 }, "--query.client-max-samples"},
		"clients' series":      {func(c *Config) { c.ClientSeries = -1 }, "--query.client-max-series"},
		"clients' time":        {func(c *Config) { c.ClientTime = -1 }, "--query.client-max-time"},
		"clients' bytes":       {func(c *Config) { c.ClientBytes = -1 }, "--query.client-max-response-bytes"},
		"no samples":           {func(c *Config) { c.QueryMaxSamples = 0 }, "--query.max-samples"},
		"no concurrency":       {func(c *Config) { c.QueryConcurrency = 0 }, "--query.max-concurrency"},
		"much lag":             {func(c *Config) { c.FoldLag = hours(25) }, "--fold.lag: 1d1h is more than 1d"},
		"a day's lag":          {func(c *Config) { c.FoldLag = hours(24) }, ""},
		"no port":              {func(c *Config) { c.Listen = "foo" }, "--listen"},
		"an empty port":        {func(c *Config) { c.Listen = "foo:" }, "--listen"},
		"a port too high":      {func(c *Config) { c.Listen = ":99999" }, "65535"},
		"no address":           {func(c *Config) { c.Listen = "" }, "--listen"},
		"IPv6":                 {func(c *Config) { c.Listen = "[::1]:9748" }, ""},
		"no silence":           {func(c *Config) { c.DevicesDownAfter = 0 }, "--devices.down-after"},
		"no timeout":           {func(c *Config) { c.QueryTimeout = 0 }, "--query.timeout"},
		"file for directory":   {func(c *Config) { c.DataDir = file }, "--data-dir"},
		"below a file":         {func(c *Config) { c.DataDir = filepath.Join(file, "x") }, "--data-dir"},
		"no directory":         {func(c *Config) { c.DataDir = "" }, "--data-dir"},
	} {
		t.Run(name, func(t *testing.T) {
			c := good(t)
			tc.change(&c)
			err := c.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{"0": 0, "500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "14d": 14 * 24 * time.Hour} {
		var d Duration
		if err := d.UnmarshalText([]byte(in)); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %v, %v", in, d, err)
		}
	}
	for _, in := range []string{"", "5", "-1h", "1 day", "1h-"} {
		var d Duration
		if err := d.UnmarshalText([]byte(in)); err == nil || !strings.Contains(err.Error(), "48h") {
			t.Errorf("%q: %v, want an error with an example", in, err)
		}
	}
}

func TestFlags(t *testing.T) {
	c := good(t)
	f := c.Flags()
	if f["retention.raw"] != "2d" || f["listen"] != ":0" || f["query.max-samples"] != "1" {
		t.Errorf("got %v", f)
	}
}
