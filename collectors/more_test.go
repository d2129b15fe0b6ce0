package collectors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func openText(t *testing.T, tr *tree) *probe {
	env := tr.env()
	env.TextfileDirs = []string{filepath.Join(tr.dir, "text*")}
	src, err := newTextfile(env)
	if err != nil {
		t.Fatal(err)
	}
	return newProbe(t, src)
}

func fileError(tr *tree, name string) string {
	return `node_textfile_file_error{file="` + filepath.Join(tr.dir, "text", name) + `"}`
}

// A bad file harms only itself, is named, and keeps what it held when it was good.
func TestTextfile(t *testing.T) {
	tr := newTree(t)
	good := "# HELP a_total Things.\n# TYPE a_total counter\na_total{x=\"1\",y=\"\"} 5\na_total{x=\"\\\"2\\\\\"} +Inf\n\n"
	tr.write("text/a.prom", good)
	tr.write("text/b.prom", "b 1\nb{y=\"\"} 2\n")
	tr.write("text/c.prom", "c 1\nc{x=\"1")
	tr.write("text/d.prom", "d 1 1700000000000\n")
	tr.write("text/notes.txt", "rubbish")
	p := openText(t, tr)
	got := p.read()
	want(t, got, "a_total", map[string]float64{`a_total{x="1"}`: 5, `a_total{x="\"2\\"}`: inf()})
	for _, name := range []string{"b", "c", "d"} {
		want(t, got, name+"{", map[string]float64{})
		if _, ok := got[name]; ok {
			t.Errorf("%s is served", name)
		}
	}
	want(t, got, "error", map[string]float64{"node_textfile_scrape_error": 1, fileError(tr, "a.prom"): 0,
		fileError(tr, "b.prom"): 1, fileError(tr, "c.prom"): 1, fileError(tr, "d.prom"): 1})
	if m := p.schema.Series()[slotOf(t, p, `a_total{x="1"}`)].Metric; m.Type != Counter || m.Help != "Things." {
		t.Errorf("got %+v", m)
	}
	for _, name := range []string{"b.prom", "c.prom", "d.prom"} {
		if n := strings.Count(tr.log.String(), name); n != 1 {
			t.Errorf("%s is in the log %d times", name, n)
		}
	}
	p.read()
	if n := strings.Count(tr.log.String(), "\n"); n != 3 {
		t.Errorf("got %d log lines, want 3", n)
	}

	// b is written well, a is being written, c and d go.
	tr.write("text/b.prom", "b 2\n")
	tr.write("text/a.prom", good[:len(good)-5])
	for _, name := range []string{"c.prom", "d.prom"} {
		if err := os.Remove(filepath.Join(tr.dir, "text", name)); err != nil {
			t.Fatal(err)
		}
	}
	got = p.read()
	want(t, got, "error", map[string]float64{"node_textfile_scrape_error": 1, fileError(tr, "a.prom"): 1, fileError(tr, "b.prom"): 0})
	want(t, got, "a_total", map[string]float64{`a_total{x="1"}`: 5, `a_total{x="\"2\\"}`: inf()})
	if got["b"] != 2 {
		t.Errorf("b is %v", got["b"])
	}
	tr.write("text/a.prom", "a_total{x=\"1\"} 6\n")
	want(t, p.read(), "a_total", map[string]float64{`a_total{x="1"}`: 6})
}

// A series that another file, or the exporter itself, has is refused.
func TestTextfileTaken(t *testing.T) {
	tr := newTree(t)
	tr.write("text/a.prom", "a{x=\"1\"} 1\n")
	p := openText(t, tr)
	other := NewOut(&p.schema, &p.row, 1)
	other.Set(other.Add(&loadMetrics[0]), 5)
	p.read()
	tr.write("text/b.prom", "a{x=\"1\"} 2\nb 1\n")
	tr.write("text/c.prom", "node_load1 2\n")
	want(t, p.read(), "", map[string]float64{`a{x="1"}`: 1, "node_load1": 0.05, "node_textfile_scrape_error": 1,
		fileError(tr, "a.prom"): 0, fileError(tr, "b.prom"): 1, fileError(tr, "c.prom"): 1,
		strings.Replace(fileError(tr, "a.prom"), "file_error", "mtime_seconds", 1): p.present()[strings.Replace(fileError(tr, "a.prom"), "file_error", "mtime_seconds", 1)]})
}

func TestTextfileLarge(t *testing.T) {
	tr := newTree(t)
	tr.write("text/a.prom", strings.Repeat("# "+strings.Repeat("x", 1000)+"\n", 1100))
	p := openText(t, tr)
	want(t, p.read(), "error", map[string]float64{"node_textfile_scrape_error": 1, fileError(tr, "a.prom"): 1})
	if !strings.Contains(tr.log.String(), "larger than") {
		t.Errorf("the log does not say why: %s", tr.log.String())
	}
}

func inf() float64 { v := 1e308; return v * 10 }

func slotOf(t *testing.T, p *probe, name string) int {
	t.Helper()
	for i, s := range p.schema.Series() {
		if seriesName(s) == name {
			return i
		}
	}
	t.Fatalf("no series %s", name)
	return 0
}

