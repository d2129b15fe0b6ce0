package collectors

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFileGrows(t *testing.T) {
	for _, single := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "f")
		text := strings.Repeat("0123456789", 10_000)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := openFile(path, 16, single)
		if err != nil {
			t.Fatal(err)
		}
		defer f.close()
		for range 2 {
			if got, err := f.read(); err != nil || string(got) != text {
				t.Errorf("single %v: got %d bytes, %v", single, len(got), err)
			}
		}
	}
}

// A kernel file of records is longer than one read gives.
func TestFileOfRecords(t *testing.T) {
	for _, path := range []string{"/proc/vmstat", "/proc/zoneinfo", "/proc/slabinfo", "/proc/kallsyms"} {
		whole, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		f, err := openFile(path, 4096, false)
		if err != nil {
			t.Fatal(err)
		}
		f.max = 16 << 20 // the last has 5 MiB
		defer f.close()
		got, err := f.read()
		if err != nil || bytes.Count(got, []byte("\n")) != bytes.Count(whole, []byte("\n")) {
			t.Errorf("%s: got %d bytes, want about %d, %v", path, len(got), len(whole), err)
		}
	}
}

// A file that was replaced, or failed, is opened again.
func TestFileReopens(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := openFile(path, 16, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: got %v", err)
	}
	if err := os.WriteFile(path, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := f.read(); err != nil || string(got) != "two" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Things that are no files must not block or panic.
func TestFileOddities(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, dir} {
		f, err := openFile(path, 16, false)
		if err != nil {
			continue
		}
		if _, err := f.read(); err == nil {
			t.Errorf("%s: no error", path)
		}
		f.close()
		f.close()
	}
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, maxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	f, err := openFile(big, 16, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for range 2 {
		if _, err := f.read(); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v", err)
		}
		if len(f.buf) > 0 {
			t.Errorf("%d bytes are held for a file that is not read", len(f.buf))
		}
	}
	if err := os.WriteFile(big, []byte("small again"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := f.read(); err != nil || string(got) != "small again" {
		t.Errorf("got %q, %v", got, err)
	}
}

// A kernel file of short records is read whole, and its end is not asked for, though
// each read ends at a page.
func TestFileOfRows(t *testing.T) {
	for _, path := range []string{"/proc/slabinfo", "/proc/net/dev", "/proc/diskstats", "/proc/net/udp"} {
		whole, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		f, err := openRows(path, 64, rowRecord)
		if err != nil {
			t.Fatal(err)
		}
		defer f.close()
		for range 2 {
			got, err := f.read()
			if err != nil || bytes.Count(got, []byte("\n")) != bytes.Count(whole, []byte("\n")) {
				t.Errorf("%s: got %d bytes, want about %d, %v", path, len(got), len(whole), err)
			}
		}
	}
}
