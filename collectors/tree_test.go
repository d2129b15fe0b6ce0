package collectors

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree is a procfs and sysfs made for one test.
type tree struct {
	t   *testing.T
	dir string
	log strings.Builder
}

func newTree(t *testing.T) *tree {
	tr := &tree{t: t, dir: t.TempDir()}
	for _, d := range []string{"proc", "sys"} {
		if err := os.Mkdir(filepath.Join(tr.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

func (tr *tree) write(name, text string) {
	tr.t.Helper()
	path := filepath.Join(tr.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) env() Env {
	return Env{
		Procfs: filepath.Join(tr.dir, "proc"),
		Sysfs:  filepath.Join(tr.dir, "sys"),
		Rootfs: tr.dir,
		Logger: slog.New(slog.NewTextHandler(&tr.log, nil)),
	}
}

// probe is one source opened on a tree.
type probe struct {
	t      *testing.T
	src    Source
	schema Schema
	row    Row
	out    *Out
}

func (tr *tree) open(name string) *probe {
	tr.t.Helper()
	i := slices.IndexFunc(All(), func(s Spec) bool { return s.Name == name })
	src, err := All()[i].New(tr.env())
	if err != nil {
		tr.t.Fatal(err)
	}
	return newProbe(tr.t, src)
}

func newProbe(t *testing.T, src Source) *probe {
	p := &probe{t: t, src: src}
	p.out = NewOut(&p.schema, &p.row, 0)
	t.Cleanup(func() { src.Close() })
	return p
}

// read reads once and returns what is present.
func (p *probe) read() map[string]float64 {
	p.t.Helper()
	if err := p.src.Read(p.out); err != nil {
		p.t.Fatal(err)
	}
	return p.present()
}

func (p *probe) present() map[string]float64 {
	got := map[string]float64{}
	for slot, s := range p.schema.Series() {
		if p.row.Has(slot) {
			name := seriesName(s)
			if _, twice := got[name]; twice {
				p.t.Errorf("%s is there twice", name)
			}
			got[name] = s.Value(p.row.Values[slot])
		}
	}
	return got
}

// want compares the series whose names contain part.
func want(t *testing.T, got map[string]float64, part string, wanted map[string]float64) {
	t.Helper()
	got = maps.Clone(got)
	maps.DeleteFunc(got, func(name string, _ float64) bool { return !strings.Contains(name, part) })
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("series with %q (-want +got):\n%s", part, diff)
	}
}

func (p *probe) wantStats(bad, corrections, overflow uint64) {
	p.t.Helper()
	s := &p.out.Stats
	got := [3]uint64{s.BadRows.Load(), s.Corrections.Load(), s.Overflow.Load()}
	if w := [3]uint64{bad, corrections, overflow}; got != w {
		p.t.Errorf("bad rows, corrections, overflow: got %v, want %v", got, w)
	}
}
