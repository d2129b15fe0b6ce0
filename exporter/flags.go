package main

import (
	"fmt"
	"io"
	"os"

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
}

type general struct {
	Version bool `help:"Show the version and stop."`
}

// sourceFlag is the --[no-]collector.NAME of a source.
type sourceFlag struct {
	spec collectors.Spec
	on   bool
}

func newRunFlags() *runFlags {
	r := &runFlags{set: flags.New(envPrefix)}
	r.set.Struct(&r.general, nil)
	r.set.Struct(&r.config, map[string]string{"path": "Where the kernel is found", "push": "Pushing"})
	specs := collectors.All()
	r.sources = make([]sourceFlag, len(specs))
	for i, spec := range specs {
		how := "every tick"
		if spec.Cadence > 0 {
			how = "every " + spec.Cadence.String()
		}
		s := &r.sources[i]
		*s = sourceFlag{spec, spec.Enabled}
		r.set.Switch(&s.on, "collector."+spec.Name, "Read "+how+": "+spec.Reason+".", "What is read")
	}
	return r
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
	return r.config.Validate()
}

// enabled are the specs that the flags let be read.
func (r *runFlags) enabled() []collectors.Spec {
	var out []collectors.Spec
	for _, s := range r.sources {
		if s.on {
			out = append(out, s.spec)
		}
	}
	return out
}

func (r *runFlags) help(w io.Writer) {
	fmt.Fprintf(w, "Usage: ticktier-exporter [run] [flags]\n\n%s", about)
	r.set.Help(w)
}
