package spool

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shutFS is a disk that lets nobody write while it is shut.
type shutFS struct {
	disk
	shut bool
}

func (s *shutFS) Create(path string) (file, error) {
	if s.shut {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	}
	return s.disk.Create(path)
}

// TestProbe: a directory that cannot be written is noticed at the start, before
// anything has to be, and again later; so is that it can.
func TestProbe(t *testing.T) {
	dir, disk := t.TempDir(), &shutFS{shut: true}
	w := begin(t, dir, "s", func(c *Config) { c.fs = disk }, "a")
	if !w.sp.stats.failing.Load() || strings.Count(w.log.String(), "level=ERROR") != 1 {
		t.Errorf("at the start; log:\n%s", w.log)
	}
	pass := func(d time.Duration) {
		for range d / time.Second {
			w.cycle()
		}
	}
	pass(time.Minute)
	if strings.Count(w.log.String(), "level=ERROR") != 1 {
		t.Errorf("log:\n%s", w.log)
	}
	disk.shut = false
	pass(time.Minute)
	if w.sp.stats.failing.Load() || strings.Count(w.log.String(), "can be written again") != 1 {
		t.Errorf("open again; log:\n%s", w.log)
	}
	disk.shut = true
	pass(probeEvery + time.Minute)
	if !w.sp.stats.failing.Load() || strings.Count(w.log.String(), "level=ERROR") != 2 {
		t.Errorf("shut later; log:\n%s", w.log)
	}
	if list, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(list) != 0 {
		t.Errorf("left behind: %v, %v", list, err)
	}
	w.stop()
}

// TestLeft: what a stop leaves is told as what is on the disk, and the rest is counted
// and said to be lost; together they are what was sampled.
func TestLeft(t *testing.T) {
	for _, c := range []struct {
		name string
		shut func(disk *shutFS, dir string)
		all  bool
	}{
		{"a good disk", func(*shutFS, string) {}, true},
		{"shut", func(d *shutFS, _ string) { d.shut = true }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, disk := t.TempDir(), &shutFS{}
			w := begin(t, dir, "s", func(c *Config) { c.fs = disk }, "a")
			c.shut(disk, dir)
			w.sample(300)
			w.stop()
			left, from, to := w.sp.Left(0)
			lost := uint64(w.sp.stats.droppedQ.Load())
			if int(left+lost) != ticksTo(w.seq) || c.all != (lost == 0) || c.all == (left == 0) {
				t.Errorf("%d left, %d lost of %d", left, lost, ticksTo(w.seq))
			}
			if n := strings.Count(w.log.String(), "are lost with this stop"); (n == 1) == c.all {
				t.Errorf("log:\n%s", w.log)
			}
			if c.all && (from != w.base || to != w.base+int64(w.seq-1)*period/1e6) {
				t.Errorf("from %d to %d, began %d", from, to, w.base)
			}
		})
	}
	// Never usable.
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := begin(t, dir, "s", nil, "a")
	w.sample(300)
	w.stop()
	if left, _, _ := w.sp.Left(0); left != 0 || int(w.sp.stats.droppedQ.Load()) != ticksTo(w.seq) {
		t.Errorf("%d left, %d lost", left, w.sp.stats.droppedQ.Load())
	}
}
