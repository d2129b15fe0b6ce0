package collectors

import (
	"fmt"
	"strings"
	"testing"
)

func cpuLine(cpu string, v ...int) string {
	return "cpu" + cpu + " " + strings.Trim(fmt.Sprint(v), "[]") + "\n"
}

func iowait(cpu string) string {
	return fmt.Sprintf(`node_cpu_seconds_total{cpu=%q,mode="iowait"}`, cpu)
}

// A counter that steps back by a tick is held and counted, and one line is logged.
func TestStatHoldsSmallStepBack(t *testing.T) {
	tr := newTree(t)
	write := func(ticks int) { tr.write("proc/stat", cpuLine("0", 1, 2, 3, 4, ticks, 6, 7, 8, 9, 10)) }
	write(912340)
	p := tr.open("stat")
	wanted := []float64{9123.40, 9123.41, 9123.41, 9123.41, 9123.42}
	for i, ticks := range []int{912340, 912341, 912340, 912340, 912342} {
		write(ticks)
		if got := p.read()[iowait("0")]; got != wanted[i] {
			t.Errorf("read %d: got %v, want %v", i, got, wanted[i])
		}
	}
	p.wantStats(0, 1, 0)
	if n := strings.Count(tr.log.String(), "\n"); n != 1 {
		t.Errorf("got %d log lines, want 1:\n%s", n, tr.log.String())
	}
}

// A large step back is an unplugged CPU: all its values start anew, others stay.
func TestStatReset(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/stat", cpuLine("0", 1000, 0, 500, 9000, 40)+cpuLine("1", 1000, 0, 500, 9000, 40))
	p := tr.open("stat")
	p.read()
	tr.write("proc/stat", cpuLine("0", 1000, 0, 500, 9000, 39)+cpuLine("1", 999, 0, 500, 100, 39))
	got := p.read()
	want(t, got, `mode="iowait"`, map[string]float64{iowait("0"): 0.40, iowait("1"): 0.39})
	want(t, got, `mode="user"`, map[string]float64{
		`node_cpu_seconds_total{cpu="0",mode="user"}`: 10, `node_cpu_seconds_total{cpu="1",mode="user"}`: 9.99})
	want(t, got, `mode="idle"`, map[string]float64{
		`node_cpu_seconds_total{cpu="0",mode="idle"}`: 90, `node_cpu_seconds_total{cpu="1",mode="idle"}`: 1})
	p.wantStats(0, 1, 0)
}

// A CPU is known by the kernel's id, whatever row it is in; one that vanishes is
// absent and comes back in its old slots with whatever it has then.
func TestStatHotplug(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/stat", cpuLine("0", 1, 1, 1, 1, 10)+cpuLine("1", 1, 1, 1, 1, 20)+cpuLine("3", 1, 1, 1, 1, 30))
	p := tr.open("stat")
	p.read()
	slots := p.schema.Len()
	tr.write("proc/stat", cpuLine("0", 1, 1, 1, 1, 11)+cpuLine("3", 1, 1, 1, 1, 31))
	want(t, p.read(), `mode="iowait"`, map[string]float64{iowait("0"): 0.11, iowait("3"): 0.31})
	tr.write("proc/stat", cpuLine("0", 1, 1, 1, 1, 12)+cpuLine("1", 1, 1, 1, 1, 19)+cpuLine("3", 1, 1, 1, 1, 32))
	want(t, p.read(), `mode="iowait"`, map[string]float64{iowait("0"): 0.12, iowait("1"): 0.19, iowait("3"): 0.32})
	if p.schema.Len() != slots {
		t.Errorf("got %d slots, want %d as before", p.schema.Len(), slots)
	}
	p.wantStats(0, 0, 0)
}

func TestStatOddRows(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/stat", cpuLine("0", 1, 1, 1, 1)+ // Linux 2.4
		"cpu1 1 1 x 1 1\n"+ // no number
		"cpu2 1 1\n"+ // too short
		"cpu 4 4 4 4\n"+
		"cpuX 1 1 1 1\n"+
		cpuLine("4", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)+ // columns to come
		cpuLine("4", 1, 1, 1, 1)+ // twice
		"cpu5 18446744073709551615 18446744073709551616 1 1\n"+ // one too large
		"cpu6 18446744073709551615 0 0 0\n"+
		"ctxt 18446744073709551615\n"+
		"processes -1442784\n"+
		"intr 12"+strings.Repeat(" 0", 40_000)+"\n"+
		"procs_running\n"+
		"new_in_linux_9 1 2 3\n\n")
	p := tr.open("stat")
	got := p.read()
	p.wantStats(7, 0, 0)
	want(t, got, `mode="idle"`, map[string]float64{
		`node_cpu_seconds_total{cpu="0",mode="idle"}`: 0.01,
		`node_cpu_seconds_total{cpu="4",mode="idle"}`: 0.01,
		`node_cpu_seconds_total{cpu="6",mode="idle"}`: 0})
	want(t, got, `cpu="0"`, map[string]float64{
		`node_cpu_seconds_total{cpu="0",mode="idle"}`:   0.01,
		`node_cpu_seconds_total{cpu="0",mode="nice"}`:   0.01,
		`node_cpu_seconds_total{cpu="0",mode="system"}`: 0.01,
		`node_cpu_seconds_total{cpu="0",mode="user"}`:   0.01})
	want(t, got, "node_context", map[string]float64{"node_context_switches_total": 18446744073709551615})
	want(t, got, "node_intr", map[string]float64{"node_intr_total": 12})
	want(t, got, "node_forks", map[string]float64{})
	if n := strings.Count(tr.log.String(), "\n"); n != 1 {
		t.Errorf("got %d log lines, want 1:\n%s", n, tr.log.String())
	}
}

// A file that is cut in the middle of a row costs that row.
func TestStatCut(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/stat", cpuLine("0", 1, 1, 1, 1, 10)+cpuLine("1", 1, 1, 1, 1, 20)+"ctxt 5\n")
	p := tr.open("stat")
	p.read()
	tr.write("proc/stat", cpuLine("0", 1, 1, 1, 1, 11)+"cpu1 1 1 1 1")
	got := p.read()
	want(t, got, `cpu="1"`, map[string]float64{})
	want(t, got, `mode="iowait"`, map[string]float64{iowait("0"): 0.11})
	want(t, got, "context", map[string]float64{})
	tr.write("proc/stat", "")
	if err := p.src.Read(p.out); err == nil {
		t.Error("an empty file is no error")
	}
}
