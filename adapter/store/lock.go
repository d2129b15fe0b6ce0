package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/prometheus/prometheus/tsdb/fileutil"
)

// ErrInUse says that another process has the data directory.
var ErrInUse = errors.New("in use by another process")

// LockDir makes a data directory and takes it for this process alone; release
// gives it back, and so does the end of the process. It comes before everything
// that touches what is in the directory.
func LockDir(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	r, _, err := fileutil.Flock(filepath.Join(dir, "lock"))
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("the data directory %s is %w", dir, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	return r.Release, nil
}

// ours reports whether an error is of this process or machine, not of a file's
// content: it says nothing about the file.
func ours(err error) bool {
	for _, e := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EACCES, syscall.EPERM, syscall.EINTR, syscall.ENOSPC,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
