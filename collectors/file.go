package collectors

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

const (
	// maxFileBytes bounds what one kernel file may make us read and hold. It is
	// /proc/interrupts with 1,400 rows on 256 CPUs, more than a source exports anyway;
	// to have the kernel print so much takes it tens of milliseconds.
	maxFileBytes = 4 << 20
	// maxWalkBytes is for files with a row for each socket or neighbour, of which there
	// may be a hundred thousand. They are read beside the ticks.
	maxWalkBytes = 16 << 20
)

// ErrTooLarge is why a source fails whose file is larger than it may be. It is as
// large at the next tick, so the caller leaves the source alone for a while.
var ErrTooLarge = errors.New("the file is larger than it may be")

// leastPage is the least that the kernel gathers records in (seq_read_iter in
// fs/seq_file.c), to end a read with the last one that fits.
const leastPage = 4096

// rowRecord is more than a row has in the files of short rows: a name and at most
// twenty numbers.
const rowRecord = 512

// errEmpty is what a source reports of a file that always has content and now has
// none.
var errEmpty = errors.New("the file is empty")

// file is a kernel file kept open and read again and again from its start. Not
// safe for concurrent use.
type file struct {
	path string
	// single tells that the kernel hands out the whole file in one read when the
	// buffer is large enough (single_open in fs/proc, every sysfs attribute), so a
	// short read is its end. Files made of records (seq_open) end a read at a page
	// instead, and only a read of nothing is their end.
	single bool
	// record, where it is not 0, is more than any of its records has, in bytes: a read
	// that leaves as much of a page is its end too.
	record int

	max int // bytes, maxFileBytes where it is 0

	fd   int
	disk bool // on an ordinary file system: a captured tree, not the kernel
	buf  []byte
}

// openFile opens path for reading; size is the first guess at the buffer it needs.
func openFile(path string, size int, single bool) (*file, error) {
	f := laterFile(path, size, single)
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

// laterFile is openFile for a file that may come and go: its first read opens it.
func laterFile(path string, size int, single bool) *file {
	return &file{path: path, single: single, fd: -1, buf: make([]byte, size)}
}

// openRows is openFile for a file of records that are shorter than record.
func openRows(path string, size, record int) (*file, error) {
	f := laterRows(path, size, record)
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

// laterRows is laterFile for a file of records that are shorter than record.
func laterRows(path string, size, record int) *file {
	f := laterFile(path, size, false)
	f.record = record
	return f
}

func (f *file) open() error {
	// O_NONBLOCK keeps a FIFO that sits where a kernel file should be from
	// blocking the open; it changes nothing for procfs and sysfs.
	fd, err := unix.Open(f.path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: f.path, Err: err}
	}
	var st unix.Statfs_t
	f.disk = true
	if unix.Fstatfs(fd, &st) == nil {
		t := uint32(st.Type)
		f.disk = t != unix.PROC_SUPER_MAGIC && t != unix.SYSFS_MAGIC && t != unix.CGROUP2_SUPER_MAGIC
	}
	f.fd = fd
	return nil
}

// read returns the whole file as it is now. The slice is valid until the next
// read. After an error the file is closed and opened again by the next read.
func (f *file) read() ([]byte, error) {
	if f.fd >= 0 && f.disk && f.replaced() {
		f.close()
	}
	if f.fd < 0 {
		if err := f.open(); err != nil {
			return nil, err
		}
	}
	n := 0
	for {
		if n == len(f.buf) {
			if err := f.grow(); err != nil {
				return nil, err
			}
		}
		m, err := unix.Pread(f.fd, f.buf[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			f.close()
			return nil, &fs.PathError{Op: "read", Path: f.path, Err: err}
		}
		n += m
		if m == 0 || n < len(f.buf) && (f.single || f.record > 0 && m < leastPage-f.record) {
			return f.buf[:n], nil
		}
	}
}

// readInto is read, with the bytes counted and an empty file made an error.
func (f *file) readInto(out *Out) ([]byte, error) {
	b, err := f.read()
	if err != nil {
		return nil, err
	}
	out.Stats.Bytes.Add(uint64(len(b)))
	if len(b) == 0 {
		return nil, fmt.Errorf("read %s: %w", f.path, errEmpty)
	}
	return b, nil
}

func (f *file) grow() error {
	limit := maxFileBytes
	if f.max > 0 {
		limit = f.max
	}
	if len(f.buf) >= limit {
		f.close()
		f.buf = nil // what it took is not kept for the next time
		return fmt.Errorf("read %s: %w: %d bytes", f.path, ErrTooLarge, limit)
	}
	grown := make([]byte, min(max(2*len(f.buf), 512), limit))
	copy(grown, f.buf)
	f.buf = grown
	return nil
}

// replaced tells that the open file is no longer the one of that name: somebody
// who edits a tree moved another in its place.
func (f *file) replaced() bool {
	var st unix.Stat_t
	return unix.Fstat(f.fd, &st) != nil || st.Nlink == 0
}

// close is safe to call again.
func (f *file) close() {
	if f != nil && f.fd >= 0 {
		unix.Close(f.fd)
		f.fd = -1
	}
}

// Close makes a file an io.Closer for sources that hold only one.
func (f *file) Close() error {
	f.close()
	return nil
}
