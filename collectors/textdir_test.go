package collectors

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// TestTextfileDirectoryMissing: it is told once, and once that it came.
func TestTextfileDirectoryMissing(t *testing.T) {
	dir := t.TempDir() + "/later"
	var log bytes.Buffer
	src, err := newTextfile(Env{TextfileDirs: []string{dir}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	out := NewOut(new(Schema), new(Row), 0)
	read := func() {
		for range 2 {
			if err := src.Read(out); err != nil {
				t.Error(err)
			}
		}
	}
	read()
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, dir) {
		t.Error(got)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	read()
	if got := log.String(); strings.Count(got, "level=INFO") != 1 || strings.Count(got, "\n") != 2 {
		t.Error(got)
	}
}
