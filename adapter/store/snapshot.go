package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/prometheus/tsdb/fileutil"
)

// SnapshotTo makes a copy of the raw samples in dir, which must not be there: blocks and
// finished segments of the logs as hard links, the segment that is written to as a copy.
// Commits wait while it is copied, and so does also, which may copy what changes with
// commits. Opening the copy replays the logs as after a crash.
func (r *Raw) SnapshotTo(dir string, also func() error) error {
	r.db.DisableCompactions() // waits for the one under way
	defer func() {
		if !r.Refuses() {
			r.db.EnableCompactions()
		}
	}()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make the directory of raw samples: %w", err)
	}
	if err := r.db.Snapshot(dir, false); err != nil {
		return fmt.Errorf("copy raw blocks: %w", err)
	}
	r.torn.commits.Lock()
	defer r.torn.commits.Unlock()
	return errors.Join(copyLogs(r.dir, dir), also())
}

// copyLogs copies the write-ahead logs of a directory that nobody writes to meanwhile.
// Chunks of the head are left out: the logs have their samples too.
func copyLogs(from, to string) error {
	for _, log := range []string{"wal", "wbl"} {
		if err := copyLog(filepath.Join(from, log), filepath.Join(to, log)); err != nil {
			return fmt.Errorf("copy the log %s: %w", log, err)
		}
	}
	return nil
}

func copyLog(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	last := "" // the segment that is written to; the names sort
	for _, e := range entries {
		if !e.IsDir() {
			last = e.Name()
		}
	}
	for _, e := range entries {
		src, dst := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case e.IsDir() && strings.HasSuffix(e.Name(), ".tmp"): // a checkpoint that was not finished
		case e.IsDir():
			err = linkTree(src, dst)
		case e.Name() == last:
			err = CopyFile(src, dst)
		default:
			err = link(src, dst)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SnapshotTo makes a copy of the tier's blocks in dir, as hard links. What is in memory
// is folded again from raw samples when the copy is opened. The writing goroutine calls
// it, or nobody writes meanwhile.
func (b *Buckets) SnapshotTo(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make the directory of tier %s: %w", b.Name(), err)
	}
	for _, blk := range b.snapshot() {
		if err := linkTree(blk.Dir(), filepath.Join(dir, filepath.Base(blk.Dir()))); err != nil {
			return fmt.Errorf("copy block %s of tier %s: %w", blk.Meta().ULID, b.Name(), err)
		}
	}
	return nil
}

// linkTree makes a directory whose files are links to those of another.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o777)
		}
		return link(path, filepath.Join(to, rel))
	})
}

// link links, or copies to another file system.
func link(from, to string) error {
	if err := os.Link(from, to); err != nil && !errors.Is(err, fs.ErrExist) {
		return CopyFile(from, to)
	}
	return nil
}

// CopyFile copies a file and has it on disk when it returns. One that is not there is
// no error.
func CopyFile(from, to string) (err error) {
	src, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if _, err := io.Copy(dst, src); err != nil {
		return err
	}
	return fileutil.Fdatasync(dst)
}

// Rename renames a directory so that it has its new name whenever the machine stops.
func Rename(from, to string) error { return fileutil.Rename(from, to) }
