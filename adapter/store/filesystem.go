package store

import (
	"errors"
	"io"
	"os"
)

// FS is what changes in the file system a tier and the journal of late windows make.
// Reading is not part of it, and the TSDB's own writers of chunks, index and tombstones
// go past it. Safe for concurrent use.
type FS interface {
	// MkdirAll makes a directory and those above it.
	MkdirAll(path string) error
	// Create makes an empty file in the place of any there is.
	Create(path string) (File, error)
	// Rename moves a file or a directory, in the place of a file there is.
	Rename(from, to string) error
	// RemoveAll removes a file or a directory with all that is in it, where it is there.
	RemoveAll(path string) error
	// SyncDir makes what was created, renamed and removed in a directory durable.
	SyncDir(path string) error
}

// File is a file that is written.
type File interface {
	io.WriterAt
	io.Closer
	// Sync makes what was written durable.
	Sync() error
}

// OS is the operating system's file system.
type OS struct{}

var _ FS = OS{}

// MkdirAll implements FS.
func (OS) MkdirAll(path string) error { return os.MkdirAll(path, 0o777) }

// Create implements FS.
func (OS) Create(path string) (File, error) { return os.Create(path) }

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// RemoveAll implements FS.
func (OS) RemoveAll(path string) error { return os.RemoveAll(path) }

// SyncDir implements FS.
func (OS) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
