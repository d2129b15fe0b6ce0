package main

import (
	"os"
	"runtime/debug"

	"github.com/ticktier/ticktier/exporter/config"
)

const (
	// garbage is how much of it may gather before it is collected. Ticks, pushes and
	// scrapes make little: at 10 Hz this is a collection every few seconds.
	garbage = 1 << 20
	// liveMemory is what lives beside the ring, about: schema, tables, buffers.
	liveMemory = 2 << 20
	// baseMemory is what Go's runtime may take beside the ring, all told. About 8 MiB
	// are in use with 800 series at 10 Hz.
	baseMemory = 14 << 20
	// senderMemory is what a sender may take: its batch, its tables, its request.
	senderMemory = 3 << 20
)

// limitMemory fits the collector of garbage to the configuration. The ring is one
// piece of memory that lives for ever, so the default, to let memory double, would
// be a waste of as much again; and memory that grows past all that is needed is to
// be collected hard. GOGC and GOMEMLIMIT go before. It returns the limit in bytes.
func limitMemory(cfg *config.Config) int64 {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent(int64(cfg.RingMaxBytes)))
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return debug.SetMemoryLimit(-1)
	}
	limit := int64(cfg.RingMaxBytes) + baseMemory + senderMemory*int64(len(cfg.RemoteWriteURL))
	debug.SetMemoryLimit(limit)
	return limit
}

// gcPercent is the GOGC with which garbage gathers beside a ring.
func gcPercent(ring int64) int { return int(max(1, 100*garbage/(ring+liveMemory))) }
