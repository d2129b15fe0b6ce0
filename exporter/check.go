package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ticktier/ticktier/exporter/config"
	"github.com/ticktier/ticktier/exporter/flags"
)

// checkConfig is --check-config: the parts are made as run makes them, but for the
// sources, which are looked for again while it runs, and the spool, which is only
// tried.
func checkConfig(r *runFlags, out, errout io.Writer) int {
	cfg := &r.config
	var faults config.Faults
	ln, err := listen(cfg.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		fmt.Fprintf(errout, "ticktier-exporter: %v (which is as it should be while the exporter runs)\n", err)
	case err != nil:
		faults = append(faults, err)
	case ln != nil:
		_ = ln.Close()
	}
	if err := tryDir(cfg.SpoolDir); err != nil {
		faults = append(faults, fmt.Errorf("--spool.dir: %w", err))
	}
	tried := *r
	tried.sources, tried.config.SpoolDir = nil, ""
	if _, err := join(&tried, slog.New(slog.DiscardHandler)); err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return tellFaults(errout, faults)
	}
	fmt.Fprintln(out, "the configuration is good")
	return 0
}

func tellFaults(w io.Writer, faults config.Faults) int {
	for _, f := range faults {
		fmt.Fprintln(w, "ticktier-exporter:", f)
	}
	return exitUsage
}

// tryDir tells why nothing can be written into a directory, or into the first above it
// that is there, where it is yet to be made.
func tryDir(dir string) error {
	if dir == "" {
		return nil
	}
	for {
		info, err := os.Stat(dir)
		if errors.Is(err, os.ErrNotExist) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is no directory", dir)
		}
		break
	}
	made, err := os.MkdirTemp(dir, ".try-")
	if err != nil {
		return fmt.Errorf("nothing can be written in %s: %w", dir, errors.Unwrap(err))
	}
	return os.Remove(made)
}

// warn logs what is no fault and yet hardly meant.
func (r *runFlags) warn(log *slog.Logger, environ []string) {
	for _, name := range unknownVariables(environ) {
		log.Warn("environment variable is no flag's and changes nothing", "name", name)
	}
	for _, name := range r.foreign.passedOver {
		log.Warn("flag is node_exporter's and changes nothing here", "flag", name)
	}
	for _, p := range []struct{ flag, dir, has string }{
		{"--path.procfs", r.config.PathProcfs, "stat"},
		{"--path.sysfs", r.config.PathSysfs, "devices"},
	} {
		if _, err := os.Stat(filepath.Join(p.dir, p.has)); errors.Is(err, os.ErrNotExist) {
			log.Warn("there is no such file system of the kernel here: what would be read of it is absent", "flag", p.flag, "dir", p.dir, "lacks", p.has)
		}
	}
}

// unknownVariables are the variables that begin like ours and are no flag's, neither of
// run nor of another verb: most likely they are mistyped.
func unknownVariables(environ []string) []string {
	var ours []string
	for _, kv := range environ {
		if strings.HasPrefix(kv, envPrefix) {
			ours = append(ours, kv)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	r := newRunFlags()
	r.addFormat()
	ours = r.set.Unknown(ours)
	for _, c := range clients() {
		ours = clientSet(&c).Unknown(ours)
	}
	return ours
}

// clientSet is the flags of a client.
func clientSet(c *client) *flags.Set {
	set := flags.New(envPrefix)
	set.Struct(c.args, nil)
	return set
}
