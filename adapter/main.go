// ticktier-adapter receives remote write, keeps raw samples, folds them into
// 5-minute and hourly buckets, and answers PromQL over all of them.
//
// main reads flags and environment, joins the packages and turns an error into an
// exit code; it does nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"github.com/ticktier/ticktier/adapter/config"
	"github.com/ticktier/ticktier/adapter/ruler"
)

// version is set by the linker.
var version = "dev"

// cli is the command line.
type cli struct {
	Run      runCmd           `cmd:"" default:"withargs" help:"Run the adapter (the default)."`
	Seed     seedCmd          `cmd:"" help:"Fill an empty data directory with a made-up fleet's history, for measurements and for trying things out."`
	Inspect  inspectCmd       `cmd:"" help:"Show the blocks of a data directory, or what series take by a label."`
	Verify   verifyCmd        `cmd:"" help:"Read every block of a data directory and say which cannot be."`
	Rules    rulesCmd         `cmd:"" help:"Questions about rule files."`
	Backfill backfillCmd      `cmd:"" help:"Fill in old samples from OpenMetrics or remote-write files or a Prometheus data directory."`
	Snapshot snapshotCmd      `cmd:"" help:"Have a running adapter make a copy of its data directory, as hard links below it, and print where."`
	Tokens   tokensCmd        `cmd:"" help:"Make, list and revoke tokens of devices, readers and administrators."`
	Version  kong.VersionFlag `env:"-" help:"Show the version and stop."`
}

type runCmd struct{ config.Config }

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with its surroundings passed in; it returns the exit code.
func run(ctx context.Context, args []string, out, errout io.Writer) int {
	var c cli
	code := -1
	p, err := kong.New(&c,
		kong.Name("ticktier-adapter"),
		kong.Description("Receives Prometheus remote write, keeps raw samples, 5-minute and hourly buckets, and answers PromQL over all of them. Every flag but --help, --version and --check-config can also be set in the environment, as TICKTIER_ADAPTER_ and its name in capitals with _ for - and . (TICKTIER_ADAPTER_DATA_DIR)."),
		kong.DefaultEnvars("TICKTIER_ADAPTER"),
		kong.Vars{"version": "ticktier-adapter " + versionString()},
		kong.Writers(out, errout),
		kong.Exit(func(c int) { code = c }),
	)
	if err != nil {
		fmt.Fprintln(errout, "ticktier-adapter: BUG:", err)
		return exitFailed
	}
	for _, name := range unknownVariables(p.Model, os.Environ()) {
		fmt.Fprintf(errout, "ticktier-adapter: the environment variable %s is no flag's and changes nothing\n", name)
	}
	parsed, err := p.Parse(args)
	if code >= 0 { // --help or --version
		return code
	}
	if err != nil {
		fmt.Fprintf(errout, "ticktier-adapter: %v (see ticktier-adapter --help)\n", err)
		return exitUsage
	}
	if known, err := c.command(ctx, parsed.Command(), out, errout); known {
		if err != nil {
			fmt.Fprintf(errout, "ticktier-adapter: %v\n", err)
			return exitFailed
		}
		return 0
	}
	cfg := &c.Run.Config
	if err := cfg.Validate(); err != nil {
		fmt.Fprintf(errout, "ticktier-adapter: %v\n", err)
		return exitUsage
	}
	if cfg.CheckConfig {
		_, err := newAccess(cfg, slog.New(slog.DiscardHandler), nil)
		if err = errors.Join(err, ruler.Check(cfg.RuleFiles)); err != nil {
			fmt.Fprintf(errout, "ticktier-adapter: %v\n", err)
			return exitUsage
		}
		fmt.Fprintln(out, "the configuration is good")
		for _, p := range ruler.Unmatched(cfg.RuleFiles) {
			fmt.Fprintf(out, "but no rule file matches --rules=%s yet\n", p)
		}
		return 0
	}
	logger := newLogger(errout, cfg)
	for {
		err := serve(ctx, cfg, logger)
		switch {
		case err == nil, errors.Is(err, errStopped):
			return 0
		case errors.Is(err, errReopen):
			logger.Warn("opening the store again")
		default:
			logger.Error("stopped", "err", err)
			return exitFailed
		}
	}
}

func newLogger(w io.Writer, cfg *config.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		level = slog.LevelInfo // kong's enum lets nothing else through
	}
	o := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// versionString is the linker's version with the commit, where the build knows it.
func versionString() string {
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				return version + " (" + s.Value + ", " + b.GoVersion + ")"
			}
		}
		return version + " (" + b.GoVersion + ")"
	}
	return version
}

// errStopped ends the run group after a signal; it is no failure.
var errStopped = errors.New("stopped by a signal")
