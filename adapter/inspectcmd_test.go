package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoDataDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "none")} {
		for name, run := range map[string]func() error{
			"inspect": func() error { return (&inspectCmd{DataDir: d, Format: "table"}).run(t.Context(), &strings.Builder{}) },
			"verify":  func() error { return (&verifyCmd{DataDir: d}).run(t.Context(), &strings.Builder{}, &strings.Builder{}) },
		} {
			if err := run(); err == nil || !strings.Contains(err.Error(), "is no data directory") {
				t.Errorf("%s of %s: %v", name, d, err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "raw"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := isDataDir(dir); err != nil {
		t.Error(err)
	}
}
