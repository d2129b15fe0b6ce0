package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidateRules(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string // in the error; empty for none
	}{
		"all good": {func(c *Config) {
			c.RuleFiles = []string{"a/*.yml", "b.yml"}
			c.AlertmanagerURL = []string{"http://a:9093", "https://b/path"}
			c.AlertmanagerConfig = file("good", "basic_auth: {username: me, password: secret}")
			c.ExternalLabel = []string{"site=lab", "empty="}
			c.ExternalURL = "https://x/y"
		}, ""},
		"pattern":         {func(c *Config) { c.RuleFiles = []string{"[a"} }, `--rules: "[a"`},
		"interval":        {func(c *Config) { c.RulesInterval = 0 }, "--rules.evaluation-interval"},
		"offset":          {func(c *Config) { c.RulesQueryOffset = -1 }, "--rules.query-offset"},
		"fill delay":      {func(c *Config) { c.RulesFillDelay = 0 }, "--rules.fill-delay"},
		"largest offset":  {func(c *Config) { c.RulesMaxOffset = -1 }, "--rules.query-offset-max"},
		"outage":          {func(c *Config) { c.RulesOutage = 0 }, "--rules.for-outage-tolerance"},
		"grace":           {func(c *Config) { c.RulesGrace = 0 }, "--rules.for-grace-period"},
		"resend":          {func(c *Config) { c.RulesResend = 0 }, "--rules.resend-delay"},
		"no scheme":       {func(c *Config) { c.AlertmanagerURL = []string{"localhost:9093"} }, "does not begin with http"},
		"password":        {func(c *Config) { c.AlertmanagerURL = []string{"http://me:secret@a"} }, "http-config-file"},
		"query":           {func(c *Config) { c.AlertmanagerURL = []string{"http://a/?x=y"} }, "more than a path"},
		"no URL":          {func(c *Config) { c.AlertmanagerURL = []string{"http://me:secret@a:port"} }, "is no URL"},
		"no file":         {func(c *Config) { c.AlertmanagerConfig = filepath.Join(dir, "absent") }, "--alertmanager.http-config-file"},
		"unknown field":   {func(c *Config) { c.AlertmanagerConfig = file("bad", "basic_aut: {}") }, "basic_aut"},
		"label":           {func(c *Config) { c.ExternalLabel = []string{"site"} }, "NAME=VALUE"},
		"label name":      {func(c *Config) { c.ExternalLabel = []string{"1=x"} }, "no label name"},
		"label reserved":  {func(c *Config) { c.ExternalLabel = []string{"__name__=x"} }, "reserved"},
		"label value":     {func(c *Config) { c.ExternalLabel = []string{"a=\xff"} }, "UTF-8"},
		"label twice":     {func(c *Config) { c.ExternalLabel = []string{"a=x", "a=y"} }, "twice"},
		"external scheme": {func(c *Config) { c.ExternalURL = "x" }, "--external-url"},
	} {
		t.Run(name, func(t *testing.T) {
			c := good(t)
			tc.change(&c)
			err := c.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

func TestRulesValues(t *testing.T) {
	c := good(t)
	c.ExternalLabel = []string{"site=lab=1", "b="}
	c.AlertmanagerURL = []string{"http://a:9093/x"}
	c.RuleFiles = []string{"a.yml"}
	l, err := c.ExternalLabels()
	if diff := cmp.Diff(map[string]string{"site": "lab=1", "b": ""}, l); diff != "" || err != nil {
		t.Errorf("labels: %v\n%s", err, diff)
	}
	if a, err := c.Alertmanagers(); err != nil || len(a) != 1 || a[0].Host != "a:9093" || a[0].Path != "/x" {
		t.Errorf("addresses: %v, %v", a, err)
	}
	if h, err := c.AlertmanagerClient(); h != nil || err != nil {
		t.Errorf("client: %v, %v", h, err)
	}
	if f := c.Flags(); f["rules"] != "[a.yml]" || f["rules.query-offset"] != "15s" || f["alertmanager.url"] != "[http://a:9093/x]" {
		t.Errorf("flags %v", f)
	}
}
