package collectors

import (
	"os"
	"path/filepath"
	"testing"
)

func TestProcesses(t *testing.T) {
	tr := newTree(t)
	stat := func(state, threads string) string {
		return "7 (a ) S 9) " + state + " 1 1 1 0 -1 0 40 0 0 0 10 20 0 0 20 0 " + threads + " 0 250\n"
	}
	tr.write("proc/sys/kernel/threads-max", "1000\n")
	tr.write("proc/sys/kernel/pid_max", "32768\n")
	tr.write("proc/1/stat", stat("S", "1"))
	tr.write("proc/20/stat", stat("R", "3"))
	tr.write("proc/20/task/20/stat", stat("R", "3"))
	tr.write("proc/20/task/21/stat", stat("S", "3"))
	tr.write("proc/20/task/22/stat", "rubbish\n")
	tr.write("proc/30/other", "a process that has just ended\n")
	tr.write("proc/fs/stat", stat("Z", "1"))
	p := tr.open("processes")
	base := map[string]float64{"node_processes_pids": 2, "node_processes_threads": 4, "node_processes_max_threads": 1000,
		"node_processes_max_processes": 32768, `node_processes_state{state="S"}`: 1, `node_processes_state{state="R"}`: 1,
		`node_processes_threads_state{thread_state="S"}`: 2, `node_processes_threads_state{thread_state="R"}`: 1}
	want(t, p.read(), "", base)
	tr.write("proc/20/stat", stat("D", "1"))
	got := p.read()
	want(t, got, `node_processes_state`, map[string]float64{`node_processes_state{state="S"}`: 1,
		`node_processes_state{state="R"}`: 0, `node_processes_state{state="D"}`: 1})
}

func TestZoneinfo(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/zoneinfo", "Node 0, zone      DMA\n  per-node stats\n      nr_dirty     5\n  pages free     3\n        min      -1\n"+
		"        protection: (0, 2991, 18070)\n      nr_free_pages x\n  pagesets\n    cpu: 0\n              high:  0\n              high  9\n"+
		"Node 0, zone   Normal\n        high     7\n        protection: (0, 0)\nNode 1 nothing\n high 8\n")
	p := tr.open("zoneinfo")
	z := func(name, zone string) string { return "node_zoneinfo_" + name + `{node="0",zone="` + zone + `"}` }
	want(t, p.read(), "", map[string]float64{z("nr_dirty_pages", "DMA"): 5, z("min_pages", "DMA"): -1,
		z("protection_0", "DMA"): 0, z("protection_1", "DMA"): 2991, z("protection_2", "DMA"): 18070,
		z("high_pages", "Normal"): 7, z("protection_0", "Normal"): 0, z("protection_1", "Normal"): 0})
	p.wantStats(2, 0, 0)
	tr.write("proc/zoneinfo", "Node 0, zone      DMA\n        protection: (0)\n")
	want(t, p.read(), "", map[string]float64{z("protection_0", "DMA"): 0})
}

func FuzzZoneinfo(f *testing.F) {
	fuzzSource(f, "proc/zoneinfo", func() (Source, func(*Out, []byte) error) {
		s := &zoneinfo{file: &file{fd: -1}, faults: newFaults(Env{}, "zoneinfo"), rows: newTable[zoneRow](16)}
		return s, s.parse
	})
}

func FuzzProcessStat(f *testing.F) {
	f.Add([]byte("7 (a) S 1 1 1 0 -1 0 40 0 0 0 10 20 0 0 20 0 9 0 250"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if state, n, ok := parseProcessStat(text); ok && (n < 0 || blank(state)) {
			t.Errorf("got state %q and %d threads", state, n)
		}
	})
}

func TestSELinux(t *testing.T) {
	tr := newTree(t)
	p := tr.open("selinux")
	want(t, p.read(), "", map[string]float64{"node_selinux_enabled": 0})
	tr.write("sys/fs/selinux/enforce", "1")
	tr.write("etc/selinux/config", "# SELINUX=disabled\nSELINUX=permissive\nSELINUXTYPE=targeted\n")
	want(t, p.read(), "", map[string]float64{"node_selinux_enabled": 1, "node_selinux_current_mode": 1, "node_selinux_config_mode": 0})
	for text, mode := range map[string]int64{"": -1, "SELINUX=enforcing": 1, "SELINUX=disabled": -1, " SELINUX=permissive ": 0} {
		if got := selinuxMode([]byte(text)); got != mode {
			t.Errorf("%q: got %d, want %d", text, got, mode)
		}
	}
}

func FuzzUdev(f *testing.F) {
	f.Add([]byte("S:disk/x\nE:ID_MODEL=Disk\nE:=\nE:a\n"))
	f.Fuzz(func(t *testing.T, text []byte) { parseUdev(text) })
}

func TestCgroup(t *testing.T) {
	tr := newTree(t)
	if _, err := newCgroup(tr.env()); err == nil {
		t.Error("no groups and no error")
	}
	root := "sys/fs/cgroup/"
	tr.write(root+"cgroup.controllers", "cpu io memory pids\n")
	tr.write(root+"system.slice/cpu.stat", "usage_usec 3000000\nuser_usec 2000000\nsystem_usec x\nnew 1\n")
	tr.write(root+"system.slice/a.service/memory.current", "4096\n")
	tr.write(root+"system.slice/a.service/memory.events", "low 0\nhigh 2\nmax 0\noom 1\noom_kill 1\n")
	tr.write(root+"system.slice/a.service/io.stat", "8:0 rbytes=100 wbytes=20 rios=3 wios=2 dbytes=0\n8:16 rbytes=1 wbytes=-1 rios=1 wios=1\n")
	tr.write(root+"system.slice/a.service/sub/pids.current", "max\n")
	tr.write(root+"system.slice/a.service/sub/deep/pids.current", "3\n")
	p := tr.open("cgroup")
	c := func(name, group string) string {
		return "node_cgroup_" + name + `{cgroup="/system.slice` + group + `"}`
	}
	want(t, p.read(), "", map[string]float64{c("cpu_usage_seconds_total", ""): 3, c("cpu_user_seconds_total", ""): 2,
		c("memory_current_bytes", "/a.service"): 4096, c("memory_high_total", "/a.service"): 2, c("memory_oom_kills_total", "/a.service"): 1,
		c("io_read_bytes_total", "/a.service"): 101, c("io_written_bytes_total", "/a.service"): 20,
		c("io_reads_total", "/a.service"): 4, c("io_writes_total", "/a.service"): 3})
	if n := testing.AllocsPerRun(20, func() {
		if err := p.src.Read(p.out); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations a read", n)
	}
	if err := os.RemoveAll(filepath.Join(tr.dir, root, "system.slice/a.service")); err != nil {
		t.Fatal(err)
	}
	want(t, p.read(), "", map[string]float64{c("cpu_usage_seconds_total", ""): 3, c("cpu_user_seconds_total", ""): 2})
}

func FuzzCgroup(f *testing.F) {
	f.Add([]byte("usage_usec 3\n8:0 rbytes=100 wbytes=20\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, file := range cgroupFiles {
			var v [maxCgroupValues]uint64
			var has [maxCgroupValues]bool
			parseCgroup(text, file.values, &v, &has)
		}
	})
}
