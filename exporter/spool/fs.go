package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// fsys is the file system as the spool uses it: the disk, or in tests one that
// fails, fills up or loses what was not synced.
type fsys interface {
	MkdirAll(dir string) error
	ReadDir(dir string) ([]fs.DirEntry, error)
	// Create makes a file that must not be there yet, Open opens one that is, both
	// for reading and writing. OpenRead opens one for reading only.
	Create(path string) (file, error)
	Open(path string) (file, error)
	OpenRead(path string) (file, error)
	Rename(from, to string) error
	Remove(path string) error
	// SyncDir makes what happened to the names in a directory durable.
	SyncDir(dir string) error
}

// file is an open file.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
	Size() (int64, error)
}

// disk is the real file system.
type disk struct{}

type diskFile struct{ *os.File }

func (f diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (disk) MkdirAll(dir string) error                 { return os.MkdirAll(dir, 0o750) }
func (disk) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }
func (disk) Rename(from, to string) error              { return os.Rename(from, to) }
func (disk) Remove(path string) error                  { return os.Remove(path) }

func (disk) Create(path string) (file, error) {
	return open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}
func (disk) Open(path string) (file, error)     { return open(path, os.O_RDWR) }
func (disk) OpenRead(path string) (file, error) { return open(path, os.O_RDONLY) }

func open(path string, flag int) (file, error) {
	f, err := os.OpenFile(path, flag, 0o640)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

func (disk) SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// lockDir keeps a second exporter out of a directory, without a file of its own: on
// a full disk there would be no room for one. It is released when the process ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s is in use by another process", dir)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

// replaceFile makes a file hold b, whole or not at all, whenever the power goes.
func replaceFile(fsys fsys, dir, path string, b []byte) error {
	tmp := path + ".tmp"
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(tmp, path)
	}
	if err != nil {
		_ = fsys.Remove(tmp)
		return err
	}
	return fsys.SyncDir(dir)
}

// readFile reads a file of at most limit bytes.
func readFile(fsys fsys, path string, limit int64) ([]byte, error) {
	f, err := fsys.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n, err := f.Size()
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("%d bytes are more than the %d it may have", n, limit)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

// names are the names of the plain files in a directory, sorted.
func names(fsys fsys, dir string) ([]string, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}
