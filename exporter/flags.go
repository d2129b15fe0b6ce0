package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/config"
)

// envPrefix begins every environment variable that is a flag.
const envPrefix = "TICKTIER_EXPORTER_"

// cli is the command line.
type cli struct {
	Run     runCmd           `cmd:"" default:"withargs" help:"Sample this machine, push the samples and serve them (the default)."`
	Version kong.VersionFlag `help:"Show the version and stop." env:"-"`

	sources sourceFlags
}

func newCLI() *cli {
	s := newSourceFlags()
	return &cli{Run: runCmd{Sources: kong.Plugins{s.flags}}, sources: s}
}

type runCmd struct {
	config.Config
	Sources kong.Plugins `embed:""`
}

func options(out, errout io.Writer, exit func(int)) []kong.Option {
	return []kong.Option{
		kong.Name("ticktier-exporter"),
		kong.Description("Samples the Linux kernel 1 to 1000 times a second, keeps the ticks in memory, pushes them by Prometheus remote write and serves the newest on /metrics. " +
			"Every flag can also be set in the environment, as " + envPrefix + " and its name in capitals with _ for - and . (" + envPrefix + "REMOTE_WRITE_URL); lists have spaces or commas between their items."),
		kong.DefaultEnvars(strings.TrimSuffix(envPrefix, "_")),
		kong.Vars{"version": "ticktier-exporter " + thisBuild().String()},
		kong.Groups{"path": "Where the kernel is found", "push": "Pushing", "sources": "What is read"},
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 120}),
		kong.ValueFormatter(helpText),
		kong.Help(help),
		kong.Writers(out, errout),
		kong.Exit(exit),
	}
}

// help shows the flags of run where no verb was given, for then it is run's.
func help(o kong.HelpOptions, ctx *kong.Context) error {
	if ctx.Selected() == nil {
		about := ctx.Model.Help
		var err error
		if ctx, err = kong.Trace(ctx.Kong, []string{"run"}); err != nil {
			return err
		}
		ctx.Selected().Help = about
	}
	return kong.DefaultHelpPrinter(o, ctx)
}

// helpText is a flag's help without its environment variable, which the
// description tells how to make, and with its default.
func helpText(v *kong.Value) string {
	// Booleans are named for their other value where they are on.
	if v.Default == "" || v.IsBool() || v.IsSlice() {
		return v.Help
	}
	return strings.TrimSuffix(v.Help, ".") + " (" + v.Default + ")."
}

// sourceFlags is a --[no-]collector.NAME for each source. Kong reads flags from
// the fields of a struct, and this one depends on what sources there are.
type sourceFlags struct {
	specs []collectors.Spec
	flags any // pointer to a struct with one bool to a spec
}

func newSourceFlags() sourceFlags {
	s := sourceFlags{specs: collectors.All()}
	var fields []reflect.StructField
	for i, spec := range s.specs {
		how := "every tick"
		if spec.Cadence > 0 {
			how = "every " + spec.Cadence.String()
		}
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("S%d", i),
			Type: reflect.TypeFor[bool](),
			Tag: reflect.StructTag(fmt.Sprintf(`name:"collector.%s" default:"%t" negatable:"" group:"sources" help:%q`,
				spec.Name, spec.Enabled, "Read "+how+": "+spec.Reason+".")),
		})
	}
	s.flags = reflect.New(reflect.StructOf(fields)).Interface()
	return s
}

// enabled are the specs that the flags let be read.
func (s sourceFlags) enabled() []collectors.Spec {
	v := reflect.ValueOf(s.flags).Elem()
	var out []collectors.Spec
	for i, spec := range s.specs {
		if v.Field(i).Bool() {
			out = append(out, spec)
		}
	}
	return out
}

// unsetEmpty removes empty variables of ours from the environment: where they can
// be declared but not taken back, as in a container's definition, empty means none.
func unsetEmpty() {
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); value == "" && strings.HasPrefix(name, envPrefix) {
			_ = os.Unsetenv(name)
		}
	}
}

// warnUnknown warns of environment variables that look like ours and are no flag's:
// most likely they are mistyped.
func warnUnknown(log *slog.Logger, app *kong.Application) {
	var known []string
	for _, flags := range app.Leaves(true)[0].AllFlags(false) {
		for _, f := range flags {
			known = append(known, f.Tag.Envs...)
		}
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, envPrefix) && !slices.Contains(known, name) {
			log.Warn("environment variable is no flag's and changes nothing", "name", name)
		}
	}
}
