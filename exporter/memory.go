package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/config"
)

const (
	// garbage is how much of it may gather before it is collected. Ticks make none,
	// pushes and scrapes little: this is a collection every few seconds, of a
	// millisecond or two. With twice as much the process was 0.7 MiB larger.
	garbage = 512 << 10
	// liveMemory is what lives in Go's heap, about: schema, tables, buffers. The ring
	// is not in it.
	liveMemory = 2 << 20
	// baseMemory is what Go's runtime may take, all told. About 6 MiB are in use with
	// 800 series at 10 Hz.
	baseMemory = 14 << 20
	// senderMemory is what a sender may take: its batch, its tables, its request.
	senderMemory = 3 << 20
	// spoolMemory is what a spool may take: what waits for the disk, a frame on its
	// way there and one for each reader.
	spoolMemory = 2 << 20
	// scrapeMemory is what scraping takes beside its series, and scrapeSeriesMemory
	// what one of those does, its labels included.
	scrapeMemory       = 1 << 20
	scrapeSeriesMemory = 1 << 10
)

// limitMemory fits the collector of garbage to the exporter: the default, to let
// memory double from 4 MiB on, would be a waste of as much again; and memory that
// grows past all that is needed is to be collected hard. GOGC and GOMEMLIMIT go
// before. It returns the limit in bytes, which the ring does not count towards.
func limitMemory(cfg *config.Config) int64 {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100 * garbage / liveMemory)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return debug.SetMemoryLimit(-1)
	}
	debug.SetMemoryLimit(runtimeMemory(cfg))
	return runtimeMemory(cfg)
}

// runtimeMemory is the most that Go's runtime takes.
func runtimeMemory(cfg *config.Config) int64 {
	n := int64(len(cfg.RemoteWriteURL))
	need := baseMemory + senderMemory*n
	if cfg.SpoolDir != "" {
		need += spoolMemory * max(1, n)
	}
	if len(cfg.ScrapeURL) > 0 {
		// Another stream of rows, the series, and one large answer.
		need += senderMemory*n + scrapeMemory + scrapeSeriesMemory*int64(cfg.ScrapeMaxSeries) + int64(cfg.ScrapeMaxBytes)
		if cfg.SpoolDir != "" {
			need += spoolMemory * max(1, n)
		}
	}
	return need
}

// neededMemory is the most that the configuration takes.
func neededMemory(cfg *config.Config) int64 {
	need := int64(cfg.RingMaxBytes) + runtimeMemory(cfg)
	if len(cfg.ScrapeURL) > 0 {
		need += int64(cfg.ScrapeRingMaxBytes)
	}
	return need
}

// addresses32 is how much memory a 32-bit process can have on every kernel: MIPS has
// 2 GiB of addresses for it, ARM 3, and whatever more the machine has is of no use.
const addresses32 = 2 << 30

// checkMemory refuses a configuration that takes more memory than the machine, or
// the control group that the exporter runs in, has, or than a word of so many bits can
// count.
func checkMemory(cfg *config.Config, cgroup string, wordBits int) error {
	has, of := memTotal(filepath.Join(cfg.PathProcfs, "meminfo")), "this machine"
	if b, err := collectors.ReadFileSoon(cgroup); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && (has == 0 || n < has) {
			has, of = n, "this control group"
		}
	}
	if wordBits < 64 && (has == 0 || has > addresses32) {
		has, of = addresses32, "a 32-bit process"
	}
	if need := neededMemory(cfg); has > 0 && need > has {
		return fmt.Errorf("--ring.max-bytes: %s is too much: with what else is needed that is %d MiB, and %s has %d MiB",
			cfg.RingMaxBytes, need>>20, of, has>>20)
	}
	return nil
}

// memTotal is the memory of the machine in bytes by a /proc/meminfo, 0 if it is not
// known.
func memTotal(file string) int64 {
	b, err := collectors.ReadFileSoon(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil || n < 0 || n > 1<<50 {
				return 0
			}
			return n << 10
		}
	}
	return 0
}
