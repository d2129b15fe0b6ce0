package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrNoRoom says that the file system with the data directory is full.
var ErrNoRoom = errors.New("no room on the file system with the data directory")

const (
	// reserveBytes is what is set aside for a full disk: with it the TSDB opens, and
	// writes the chunks it has in memory, for which it would otherwise end the process.
	// reserveShare is how large a part of a small file system it may be.
	reserveBytes = 16 << 20
	reserveShare = 16
	// roomNeeded is what has to be free for samples to be taken.
	roomNeeded = 4 << 20
)

// Room watches the room in the file system that holds a data directory. It keeps a file
// there that takes room while there is some, to be given up when there is none.
type Room struct{ dir, reserve string }

// NewRoom is for a directory that exists.
func NewRoom(dir string) *Room { return &Room{dir, filepath.Join(dir, "reserve")} }

// free are the bytes that can be written, and size those of the file system.
func (r *Room) free() (free, size int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(r.dir, &s); err != nil {
		return 0, 0, fmt.Errorf("look at the room of %s: %w", r.dir, err)
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize, nil
}

// Enough reports whether samples can be taken and go on to be.
func (r *Room) Enough() (bool, error) {
	free, size, err := r.free()
	return free >= min(roomNeeded, size/reserveShare), err
}

// Plenty reports whether there is room for the reserve too, and something more, so
// that what was closed for want of room is not opened for a moment only. It tries to
// write: a quota is not to be seen otherwise.
func (r *Room) Plenty() bool {
	free, size, err := r.free()
	if err != nil || free < 2*min(roomNeeded, size/reserveShare)+r.missing(size) {
		return false
	}
	probe := filepath.Join(r.dir, ".writable")
	err = os.WriteFile(probe, make([]byte, min(roomNeeded, size/reserveShare)), 0o666)
	return errors.Join(err, os.Remove(probe)) == nil
}

// missing is what the reserve does not take yet.
func (r *Room) missing(size int64) int64 {
	want := min(reserveBytes, size/reserveShare)
	if info, err := os.Stat(r.reserve); err == nil {
		want -= info.Size()
	}
	return max(0, want)
}

// Keep makes the reserve. Where there is no room for it, it is left out.
func (r *Room) Keep() (err error) {
	free, size, err := r.free()
	if err != nil {
		return err
	}
	if n := r.missing(size); n == 0 || free < 2*n {
		return nil
	}
	f, err := os.OpenFile(r.reserve, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("set room aside: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n := min(reserveBytes, size/reserveShare)
	if err := unix.Fallocate(int(f.Fd()), 0, 0, n); errors.Is(err, unix.EOPNOTSUPP) {
		if _, err := f.Write(make([]byte, n)); err != nil {
			return fmt.Errorf("set room aside: %w", err)
		}
	} else if err != nil {
		return errors.Join(fmt.Errorf("set room aside: %w", err), os.Remove(r.reserve))
	}
	return nil
}

// GiveUp gives the reserve to whoever writes next.
func (r *Room) GiveUp() error {
	if err := os.Remove(r.reserve); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("give up the room set aside: %w", err)
	}
	return nil
}
