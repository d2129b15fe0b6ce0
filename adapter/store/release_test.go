package store

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

func TestMappedFiles(t *testing.T) {
	maps := strings.Join([]string{
		"00400000-016e5000 r-xp 00000000 fe:00 10920474                           /opt/a b/ticktier-adapter",
		"02dbb000-02e77000 rw-p 029bb000 fe:00 10920474                           /opt/ticktier-adapter",
		"c000000000-c004000000 rw-p 00000000 00:00 0",
		"7f00-7e00 r--s 00000000 fe:00 1 /turned/round",
		"zz-7f00 r--s 00000000 fe:00 1 /no/number",
		"7fff0000-7fff1000 r--p 00000000 00:00 0                  [vvar]",
		"7f5500000000-7f5500001000 r--s 00000000 fe:00 7 /d/5m/01HZ/index (deleted)",
		"cut off in the mid",
	}, "\n")
	got := mappedFiles([]byte(maps))
	if len(got) != 3 {
		t.Fatalf("%d mappings, want 3", len(got))
	}
	if m := got[0]; m.from != 0x400000 || m.to != 0x16e5000 || m.writable || string(m.path) != "/opt/a b/ticktier-adapter" {
		t.Errorf("%+v %s", m, m.path)
	}
	if !got[1].writable {
		t.Error("a writable mapping is not seen as one")
	}
	if !got[2].below(map[string]bool{"01HZ": true}) || got[2].below(map[string]bool{"01": true}) {
		t.Error("the directory of a file is not recognised")
	}
}

// resident are the KiB of the mappings of a directory's files that are in memory.
func resident(t *testing.T, dir string) (kib int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	of := false
	for line := range strings.Lines(string(smaps)) {
		f := strings.Fields(line)
		switch {
		case len(f) > 1 && strings.Contains(f[0], "-"):
			of = strings.Contains(line, dir)
		case of && len(f) == 3 && f[0] == "Rss:" && f[1] != "0":
			kib++
		}
	}
	return kib
}

// A block whose pages were given back reads as before.
func TestRelease(t *testing.T) {
	dir := t.TempDir()
	b := openTest(t, dir)
	defer b.Close()
	r := seed(t)
	b.Start(0)
	lset := labels.FromStrings("__name__", "a")
	want := buckets(r, 0, block)
	b.Put(lset, 0, block, want)
	b.Advance(block)
	if err := b.Cut(block); err != nil {
		t.Fatal(err)
	}
	verify := func() {
		t.Helper()
		if err := b.Verify(t.Context(), func(int, int) {}); err != nil {
			t.Error(err)
		}
	}
	verify()
	if resident(t, dir) == 0 {
		t.Fatal("nothing of the block is in memory after it was read")
	}
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, dir); n != 0 {
		t.Errorf("%d mappings of the block are still in memory", n)
	}
	verify()
	if err := ReleaseProgram(); err != nil {
		t.Error(err)
	}
}
