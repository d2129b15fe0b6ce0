package collectors

import (
	"fmt"
	"regexp"
)

// Option is a setting of a source: the flag --collector.NAME, with node_exporter's
// names and defaults. All are regular expressions, not anchored.
type Option struct {
	Name, Default, Help string
}

// Options returns every option there is. Env.Options has the values of those that
// were given.
func Options() []Option {
	var all []Option
	pair := func(name, what, exclude string) {
		all = append(all,
			Option{name + "-include", "", "Regexp of " + what + " to include (mutually exclusive to --collector." + name + "-exclude)."},
			Option{name + "-exclude", exclude, "Regexp of " + what + " to exclude (mutually exclusive to --collector." + name + "-include)."})
	}
	pair("netdev.device", "net devices", "")
	pair("arp.device", "arp devices", "")
	pair("diskstats.device", "diskstats devices", diskExclude)
	pair("interrupts.name", "interrupts, as NUMBER;CONTROLLER;DEVICES or NAME;TEXT;,", "")
	pair("filesystem.mount-points", "mount points", mountsExclude)
	pair("filesystem.fs-types", "filesystem types", typesExclude)
	pair("hwmon.chip", "hwmon chips", "")
	pair("hwmon.sensor", "hwmon sensors, as CHIP;SENSOR,", "")
	pair("qdisc.device", "qdisc devices", "")
	pair("slabinfo.slabs", "slabs", "")
	return append(all,
		Option{"netclass.ignored-devices", "", "Regexp of net devices to ignore for netclass collector."},
		Option{"powersupply.ignored-supplies", "", "Regexp of power supplies to ignore for power_supply collector."},
		Option{"vmstat.fields", vmstatFields, "Regexp of fields to return for vmstat collector."},
		Option{"netstat.fields", netstatFields, "Regexp of fields to return for netstat collector."})
}

// CheckOptions tells what is wrong with values of options.
func CheckOptions(values map[string]string) error {
	known := map[string]bool{}
	for _, o := range Options() {
		known[o.Name] = true
	}
	for name, value := range values {
		if !known[name] {
			return fmt.Errorf("--collector.%s: there is no such option", name)
		}
		if _, err := regexp.Compile(value); err != nil {
			return fmt.Errorf("--collector.%s: %w", name, err)
		}
	}
	for _, o := range Options() {
		if base, ok := cutInclude(o.Name); ok && values[o.Name] != "" && values[base+"-exclude"] != "" {
			return fmt.Errorf("--collector.%s and --collector.%s-exclude are mutually exclusive", o.Name, base)
		}
	}
	return nil
}

func cutInclude(name string) (string, bool) {
	const suffix = "-include"
	if len(name) > len(suffix) && name[len(name)-len(suffix):] == suffix {
		return name[:len(name)-len(suffix)], true
	}
	return "", false
}

// pattern compiles a value that CheckOptions passed. An empty one, or one that is
// wrong after all, is nil: no pattern.
func pattern(value string) *regexp.Regexp {
	if value == "" {
		return nil
	}
	re, err := regexp.Compile(value)
	if err != nil {
		return nil
	}
	return re
}

// option is the pattern of an option without a partner.
func (env *Env) option(name, byDefault string) *regexp.Regexp {
	if v, ok := env.Options[name]; ok {
		return pattern(v)
	}
	return pattern(byDefault)
}

// filter says which rows are exported.
type filter struct{ include, exclude *regexp.Regexp }

// filter is made of the options NAME-include and NAME-exclude. To include some means
// to exclude no others than those.
func (env *Env) filter(name, exclude string) filter {
	if v := env.Options[name+"-include"]; v != "" {
		return filter{include: pattern(v)}
	}
	return filter{exclude: env.option(name+"-exclude", exclude)}
}

func (f filter) ignores(name string) bool {
	return f.exclude != nil && f.exclude.MatchString(name) || f.include != nil && !f.include.MatchString(name)
}
