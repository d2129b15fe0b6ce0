package collectors

import "testing"

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
