// ticktier-exporter reads the kernel on every tick, keeps the ticks in memory,
// remote-writes them, and answers scrapes.
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
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/ticktier/ticktier/exporter/config"
	"github.com/ticktier/ticktier/exporter/flags"
)

// version is set by the linker.
var version = ""

// cgroupMemory is the limit of a container, as the container sees it.
const cgroupMemory = "/sys/fs/cgroup/memory.max"

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	// The table of the memory profiler takes more than a megabyte; --debug.pprof
	// turns it on again.
	runtime.MemProfileRate = 0
	os.Exit(realMain(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// memProfileRate is what the runtime begins with: one sample in so many bytes.
const memProfileRate = 512 << 10

// realMain is main with its surroundings passed in; it returns the exit code.
func realMain(ctx context.Context, args []string, out, errout io.Writer) int {
	if len(args) > 0 {
		if c, ok := clients()[args[0]]; ok {
			return runClient(ctx, c, args[1:], out, errout)
		}
	}
	if len(args) > 0 && args[0] == spoolVerb {
		return runSpool(args[1:], out, errout)
	}
	verb := "run"
	if len(args) > 0 && (args[0] == verb || args[0] == sourcesVerb) {
		verb, args = args[0], args[1:]
	}
	r := newRunFlags()
	if verb == sourcesVerb {
		r.addFormat()
	}
	err := r.parse(args)
	var faults config.Faults
	switch {
	case errors.Is(err, flags.ErrHelp):
		r.help(out)
		return 0
	case errors.As(err, &faults):
		return tellFaults(errout, faults)
	case err != nil:
		fmt.Fprintf(errout, "ticktier-exporter: %v (see ticktier-exporter --help)\n", err)
		return exitUsage
	}
	cfg := &r.config
	if r.general.Version {
		fmt.Fprintln(out, "ticktier-exporter", thisBuild())
		return 0
	}
	if verb == sourcesVerb {
		if err := listSources(out, r); err != nil {
			fmt.Fprintln(errout, "ticktier-exporter: list sources:", err)
			return exitFailed
		}
		return 0
	}
	if err := checkMemory(cfg, cgroupMemory, strconv.IntSize); err != nil {
		fmt.Fprintln(errout, "ticktier-exporter:", err)
		return exitUsage
	}
	logger := newLogger(errout, cfg)
	r.warn(logger, os.Environ())
	if cfg.CheckConfig {
		return checkConfig(r, out, errout)
	}
	if cfg.Pprof {
		runtime.MemProfileRate = memProfileRate
	}
	if err := serve(ctx, r, logger); err != nil {
		logger.Error("stopped", "err", err)
		return exitFailed
	}
	return 0
}

func newLogger(w io.Writer, cfg *config.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		level = slog.LevelInfo // the flag's enum lets nothing else through
	}
	o := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// build is what this program was built from.
type build struct{ version, revision, goVersion string }

// thisBuild reads the linker's version, and what the Go tool knows of it.
func thisBuild() build {
	b := build{version: version}
	info, ok := debug.ReadBuildInfo()
	if ok {
		b.goVersion = info.GoVersion
		if b.version == "" && info.Main.Version != "(devel)" {
			b.version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.revision = s.Value
			}
		}
	}
	if b.version == "" {
		b.version = "dev"
	}
	return b
}

func (b build) String() string {
	parts := []string{b.goVersion}
	if b.revision != "" {
		parts = append([]string{b.revision}, parts...)
	}
	return b.version + " (" + strings.Join(parts, ", ") + ")"
}
