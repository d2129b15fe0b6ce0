package collectors

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// maxSmallBytes bounds what ReadFile reads: the largest file that it is used for,
// /proc/stat of a machine with a thousand CPUs, has about 200 KiB.
const maxSmallBytes = 4 << 20

// ReadFile reads a small kernel file once. Whatever sits where the file should be,
// it neither waits for it (a FIFO) nor reads without end.
func ReadFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	b := make([]byte, 0, 4096)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n <= 0:
			return b, nil
		}
		if b = b[:len(b)+n]; len(b) > maxSmallBytes {
			return nil, fmt.Errorf("read %s: more than %d MiB", path, maxSmallBytes>>20)
		}
	}
}

// startPatience is how long a file may take that is needed once, to start.
const startPatience = 2 * time.Second

// ReadFileSoon is ReadFile for whoever cannot wait: where the file is served by a
// program that is dead it gives up after two seconds. The goroutine that reads ends
// when the kernel lets go of it.
func ReadFileSoon(path string) ([]byte, error) {
	type answer struct {
		text []byte
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		text, err := ReadFile(path)
		read <- answer{text, err}
	}()
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	select {
	case a := <-read:
		return a.text, a.err
	case <-patience.C:
		return nil, &fs.PathError{Op: "read", Path: path, Err: unix.ETIMEDOUT}
	}
}
