package collectors

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestExporterOnThisProcess(t *testing.T) {
	v, present := int64(math.Float64bits(2.5)), true
	src, err := newExporter(Env{Self: []SelfMetric{{
		Metric: Metric{Name: "ticktier_exporter_x", Kind: Float}, Labels: []Label{{"b", "1"}, {"a", "2"}},
		Read: func() (int64, bool) { return v, present },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	p := newProbe(t, src)
	got := p.read()
	now := float64(time.Now().Unix())
	for _, test := range []struct {
		name     string
		min, max float64
	}{
		{"process_cpu_seconds_total", 0.0001, 3600}, {"process_open_fds", 4, 1000}, {"process_max_fds", 10, 1e10},
		{"process_virtual_memory_bytes", 1e6, 1e14}, {"process_virtual_memory_max_bytes", 1e6, 2e19},
		{"process_resident_memory_bytes", 1e6, 1e11}, {"process_threads", 1, 1000},
		{"process_start_time_seconds", now - 3600, now + 5},
	} {
		if g, ok := got[test.name]; !ok || g < test.min || g > test.max {
			t.Errorf("%s: got %v (%v), want %v to %v", test.name, g, ok, test.min, test.max)
		}
	}
	want(t, got, "ticktier_exporter_x", map[string]float64{`ticktier_exporter_x{a="2",b="1"}`: 2.5})
	present = false
	want(t, p.read(), "ticktier_exporter_x", map[string]float64{})
}

func TestExporterStat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "self")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("../stat", "btime 1000\n")
	write("stat", "7 (a ) b 1 2) S 1 1 1 0 -1 0 40 0 0 0 10 20 0 0 20 0 9 0 250 4096 3 18446744073709551615\n")
	p := newProbe(t, openExporter(Env{}, dir))
	got := p.read()
	page := float64(os.Getpagesize())
	for name, wanted := range map[string]float64{"process_threads": 9, "process_start_time_seconds": 1002.5,
		"process_virtual_memory_bytes": 4096, "process_resident_memory_bytes": 3 * page} {
		if got[name] != wanted {
			t.Errorf("%s: got %v, want %v", name, got[name], wanted)
		}
	}
	for _, text := range []string{"", "7 a S 1", "7 (a", "7 (a) S 1 2\n"} {
		write("stat", text)
		if err := p.src.Read(p.out); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// The list of descriptors is counted where the kernel does not tell their number.
func TestFDCountByList(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"0", "1", "2"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := fdCount{newDir(dir)}
	defer c.close()
	n, ok := c.list()
	if n != 3 || !ok {
		t.Errorf("got %d, %v, want 3", n, ok)
	}
}
