package collectors

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestOwnCgroup(t *testing.T) {
	const v2 = "0::/system.slice/ticktier.service\n"
	for _, c := range []struct {
		name, cgroup string
		files        map[string]string
		want         map[string]float64
	}{
		{"version 2", v2, map[string]string{
			"system.slice/ticktier.service/memory.current": "1000\n", "system.slice/ticktier.service/memory.max": "2000\n",
			"system.slice/ticktier.service/memory.events": "low 0\noom 9\noom_kill 3\n",
			"system.slice/ticktier.service/cpu.stat":      "usage_usec 1500000\nnr_throttled 7\nthrottled_usec 250000\n",
		}, map[string]float64{
			"ticktier_exporter_cgroup_memory_bytes": 1000, "ticktier_exporter_cgroup_memory_max_bytes": 2000,
			"ticktier_exporter_cgroup_memory_oom_kills_total": 3, "ticktier_exporter_cgroup_cpu_seconds_total": 1.5,
			"ticktier_exporter_cgroup_cpu_throttled_seconds_total": 0.25}},
		{"no limit", v2, map[string]string{"system.slice/ticktier.service/memory.max": "max\n"}, map[string]float64{}},
		{"a container sees its group as the root", "0::/\n", map[string]string{"memory.current": "5\n"},
			map[string]float64{"ticktier_exporter_cgroup_memory_bytes": 5}},
		{"a container that is told the host's path", "0::/docker/abc\n", map[string]string{"memory.current": "5\n"},
			map[string]float64{"ticktier_exporter_cgroup_memory_bytes": 5}},
		{"version 1", "4:memory:/a\n2:cpu,cpuacct:/b\n", map[string]string{
			"memory/a/memory.usage_in_bytes": "7\n", "memory/a/memory.limit_in_bytes": "9223372036854771712\n",
			"memory/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
			"cpuacct/b/cpuacct.usage":     "3000000000\n", "cpu,cpuacct/b/cpu.stat": "nr_periods 1\nthrottled_time 1000000000\n",
		}, map[string]float64{"ticktier_exporter_cgroup_memory_bytes": 7, "ticktier_exporter_cgroup_memory_oom_kills_total": 2,
			"ticktier_exporter_cgroup_cpu_seconds_total": 3, "ticktier_exporter_cgroup_cpu_throttled_seconds_total": 1}},
		{"the machine's root of version 1", "4:memory:/\n", map[string]string{"memory/memory.usage_in_bytes": "7\n"}, map[string]float64{}},
		{"both, memory in version 1", "4:memory:/a\n0::/\n", map[string]string{"memory/a/memory.usage_in_bytes": "7\n", "unified/cpu.stat": "usage_usec 1000000\n"},
			map[string]float64{"ticktier_exporter_cgroup_memory_bytes": 7, "ticktier_exporter_cgroup_cpu_seconds_total": 1}},
		{"the machine's root of version 2", "0::/\n", map[string]string{"cpu.stat": "usage_usec 1000000\n"}, map[string]float64{}},
		{"nothing", "", nil, map[string]float64{}},
		{"nonsense", "::\nx\n0::\n", map[string]string{"memory.current": "lots\n"}, map[string]float64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(t)
			tr.write("self/cgroup", c.cgroup)
			for name, text := range c.files {
				tr.write("cgroup/"+name, text)
				if !strings.Contains(c.name, "root of") {
					tr.write("cgroup/"+filepath.Dir(name)+"/cgroup.events", "populated 1\n")
				}
			}
			g := openOwnCgroup(filepath.Join(tr.dir, "self"), filepath.Join(tr.dir, "cgroup"))
			p := newProbe(t, &exporter{group: g})
			g.read(p.out)
			want(t, p.present(), "", c.want)
			if n := testing.AllocsPerRun(20, func() { g.read(p.out) }); n != 0 {
				t.Errorf("%v allocations a read", n)
			}
		})
	}
}

func FuzzOwnCgroup(f *testing.F) {
	f.Add([]byte("0::/a\n4:memory,cpu:/b\n"), []byte("oom_kill 3\n"))
	f.Fuzz(func(t *testing.T, cgroup, text []byte) {
		for _, controller := range []string{"", "memory", "cpu"} {
			for _, dir := range ownCgroupDirs(cgroup, "/root", controller) {
				if len(dir) < 5 {
					t.Errorf("%q: %q", cgroup, dir)
				}
			}
		}
		keyedValue(text, "oom_kill")
		keyedValue(text, "")
	})
}
