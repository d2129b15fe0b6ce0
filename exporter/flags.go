package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/config"
	"github.com/ticktier/ticktier/exporter/flags"
)

// envPrefix begins every environment variable that is a flag.
const envPrefix = "TICKTIER_EXPORTER_"

const about = `Samples the Linux kernel 1 to 1000 times a second, keeps the ticks in memory, pushes them by
Prometheus remote write and serves the newest on /metrics. Every flag can also be set in the
environment, as ` + envPrefix + ` and its name in capitals with _ for - and .
(` + envPrefix + `REMOTE_WRITE_URL); lists have spaces or commas between their items.
`

// runFlags is the command line of run.
type runFlags struct {
	set     *flags.Set
	config  config.Config
	general general
	sources []sourceFlag
	options map[string]string // of sources, those that were given
	foreign foreign
	format  format
}

type general struct {
	Version bool `help:"Show the version and stop."`
}

// sourcesVerb lists the sources, where the default is to run.
const sourcesVerb = "sources"

// format is what the verb sources has beside the flags of run.
type format struct {
	Format string `help:"Form of the list: table or json." enum:"table,json" default:"table" placeholder:"FORM"`
}

// addFormat adds what the verb sources has.
func (r *runFlags) addFormat() { r.set.Struct(&r.format, nil) }

// sourceFlag is the --[no-]collector.NAME of a source.
type sourceFlag struct {
	spec collectors.Spec
	on   bool
}

// Titles of help.
const (
	titleRead    = "What is read"
	titleOptions = "What of it"
)

func newRunFlags() *runFlags {
	r := &runFlags{set: flags.New(envPrefix), options: map[string]string{}}
	r.set.Struct(&r.general, nil)
	r.set.Struct(&r.config, map[string]string{"path": "Where the kernel is found", "read": titleRead, "push": "Pushing", "spool": "Keeping ticks on disk", "scrape": "Scraping other exporters"})
	r.set.Switch(&r.foreign.noDefaults, "collector.disable-defaults",
		"Read only the sources that are named, and what the exporter tells of itself.", titleRead)
	specs := collectors.All()
	r.sources = make([]sourceFlag, len(specs))
	for i, spec := range specs {
		s := &r.sources[i]
		*s = sourceFlag{spec, spec.Enabled}
		r.set.Switch(&s.on, "collector."+spec.Name, "Read "+cadence(spec.Cadence)+": "+spec.Reason+".", titleRead)
	}
	for _, o := range collectors.Options() {
		r.set.Func(func(v string) error {
			r.options[o.Name] = v
			return nil
		}, "collector."+o.Name, o.Help, o.Default, "REGEXP", titleOptions)
	}
	r.addForeign()
	return r
}

// cadence is a source's, in words.
func cadence(d time.Duration) string {
	if d == 0 {
		return "every tick"
	}
	text := d.String()
	if minutes, ok := strings.CutSuffix(text, "m0s"); ok {
		text = minutes + "m"
	}
	return "every " + text
}

// parse reads the command line and the environment, and checks what they say.
func (r *runFlags) parse(args []string) error {
	rest, err := r.set.Parse(args, os.Environ())
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %s", rest[0])
	}
	if r.general.Version {
		return nil
	}
	var faults config.Faults
	if err := r.config.Validate(); !errors.As(err, &faults) && err != nil {
		return err
	}
	if err := collectors.CheckOptions(r.options); err != nil {
		faults = append(faults, err)
	}
	if n := len(r.config.PingTarget); n > collectors.MaxPingTargets {
		faults = append(faults, fmt.Errorf("--ping.target: %d targets, at most %d can be", n, collectors.MaxPingTargets))
	}
	for _, target := range r.config.PingTarget {
		if err := collectors.CheckPingTarget(target); err != nil {
			faults = append(faults, fmt.Errorf("--ping.target: %w", err))
		}
	}
	if _, err := r.targets(); err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// reads tells whether the flags let a source be read.
func (r *runFlags) reads(s *sourceFlag) bool {
	name := s.spec.Name
	if r.foreign.noDefaults && name != selfSource && !r.set.Given("collector."+name) && !r.set.Given("collector."+foreignPart[name]) {
		return false
	}
	return s.on
}

// selfSource is the source that tells of the exporter itself.
const selfSource = "exporter"

// enabled are the specs that the flags let be read.
func (r *runFlags) enabled() []collectors.Spec {
	var out []collectors.Spec
	for i := range r.sources {
		if s := &r.sources[i]; r.reads(s) {
			out = append(out, s.spec)
		}
	}
	return out
}

// besideTicks marks the sources whose files may keep a reader waiting, and returns the
// names of those that are read.
func (r *runFlags) besideTicks(env collectors.Env) []string {
	var specs []*collectors.Spec
	for i := range r.sources {
		if s := &r.sources[i]; r.reads(s) {
			specs = append(specs, &s.spec)
		}
	}
	return collectors.BesideTicks(env, specs)
}

// env is what sources are to know of the machine.
func (r *runFlags) env(log *slog.Logger) collectors.Env {
	return collectors.Env{
		Procfs: r.config.PathProcfs, Sysfs: r.config.PathSysfs, Rootfs: r.config.PathRootfs,
		TextfileDirs: r.config.TextfileDirectory, ContainerNetwork: r.config.ContainerNetwork,
		PingTargets: r.config.PingTarget, Options: r.options, Logger: log,
	}
}

func (r *runFlags) help(w io.Writer) {
	fmt.Fprintf(w, "Usage: ticktier-exporter [run] [flags]\n       ticktier-exporter sources [--format=table|json] [flags]\n"+
		"       ticktier-exporter top | record | plot FILE    (--help tells more)\n\n%s", about)
	r.set.Help(w)
}
