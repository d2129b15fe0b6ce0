package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSlots(t *testing.T) {
	names := map[string]time.Duration{"stat": 0, "netdev": 0, "meminfo": time.Second, "netclass": 5 * time.Second}
	for _, c := range []struct {
		c    cell
		file string
		want int64
	}{
		{cell{Rate: 10, Sources: "default"}, "/proc/stat", 1},
		{cell{Rate: 10, Sources: "default"}, "/proc/1/net/dev", 1},
		{cell{Rate: 10, Sources: "default"}, "/proc/meminfo", 10},
		{cell{Rate: 100, Sources: "default"}, "/sys/devices/pci0000:00/0000:00:01.0/virtio1/net/eth0/mtu", 500},
		{cell{Rate: 100, Sources: "default"}, "/sys/devices/virtual/net/lo/statistics/rx_nohandler", 500},
		{cell{Rate: 100, Sources: "default"}, "/proc/nobody", 100},
		{cell{Rate: 100, Sources: "every tick"}, "/proc/meminfo", 1},
	} {
		if got := slots(c.c, names, c.file); got != c.want {
			t.Errorf("%v %s: %d, want %d", c.c, c.file, got, c.want)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		want          bool
	}{
		{"/proc/stat", "/proc/stat", true}, {"/proc/stat", "/proc/stats", false}, {"/proc/*/net/dev", "/proc/1/net/dev", true},
		{"/proc/*/net/dev", "/proc/1/net/dev2", false}, {"/proc/*/net/dev", "/proc/net/dev", false},
		{"/a/*/net/*", "/a/b/c/net/eth0/mtu", true}, {"/a/*/net/*", "/a/b/c", false}, {"/a/*", "/a", false},
		{"/proc/*/net/snmp*", "/proc/self/net/snmp", true}, {"/proc/*/net/snmp*", "/proc/self/net/snmp6", true},
	} {
		if got := matches(c.pattern, c.file); got != c.want {
			t.Errorf("%s %s: %v", c.pattern, c.file, got)
		}
	}
}

// A file that is open twice, or under two names, is read once.
func TestAdd(t *testing.T) {
	files := add(add(add(nil, entry{Path: "a", Every: 1}), entry{Path: "b"}), entry{Path: "a", Every: 5})
	if len(files) != 2 || files[0].Every != 1 {
		t.Errorf("%v", files)
	}
}

// The cells are those of the rates that are to be measured, and can be chosen from.
func TestCells(t *testing.T) {
	o := options{}
	all, err := o.chosen()
	if err != nil || len(all) != 10 {
		t.Errorf("%v, %v", all, err)
	}
	o.cells = "fast"
	if some, err := o.chosen(); err != nil || len(some) != 3 {
		t.Errorf("%v, %v", some, err)
	}
	o.cells = "slow"
	if _, err := o.chosen(); err == nil {
		t.Error("no cell and no error")
	}
	o.tree = "tree"
	c := cell{Rate: 100, Sources: routerTree}
	args := strings.Join(c.args(&o, map[string]time.Duration{"stat": 0, "ping": 0}), " ")
	if !strings.Contains(args, "--path.procfs=tree/proc") || !strings.Contains(args, "--no-collector.ping") ||
		strings.Contains(args, "--no-collector.stat") {
		t.Error(args)
	}
}

// What the exporter does with a byte is what it costs beyond the reads.
func TestBeyond(t *testing.T) {
	floor := result{Program: "floor", CPU: spread{Median: 100}}
	r := result{cell: cell{Rate: 100, Sources: routerTree}, Program: "ticktier", CPU: spread{Median: 160}, Bytes: spread{Median: 20000}}
	beyond(&floor, &floor)
	beyond(&floor, &r)
	var b strings.Builder
	printBytes(&b, &report{Results: []result{floor, r}})
	if floor.PerByte != 0 || r.PerByte != 3 || !strings.Contains(b.String(), "20000 bytes a tick, 3.00 ns a byte") {
		t.Error(r.PerByte, &b)
	}
}

func TestCadences(t *testing.T) {
	help := "      --[no-]collector.stat      Read every tick: bursts.\n      --[no-]collector.os   Read every 1m0s: it\n  changes.\n"
	m := cadence.FindAllStringSubmatch(help, -1)
	if len(m) != 2 || m[0][1] != "stat" || m[0][2] != "tick" || m[1][1] != "os" || m[1][2] != "1m0s" {
		t.Errorf("%q", m)
	}
}

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/x", "a/y", "b/x", "b/z"} {
		_ = os.Mkdir(filepath.Dir(filepath.Join(dir, name)), 0o700)
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string]int{"/*/{x,y}": 3, "/*/z": 1, "/b/*": 2, "/c/{x,y}": 0} {
		if got := expand(dir + pattern); len(got) != want {
			t.Errorf("%s: %q", pattern, got)
		}
	}
}

func TestEntry(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for size, reads := range map[int]int{0: 1, 1: 1, 4095: 1, 4096: 1, 20000: 1} {
		if err := os.WriteFile(file, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
		e := entry{Path: file}
		if err := e.open(); err != nil || e.reads != reads || len(e.buf) <= size {
			t.Errorf("%d bytes: %d reads into %d, %v", size, e.reads, len(e.buf), err)
		}
	}
	if err := (&entry{Path: file + "x"}).open(); err == nil {
		t.Error("a file that is not there was opened")
	}
}

func TestFloorArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"0"}, {"1001"}, {"x"}} {
		if err := floor(args, strings.NewReader("[]"), new(bytes.Buffer)); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}

func TestSummary(t *testing.T) {
	ms := time.Millisecond
	r := summarise(cell{Rate: 10}, "x", []sample{
		{cpu: 10 * ms, user: 10 * ms, system: 30 * ms, ticks: 10, missed: 1},
		{cpu: 30 * ms, ticks: 10}, {cpu: 20 * ms, ticks: 10, late: 2},
	}, time.Second)
	if want := (spread{2000, 1000, 3000}); r.CPU != want {
		t.Errorf("CPU %v, want %v", r.CPU, want)
	}
	if r.User != 500 || r.System != 1500 || r.Core != 2 || r.Ticks != 30 || r.Missed != 1 || r.Late != 2 {
		t.Errorf("%+v", r)
	}
	var b strings.Builder
	printVerdict(&b, &report{LoadBefore: 1.1, Results: []result{r}})
	if !strings.Contains(b.String(), "no verdict") {
		t.Error(&b)
	}
	b.Reset()
	floor, over := r, r
	floor.Program, over.Program, over.CPU.Median = "floor", "ticktier", 2600
	printVerdict(&b, &report{Results: []result{floor, over}})
	if !strings.Contains(b.String(), "1.30 × the floor: OVER") {
		t.Error(&b)
	}
}

func TestCPU(t *testing.T) {
	for before, _, _, err := cpuOf(os.Getpid()); ; {
		after, user, system, err2 := cpuOf(os.Getpid())
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if after > before && user+system >= 0 {
			break
		}
	}
	if n, err := rssOf(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("RSS %d, %v", n, err)
	}
	if !slices.Contains(fast, "stat") {
		t.Error("stat is not fast")
	}
}
