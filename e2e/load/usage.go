package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has used since its start.
type usage struct {
	cpu  time.Duration // user and system
	rss  int64         // resident set, in bytes
	peak int64         // the highest it was
}

// usageOf reads it from /proc. The kernel counts CPU time there in hundredths of a
// second, which is fine enough for runs of many seconds.
func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return usage{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var u usage
	for _, f := range fields[11:13] { // utime and stime, counted from the third field
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return usage{}, err
		}
		u.cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	for line := range strings.Lines(string(status)) {
		for prefix, to := range map[string]*int64{"VmHWM:": &u.peak, "VmRSS:": &u.rss} {
			rest, ok := strings.CutPrefix(line, prefix)
			if !ok {
				continue
			}
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				return usage{}, err
			}
			*to = kib << 10
		}
	}
	return u, nil
}
