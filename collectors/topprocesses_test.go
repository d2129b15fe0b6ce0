package collectors

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// topStat is a process's stat with what is read of it.
func topStat(pid int, name string, ticks, start, pages int64) string {
	return fmt.Sprintf("%d (%s) S 1 %d %d 0 -1 4194560 1 2 3 4 %d %d 0 0 20 0 1 0 %d 4096 %d 1844 1\n", pid, name, pid, pid, ticks-ticks/2, ticks/2, start, pages)
}

func openTop(t *testing.T, tr *tree) (*topProcesses, *probe, *int64) {
	t.Helper()
	src, err := newTopProcesses(tr.env())
	if err != nil {
		t.Fatal(err)
	}
	s := src.(*topProcesses)
	now := int64(time.Hour)
	s.clock = func() int64 { return now }
	s.page = 4096
	return s, newProbe(t, src), &now
}

func TestTopProcesses(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/10/stat", topStat(10, "a (b) c", 1000, 5, 10))
	tr.write("proc/11/stat", topStat(11, "worker", 100, 5, 20))
	tr.write("proc/12/stat", topStat(12, "worker", 100, 5, 30))
	tr.write("proc/13/stat", "13 (half")
	tr.write("proc/self/stat", topStat(99, "self", 9, 9, 9))
	_, p, now := openTop(t, tr)
	cpu := func(name string) string { return `node_top_processes_cpu_ratio{name="` + name + `"}` }
	memory := func(name string) string { return `node_top_processes_resident_bytes{name="` + name + `"}` }
	want(t, p.read(), "", map[string]float64{memory("a (b) c"): 40960, memory("worker"): 204800}) // of CPU time there is no before

	*now += int64(10 * time.Second)
	tr.write("proc/10/stat", topStat(10, "a (b) c", 2000, 5, 10)) // a whole CPU
	tr.write("proc/11/stat", topStat(11, "worker", 150, 5, 20))
	tr.write("proc/12/stat", topStat(12, "worker", 40, 77, 30)) // the number is another process's
	tr.write("proc/14/stat", topStat(14, "new", 20, 80, 1))
	want(t, p.read(), "cpu", map[string]float64{cpu("a (b) c"): 1, cpu("worker"): 0.09, cpu("new"): 0.02})

	*now += int64(10 * time.Second)
	want(t, p.read(), "cpu", map[string]float64{})
}

// Only those ahead are reported, and names are bounded for ever.
func TestTopProcessesBounds(t *testing.T) {
	tr := newTree(t)
	for i := range maxTopNames + 5 {
		tr.write(fmt.Sprintf("proc/%d/stat", 100+i), topStat(100+i, fmt.Sprint("p", i), 1, 5, int64(i+1)))
	}
	s, p, _ := openTop(t, tr)
	got := p.read()
	if len(got) != topNames {
		t.Errorf("%d series", len(got))
	}
	if len(s.names) > maxTopNames+1 || p.out.Stats.Overflow.Load() != 5 {
		t.Errorf("%d names, %d over", len(s.names), p.out.Stats.Overflow.Load())
	}
	for name := range got {
		if strings.Contains(name, `""`) {
			t.Errorf("got %s", name)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _ = p.src.Read(p.out) }); n != 0 {
		t.Errorf("%v allocations a read", n)
	}
}

func FuzzTopStat(f *testing.F) {
	f.Add([]byte(topStat(1, "a) (b", 3, 4, 5)))
	f.Add([]byte("1 () S 1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		comm, p, pages, ok := parseTopStat(text)
		if ok && (len(comm) == 0 || p.ticks < 0 || pages < 0) {
			t.Errorf("%q: %q, %v, %d", text, comm, p, pages)
		}
	})
}
