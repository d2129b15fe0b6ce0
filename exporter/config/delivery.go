package config

import (
	"fmt"
	"regexp"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/selector"
)

// checkDelivery checks what is sent to one receiver, and in which order.
func (c *Config) checkDelivery(bad func(string, ...any)) {
	if c.RemoteWriteBacklogShare <= 0 || c.RemoteWriteBacklogShare > 1 {
		bad("--remote-write.backlog-share: %v is not more than 0 and at most 1", c.RemoteWriteBacklogShare)
	}
	if c.RemoteWriteFlat < 0 {
		bad("--remote-write.flat: %s is negative", c.RemoteWriteFlat)
	}
	if c.RemoteWriteRate < 0 || c.RemoteWriteRate > max(c.Rate, 0) || c.RemoteWriteRate > 0 && c.Rate%c.RemoteWriteRate != 0 {
		bad("--remote-write.rate: %d is not 0 nor a whole fraction of the rate, %d", c.RemoteWriteRate, c.Rate)
	}
	if _, err := c.Selected(); err != nil {
		bad("%w", err)
	}
}

// checkSpool checks what is kept meanwhile.
func (c *Config) checkSpool(bad func(string, ...any)) {
	if c.SpoolDir != "" && (c.SpoolMaxBytes < MinSpoolBytes || c.SpoolMaxBytes > MaxRingBytes) {
		bad("--spool.max-bytes: %s is not between %s and %s", c.SpoolMaxBytes, Bytes(MinSpoolBytes), Bytes(MaxRingBytes))
	}
	if c.SpoolMaxAge < 0 {
		bad("--spool.max-age: %s is negative", c.SpoolMaxAge)
	}
}

// selectorStart is what a selector looks like from its beginning.
var selectorStart = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*(\{|[ ,\t\n]|$)|^\{`)

// selectors reads the selectors of a flag. What came in one value, as from the
// environment, is put apart where it is not one selector as a whole.
func selectors(flag string, values []string) ([]selector.Selector, error) {
	var out []selector.Selector
	for _, v := range values {
		items := []string{v}
		if _, err := selector.Parse(v); err != nil {
			items = split(items, selectorStart.MatchString)
		}
		for _, s := range items {
			sel, err := selector.Parse(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", flag, err)
			}
			out = append(out, sel)
		}
	}
	return out, nil
}

// Selected tells which series are pushed; nil is all.
func (c *Config) Selected() (func(*collectors.Series) bool, error) {
	match, err := selectors("--remote-write.match[]", c.RemoteWriteMatch)
	if err != nil {
		return nil, err
	}
	drop, err := selectors("--remote-write.drop[]", c.RemoteWriteDrop)
	if err != nil || len(match)+len(drop) == 0 {
		return nil, err
	}
	selects := func(sels []selector.Selector, s *collectors.Series) bool {
		for _, sel := range sels {
			if sel.Selects(s) {
				return true
			}
		}
		return false
	}
	return func(s *collectors.Series) bool {
		return (len(match) == 0 || selects(match, s)) && !selects(drop, s)
	}, nil
}
