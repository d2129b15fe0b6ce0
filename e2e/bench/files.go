package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// owners tell which source keeps a file open, by the file's path. The exporter says
// how often each source is read; which file is whose it does not say.
var owners = []struct{ pattern, collector string }{
	{"/proc/stat", "stat"}, {"/proc/self/net/softnet_stat", "softnet"}, {"/proc/softirqs", "softirqs"},
	{"/proc/interrupts", "interrupts"}, {"/proc/*/net/dev", "netdev"}, {"/proc/vmstat", "vmstat"},
	{"/proc/diskstats", "diskstats"}, {"/proc/pressure/*", "pressure"}, {"/proc/*/net/snmp*", "netstat"},
	{"/proc/*/net/netstat", "netstat"}, {"/proc/schedstat", "schedstat"}, {"/proc/sys/net/netfilter/*", "conntrack"},
	{"/proc/*/net/stat/nf_conntrack", "conntrack"}, {"/proc/meminfo", "meminfo"}, {"/proc/loadavg", "loadavg"},
	{"/proc/*/net/sockstat*", "sockstat"}, {"/proc/*/net/udp*", "udp_queues"}, {"/proc/*/net/arp", "arp"},
	{"/proc/sys/fs/file-nr", "filefd"}, {"/proc/sys/kernel/random/*", "entropy"}, {"/proc/sys/kernel/hung*", "kernel_hung"},
	{"/sys/devices/system/clocksource/*/*", "time"}, {"/sys/devices/*/net/*", "netclass"}, {"/sys/devices/system/cpu/*/cpufreq/*", "cpufreq"},
	{"/sys/devices/system/cpu/online", "stat"}, {"/sys/class/thermal/*/*", "thermal_zone"},
	{"/sys/class/hwmon/*/*", "hwmon"}, {"/proc/*/mountinfo", "filesystem"}, {"/sys/class/dmi/id/*", "dmi"},
	{"/proc/self/stat", "exporter"}, {"/proc/slabinfo", "slabinfo"}, {"/proc/buddyinfo", "buddyinfo"},
	{"/proc/zoneinfo", "zoneinfo"},
}

// passing are files that a source opens for each read and closes again, where it reads
// them seldom, so that they are not found among those that it keeps; the floor keeps
// them.
var passing = map[string]string{
	"netclass": "/sys/class/net/*/{addr_assign_type,carrier,carrier_changes,carrier_up_count,carrier_down_count,dev_id,dormant," +
		"flags,ifindex,iflink,link_mode,mtu,name_assign_type,netdev_group,speed,tx_queue_len,type,statistics/rx_nohandler," +
		"address,broadcast,duplex,operstate,ifalias}",
}

var cadence = regexp.MustCompile(`(?m)^ +--\[no-\]collector\.(\S+) +Read every (\S+):`)

// collectorNames are the sources that the exporter has, with their cadences, as it
// tells them in its help; 0 is every tick.
func collectorNames(ctx context.Context, bin string) (map[string]time.Duration, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "ticktier-exporter"), "--help").Output()
	if err != nil {
		return nil, fmt.Errorf("ask the exporter for its sources: %w", err)
	}
	names := map[string]time.Duration{}
	// A name may be so long that the rest is on a line of its own.
	for _, m := range cadence.FindAllStringSubmatch(string(out), -1) {
		d, err := time.ParseDuration(m[2])
		if err != nil && m[2] != "tick" {
			return nil, fmt.Errorf("the exporter reads %s every %s", m[1], m[2])
		}
		names[m[1]] = d
	}
	if len(names) < 5 {
		return nil, fmt.Errorf("the exporter's help tells of %d sources", len(names))
	}
	return names, nil
}

// discover starts the exporter of a cell and looks which files it keeps open.
func discover(ctx context.Context, o *options, c cell, names map[string]time.Duration) ([]entry, error) {
	p, _, err := startExporter(ctx, o, c, names)
	if err != nil {
		return nil, err
	}
	defer p.Kill()
	if err := sleep(ctx, max(o.settle, 10*time.Second/time.Duration(c.Rate))); err != nil {
		return nil, err
	}
	dir := fmt.Sprintf("/proc/%d/fd", p.PID())
	fds, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	roots := []string{"/proc", "/sys"}
	if tree, err := filepath.Abs(o.tree); err == nil {
		roots = append(roots, tree)
	}
	var out []entry
	for _, fd := range fds {
		name, err := os.Readlink(path.Join(dir, fd.Name()))
		if err != nil {
			continue // closed meanwhile
		}
		st, err := os.Stat(name)
		if err != nil || !st.Mode().IsRegular() || !underAny(name, roots) {
			continue
		}
		name = strings.Replace(name, fmt.Sprintf("/proc/%d/", p.PID()), "/proc/self/", 1)
		if _, err := os.ReadFile(name); err != nil {
			continue // the speed of lo is asked for at each tick and refused
		}
		out = add(out, entry{Path: name, Every: slots(c, names, name)})
	}
	for collector, pattern := range passing {
		if c.Sources == "fast" && !slices.Contains(fast, collector) || c.Sources == routerTree {
			continue
		}
		for _, name := range expand(pattern) {
			// A link that is down has no speed; some may be kept after all.
			real, err := filepath.EvalSymlinks(name)
			if err != nil {
				continue
			}
			if _, err := os.ReadFile(real); err == nil {
				out = add(out, entry{Path: real, Every: slots(c, names, real)})
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the exporter keeps no file open")
	}
	return out, nil
}

// add adds a file, once: of two sources that have the same one open, one asks for what
// never changes, and reads it no more.
func add(files []entry, e entry) []entry {
	if slices.ContainsFunc(files, func(f entry) bool { return f.Path == e.Path }) {
		return files
	}
	return append(files, e)
}

func underAny(name string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return strings.HasPrefix(name, root+"/") })
}

// expand is what a pattern matches; {a,b} in it stands for a or b.
func expand(pattern string) []string {
	before, rest, ok := strings.Cut(pattern, "{")
	list, after, _ := strings.Cut(rest, "}")
	var out []string
	for _, alternative := range strings.Split(list, ",") {
		found, _ := filepath.Glob(before + alternative + after)
		out = append(out, found...)
	}
	if !ok {
		out, _ = filepath.Glob(pattern)
	}
	return out
}

// matches tells whether a path is one of a pattern's, in which * may stand for any
// number of folders too.
func matches(pattern, file string) bool {
	for {
		star := strings.IndexByte(pattern, '*')
		if star < 0 {
			return pattern == file
		}
		if !strings.HasPrefix(file, pattern[:star]) {
			return false
		}
		file, pattern = file[star:], pattern[star+1:]
		if pattern == "" {
			return true
		}
		next := pattern
		if i := strings.IndexByte(next, '*'); i >= 0 {
			next = next[:i]
		}
		i := strings.Index(file, next)
		if len(next) == len(pattern) {
			i = strings.LastIndex(file, next)
		}
		if i < 0 {
			return false
		}
		file = file[i:]
	}
}

// slots is how many slots lie between two reads of a file. One that no source is
// known to own is read once a second.
func slots(c cell, names map[string]time.Duration, file string) int64 {
	if c.Sources == "every tick" || c.Sources == routerTree {
		return 1
	}
	every := time.Second
	for _, o := range owners {
		if matches(o.pattern, file) {
			if d, known := names[o.collector]; known {
				every = d
			}
			break
		}
	}
	return max(1, int64(every)*int64(c.Rate)/int64(time.Second))
}
