package collectors

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"empty": 0, "small": 10, "page": 4096, "larger": 70_001} {
		want := bytes.Repeat([]byte("x"), size)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, want, 0o666); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := ReadFile(dir); err == nil {
		t.Error("a directory reads without an error")
	}
	if _, err := ReadFile("/dev/zero"); err == nil {
		t.Error("a file without end reads without an error")
	}
}

// A FIFO where a kernel file should be keeps nobody waiting, with a writer or
// without.
func TestReadFileOfFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stat")
	if err := unix.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	done := make(chan []byte, 1)
	read := func() {
		b, _ := ReadFile(path)
		done <- b
	}
	for _, writer := range []bool{false, true} {
		if writer {
			w, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
		}
		go read()
		select {
		case b := <-done:
			if len(b) != 0 {
				t.Errorf("got %q", b)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("still waiting for a FIFO")
		}
	}
}