func TestPromText(t *testing.T) {
	for _, text := range []string{"a\n", "a{\n", "a{} x\n", "a{b} 1\n", "a{b=c} 1\n", "a{b=\"c} 1\n", "a{b=\"\\x\"} 1\n",
		"a{b=\"1\",b=\"2\"} 1\n", "a{b=\"1\" c=\"2\"} 1\n", "a 0x10p1\n", "1a 1\n", "a-b 1\n", "a 1 2\n", "a\xff 1\n", "{} 1\n", "a{b=\"\\"} {
		if p, err := parsePromText([]byte(text), 10); err == nil {
			t.Errorf("%q: no error, got %+v", text, p)
		}
	}
	p, err := parsePromText([]byte("# TYPE h histogram\nh_bucket{le=\"1\",} 2\nh_sum 3\n#x\n# HELP g a\\nb\\\\\n# TYPE g gauge\n"+
		"g{ b = \"\\n\" , a=\"{}\" }NaN\nu:v 32\n"), 10)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range []struct {
		key, help string
		t         Type
	}{{"h_bucket\xffle\xff1", "", Counter}, {"h_sum", "", Counter}, {"g\xffa\xff{}\xffb\xff\n", "a\nb\\", Gauge}, {"u:v", "", Untyped}} {
		typ, help := p.family(p.samples[i].name)
		if got := p.samples[i].key(); got != w.key || typ != w.t || help != w.help {
			t.Errorf("sample %d: got %q, %v, %q", i, got, typ, help)
		}
	}
	if _, err := parsePromText([]byte("a 1\nb 1\n"), 1); err == nil {
		t.Error("too many samples and no error")
	}
}

func TestBuddyinfo(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/buddyinfo", "Node 0, zone      DMA      3    169 \nNode 0, zone   Normal 1 2 3\nNode 1, zone   Normal 4\nrubbish\nNode 2, zone x y\n")
	p := tr.open("buddyinfo")
	b := func(node, size, zone string) string {
		return `node_buddyinfo_blocks{node="` + node + `",size="` + size + `",zone="` + zone + `"}`
	}
	want(t, p.read(), "", map[string]float64{b("0", "0", "DMA"): 3, b("0", "1", "DMA"): 169, b("0", "0", "Normal"): 1,
		b("0", "1", "Normal"): 2, b("0", "2", "Normal"): 3, b("1", "0", "Normal"): 4})
	p.wantStats(2, 0, 0)
}

func TestSlabinfo(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/slabinfo", "slabinfo - version: 2.1\n# name <active_objs>\n"+
		"kmalloc-8k  1 2 8192 4 8 : tunables 0 0 0 : slabdata 1 1 0\n"+
		"with blank 3 4 5 6 7 : tunables 0 0 0 : slabdata 1 1 0\n"+
		"kmalloc-8k  9 9 9 9 9 : tunables 0 0 0 : slabdata 1 1 0\n"+
		"short 1 2 3 : tunables\nnocolon 1 2 3 4 5\n1 2 3 4 5 : x\n")
	p := tr.open("slabinfo")
	want(t, p.read(), "active", map[string]float64{`node_slabinfo_active_objects{slab="kmalloc-8k"}`: 1,
		`node_slabinfo_active_objects{slab="with blank"}`: 3})
	p.wantStats(3, 0, 0)
	tr.write("proc/slabinfo", "something else\n")
	if err := p.src.Read(p.out); err == nil {
		t.Error("another version and no error")
	}
}

func TestYaffs(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/yaffs", "Multi-version YAFFS\n\nDevice 0 \"Main\"\nn_erasures...........1579\nn_obj 7\nn_page_writes....... x\n"+
		"0:0 1:0\nmax file size....... 5\nDevice 1 no name\nn_obj 8\nDevice 2 \"Boot\"\nn_obj......... 9\nn_obj......... 10\n")
	p := tr.open("yaffs")
	want(t, p.read(), "", map[string]float64{`node_yaffs_erasures_total{device="Main"}`: 1579,
		`node_yaffs_objects{device="Main"}`: 7, `node_yaffs_objects{device="Boot"}`: 9})
	p.wantStats(2, 0, 0)
	tr.write("proc/yaffs", "Multi-version YAFFS\nDevice 0 \"Main\"\nn_obj 6\n")
	want(t, p.read(), "", map[string]float64{`node_yaffs_objects{device="Main"}`: 6})
}

func FuzzYaffs(f *testing.F) {
	fuzzSource(f, "proc/yaffs", func() (Source, func(*Out, []byte) error) {
		s := &yaffs{file: &file{fd: -1}, faults: newFaults(Env{}, "yaffs"), rows: newTable[yaffsRow](16)}
		return s, s.parse
	})
}

func FuzzBuddyinfo(f *testing.F) {
	fuzzSource(f, "proc/buddyinfo", func() (Source, func(*Out, []byte) error) {
		s := &buddyinfo{file: &file{fd: -1}, faults: newFaults(Env{}, "buddyinfo"), rows: newTable[buddyRow](16)}
		return s, s.parse
	})
}

func FuzzSlabinfo(f *testing.F) {
	fuzzSource(f, "proc/slabinfo", func() (Source, func(*Out, []byte) error) {
		s := &slabinfo{file: &file{fd: -1}, faults: newFaults(Env{}, "slabinfo"), rows: newTable[slabRow](64)}
		return s, s.parse
	})
}

func FuzzPromText(f *testing.F) {
	f.Add([]byte("# TYPE a counter\na{x=\"\\\"1\\\\\",} 5\nb NaN\n"))
	f.Add([]byte("a{b=\"\\n\"}1\na{} 2"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parsePromText(text, 100)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for i := range p.samples {
			if key := p.samples[i].key(); seen[key] || p.samples[i].name == "" {
				t.Errorf("series %q is there twice or has no name", key)
			} else {
				seen[key] = true
			}
		}
	})
}
