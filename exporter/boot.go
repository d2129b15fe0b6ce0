package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ticktier/ticktier/collectors"
)

// sinceBoot are the sources all of whose counters began at zero when the kernel
// booted. Interfaces and disks are not among them: they come later, and no file
// says when.
var sinceBoot = []string{"stat", "softnet", "softirqs", "interrupts", "vmstat", "pressure", "schedstat"}

// sinceBootOfHost are those of which that is true of the host's network only: a
// container's counters begin with its namespace.
var sinceBootOfHost = []string{"netstat"}

// counterStarts tells when a counter began: at boot, if procfs says when that was,
// or with the exporter. wall is the wall time in ms of monotonic time 0.
func counterStarts(env collectors.Env, specs []collectors.Spec, wall int64) func(*collectors.Series) (int64, bool) {
	boot, ok := bootTime(filepath.Join(env.Procfs, "stat"))
	ok = ok && boot*1000 <= wall // or the clock was set in between
	from := sinceBoot
	if collectors.HostNetwork(env) {
		from = slices.Concat(sinceBoot, sinceBootOfHost)
	}
	starts := make(map[uint8]int64)
	for i, s := range specs {
		if ok && slices.Contains(from, s.Name) {
			starts[uint8(i)] = boot*1e9 - wall*1e6
		}
		if s.Name == selfSource {
			starts[uint8(i)] = 0
		}
	}
	return func(s *collectors.Series) (int64, bool) {
		if strings.HasPrefix(s.Name, ownCgroup) {
			return 0, false
		}
		t, ok := starts[s.Source]
		return t, ok
	}
}

// ownCgroup begins the names of what the exporter tells of its control group, which was
// there before it and tells nobody since when.
const ownCgroup = "ticktier_exporter_cgroup_"

// startWall turns monotonic start times into Unix ms that stay the same: one that
// moved would tell a scraper that the counter began anew. The clock's slewing is
// ignored, a step is not. It is safe for concurrent use.
type startWall struct {
	now  func() int64           // monotonic, ns
	wall func(mono int64) int64 // Unix ms

	mu     sync.Mutex
	offset int64 // wall time at monotonic time 0, ms
}

// clockStep is the smallest change in ms that is a step of the clock.
const clockStep = 1000

// of is the wall time of a start; false while the clock is not set.
func (c *startWall) of(mono int64) (ms int64, ok bool) {
	now := c.now()
	wall := c.wall(now)
	if wall < clockFloor {
		return 0, false
	}
	off := wall - now/1e6
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := off - c.offset; d >= clockStep || d <= -clockStep {
		c.offset = off
	}
	ms = c.offset + mono/1e6
	return ms, ms > 0
}

// bootTime is the btime of a /proc/stat, in Unix seconds.
func bootTime(file string) (int64, bool) {
	b, err := collectors.ReadFileSoon(file)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			t, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			return t, err == nil && t > 0
		}
	}
	return 0, false
}
