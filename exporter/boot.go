package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"

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
		t, ok := starts[s.Source]
		return t, ok
	}
}

// bootTime is the btime of a /proc/stat, in Unix seconds.
func bootTime(file string) (int64, bool) {
	b, err := collectors.ReadFile(file)
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
