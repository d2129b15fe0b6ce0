package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// leastSize is what raw samples that are in no block yet may well take alone.
	leastSize = 64 << 20
	// maxOverrides is how many --retention.match there may be.
	maxOverrides = 63
)

// Override is one --retention.match: how long the hours of some series are kept.
type Override struct {
	Matchers []*labels.Matcher
	Age      Duration // 0 for ever
}

// Overrides are those of --retention.match, in their order.
func (c *Config) Overrides() (out []Override, err error) {
	var all []string
	for _, text := range c.RetentionMatch {
		all = append(all, splitOverrides(text)...)
	}
	if len(all) > maxOverrides {
		return nil, fmt.Errorf("%d of them are more than %d", len(all), maxOverrides)
	}
	for _, text := range all {
		o, e := parseOverride(text)
		if e == nil && o.Age != 0 && (c.Retention5m == 0 || o.Age < c.Retention5m) {
			e = fmt.Errorf("%s is less than --retention.5m (%s), in which the same series are kept", o.Age, c.Retention5m)
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%q: %w", text, e))
			continue
		}
		out = append(out, o)
	}
	return out, err
}

// splitOverrides parts a text at each ; and new line that is in no string. What is
// empty between two is left out, but not a text that is empty as a whole.
func splitOverrides(text string) (out []string) {
	from, quote := 0, byte(0)
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || quote == 0 && (text[i] == ';' || text[i] == '\n'):
			if part := strings.TrimSpace(text[from:i]); part != "" {
				out = append(out, part)
			}
			from = i + 1
		case quote == 0 && (text[i] == '"' || text[i] == '\'' || text[i] == '`'):
			quote = text[i]
		case quote != 0 && quote != '`' && text[i] == '\\':
			i = min(i+1, len(text)-1)
		case text[i] == quote:
			quote = 0
		}
	}
	if len(out) == 0 {
		return []string{text}
	}
	return out
}

var errOverrideForm = errors.New(`is not of the form SELECTOR=TIME@1h, such as {job="lab"}=30d@1h; several are separated by ; or a new line`)

func parseOverride(text string) (o Override, err error) {
	end := strings.LastIndexByte(text, '=')
	age, tier, ok := strings.Cut(text[end+1:], "@")
	if end <= 0 || !ok {
		return o, errOverrideForm
	}
	switch tier {
	case "1h":
	case "raw", "5m":
		return o, fmt.Errorf("tier %s keeps all series equally long, for a query reads one tier for a stretch of time and would miss there what other tiers still have; only @1h is possible", tier)
	default:
		return o, fmt.Errorf("there is no tier %q; only @1h is possible", tier)
	}
	if err := o.Age.UnmarshalText([]byte(age)); err != nil {
		return o, err
	}
	if o.Age < 0 {
		return o, fmt.Errorf("%s is less than 0", o.Age)
	}
	if o.Matchers, err = parser.NewParser(parser.Options{}).ParseMetricSelector(text[:end]); err != nil {
		if strings.Contains(text[:end], "@1h") {
			return o, fmt.Errorf("several are separated by ; or a new line: read the selector: %w", err)
		}
		return o, fmt.Errorf("read the selector: %w", err)
	}
	if len(o.Matchers) == 0 {
		return o, errors.New("the selector is empty and would select every series: that is what --retention.1h is for")
	}
	return o, nil
}

// Longest is the longest time that anything is kept, 0 for ever.
func (c *Config) Longest() time.Duration {
	all := []Duration{c.RetentionRaw, c.Retention5m, c.Retention1h}
	overrides, _ := c.Overrides() // Validate has reported what is wrong with them
	for _, o := range overrides {
		all = append(all, o.Age)
	}
	longest := Duration(0)
	for _, d := range all {
		if d == 0 {
			return 0
		}
		longest = max(longest, d)
	}
	return time.Duration(longest)
}
