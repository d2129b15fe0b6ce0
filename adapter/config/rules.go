package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

// Rules are the flags about rules and alerts.
type Rules struct {
	RuleFiles          []string `name:"rules" help:"Files with recording and alerting rules, as a pattern; may be repeated. Files named *_test.yml are left out." placeholder:"PATTERN"`
	RulesInterval      Duration `name:"rules.evaluation-interval" help:"Time between two evaluations of a group that says nothing else (default ${default})." default:"15s" placeholder:"TIME"`
	RulesQueryOffset   Duration `name:"rules.query-offset" help:"How far back a group looks that says nothing else: as long as samples are on their way (default ${default})." default:"15s" placeholder:"TIME"`
	RulesMaxOffset     Duration `name:"rules.query-offset-max" help:"How far back such a group looks at most where devices lag; the same as the offset for not to follow (default ${default})." default:"2m" placeholder:"TIME"`
	RulesFillWindow    Duration `name:"rules.fill-window" help:"How far back recording rules are evaluated again where samples came late or the adapter was down, at most --out-of-order-window; 0 for not (default ${default})." default:"24h" placeholder:"TIME"`
	RulesFillDelay     Duration `name:"rules.fill-delay" help:"How long nothing more must have come late before (default ${default})." default:"30s" placeholder:"TIME"`
	RulesOutage        Duration `name:"rules.for-outage-tolerance" help:"Longest stop after which alerts go on where they were (default ${default})." default:"1h" placeholder:"TIME"`
	RulesGrace         Duration `name:"rules.for-grace-period" help:"Least time from a start until an alert fires that was pending before (default ${default})." default:"1m" placeholder:"TIME"`
	RulesResend        Duration `name:"rules.resend-delay" help:"Time between two notifications of an alert that goes on (default ${default})." default:"1m" placeholder:"TIME"`
	AlertmanagerURL    []string `name:"alertmanager.url" help:"Alertmanager to send alerts to; may be repeated." placeholder:"URL"`
	AlertmanagerConfig string   `name:"alertmanager.http-config-file" help:"TLS and authentication for them, in Prometheus' form (tls_config, basic_auth, authorization, …)." placeholder:"FILE"`
	ExternalLabel      []string `name:"external-label" help:"Label for every alert that is sent; may be repeated." placeholder:"NAME=VALUE"`
	ExternalURL        string   `name:"external-url" help:"Where people reach this adapter, for links in alerts (default: the host's name and the port)." placeholder:"URL"`
}

func (c *Rules) validate(bad func(string, ...any)) {
	for _, d := range []struct {
		flag string
		d    Duration
		min  time.Duration
	}{
		{"--rules.evaluation-interval", c.RulesInterval, 100 * time.Millisecond},
		{"--rules.query-offset", c.RulesQueryOffset, 0},
		{"--rules.query-offset-max", c.RulesMaxOffset, 0},
		{"--rules.fill-window", c.RulesFillWindow, 0},
		{"--rules.fill-delay", c.RulesFillDelay, 100 * time.Millisecond},
		{"--rules.for-outage-tolerance", c.RulesOutage, time.Millisecond},
		{"--rules.for-grace-period", c.RulesGrace, time.Millisecond},
		{"--rules.resend-delay", c.RulesResend, time.Millisecond},
	} {
		if time.Duration(d.d) < d.min {
			bad("%s: %s is less than %s", d.flag, d.d, d.min)
		}
	}
	for _, p := range c.RuleFiles {
		if _, err := filepath.Match(p, ""); err != nil {
			bad("--rules: %q: %w", p, err)
		}
	}
	if _, err := c.Alertmanagers(); err != nil {
		bad("%w", err)
	}
	if _, err := c.AlertmanagerClient(); err != nil {
		bad("%w", err)
	}
	if _, err := c.ExternalLabels(); err != nil {
		bad("%w", err)
	}
	if c.ExternalURL != "" {
		if _, err := httpURL("--external-url", c.ExternalURL); err != nil {
			bad("%w", err)
		}
	}
}

// Alertmanagers are the addresses of --alertmanager.url.
func (c *Rules) Alertmanagers() (list []*url.URL, err error) {
	for _, s := range c.AlertmanagerURL {
		u, err := httpURL("--alertmanager.url", s)
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, nil
}

// httpURL reads the value of a flag, which the status API shows: hence no password.
func httpURL(flag, s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: is no URL", flag) // the error has the text, and with it a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%s: %q does not begin with http:// or https:// and a host", flag, u.Redacted())
	case u.User != nil:
		return nil, fmt.Errorf("%s: %q has a user in it; authentication belongs into --alertmanager.http-config-file", flag, u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s: %q has more than a path", flag, s)
	}
	return u, nil
}

// AlertmanagerClient is what --alertmanager.http-config-file holds, nil where there is
// none.
func (c *Rules) AlertmanagerClient() (*promconfig.HTTPClientConfig, error) {
	if c.AlertmanagerConfig == "" {
		return nil, nil
	}
	h, _, err := promconfig.LoadHTTPConfigFile(c.AlertmanagerConfig)
	if err != nil {
		return nil, fmt.Errorf("--alertmanager.http-config-file: %w", err)
	}
	return h, nil
}

// ExternalLabels are the labels of --external-label.
func (c *Rules) ExternalLabels() (map[string]string, error) {
	out := map[string]string{}
	for _, s := range c.ExternalLabel {
		name, value, ok := strings.Cut(s, "=")
		switch {
		case !ok:
			return nil, fmt.Errorf("--external-label: %q is not NAME=VALUE", s)
		case !model.LegacyValidation.IsValidLabelName(name) || strings.HasPrefix(name, "__"):
			return nil, fmt.Errorf("--external-label: %q is no label name, or is reserved", name)
		case !model.LabelValue(value).IsValid():
			return nil, fmt.Errorf("--external-label: the value of %s is not UTF-8", name)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("--external-label: %s is given twice", name)
		}
		out[name] = value
	}
	return out, nil
}
