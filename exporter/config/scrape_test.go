package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheckScrape(t *testing.T) {
	good := func() Config {
		return Config{ScrapeURL: []string{"http://a http://b#label=x=y"}, ScrapeMaxSeries: 10, ScrapeMaxBytes: 1 << 20, ScrapeRingMaxBytes: 1 << 20,
			RemoteWriteURL: []string{"http://r"}, SpoolDir: "/d", SpoolMaxBytes: 1 << 20}
	}
	for _, c := range []struct {
		change func(*Config)
		flag   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.ScrapeMaxSeries = 0 }, "--scrape.max-series"},
		{func(c *Config) { c.ScrapeMaxSeries = MaxScrapeSeries + 1 }, "--scrape.max-series"},
		{func(c *Config) { c.ScrapeMaxBytes = 1 }, "--scrape.max-bytes"},
		{func(c *Config) { c.ScrapeRingMaxBytes = 1 }, "--scrape.ring-max-bytes"},
		{func(c *Config) { c.RemoteWriteURL = nil }, "--scrape.url"},
		{func(c *Config) { c.SpoolMaxBytes = 1<<20 - 1 }, "--spool.max-bytes"},
		{func(c *Config) { *c = Config{} }, ""},
	} {
		cfg := good()
		c.change(&cfg)
		var errs Faults
		cfg.checkScrape(func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) })
		if c.flag == "" && len(errs) > 0 || c.flag != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), c.flag)) {
			t.Errorf("want %q, got %v", c.flag, errs)
		}
		if len(cfg.RemoteWriteURL) > 0 && len(cfg.ScrapeURL) != 2 {
			t.Errorf("%q", cfg.ScrapeURL)
		}
	}
}
