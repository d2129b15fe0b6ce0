package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRoom(t *testing.T) {
	dir := t.TempDir()
	r := NewRoom(dir)
	if ok, err := r.Enough(); err != nil || !ok {
		t.Skipf("there is no room for this test: %v", err)
	}
	for range 2 { // the second finds it there
		if err := r.Keep(); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "reserve"))
	if err != nil || info.Size() == 0 || info.Size() > reserveBytes {
		t.Fatalf("the reserve: %v, %v", info, err)
	}
	if !r.Plenty() {
		t.Error("no room though the disk is not full")
	}
	for range 2 { // nothing is left to give up the second time
		if err := r.GiveUp(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "reserve")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the reserve is still there: %v", err)
	}
	if _, err := NewRoom(filepath.Join(dir, "none")).Enough(); err == nil {
		t.Error("a directory that is not there has room")
	}
}
