package collectors

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// fdCount counts the entries of /proc/self/fd. Since Linux 6.2 the directory's size
// is their number; before, it is listed.
type fdCount struct {
	dir string
	fd  int // of the directory, -1 when closed
	buf [4096]byte
}

func (c *fdCount) count() (int64, bool) {
	if !c.open() {
		return 0, false
	}
	var st unix.Stat_t
	if unix.Fstat(c.fd, &st) == nil && st.Size > 0 {
		return st.Size, true
	}
	return c.list()
}

func (c *fdCount) open() bool {
	if c.fd < 0 {
		fd, err := unix.Open(c.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		c.fd = fd
	}
	return true
}

func (c *fdCount) list() (int64, bool) {
	if !c.open() {
		return 0, false
	}
	if _, err := unix.Seek(c.fd, 0, unix.SEEK_SET); err != nil {
		c.close()
		return 0, false
	}
	n := int64(-2) // . and ..
	for {
		m, err := unix.Getdents(c.fd, c.buf[:])
		if err != nil {
			c.close()
			return 0, false
		}
		if m <= 0 {
			return n, n >= 0
		}
		n += entries(c.buf[:m])
	}
}

// entries counts the records of a getdents64 reply: their length stands at byte 16.
func entries(b []byte) (n int64) {
	for len(b) >= 19 {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size < 19 || size > len(b) {
			return n
		}
		n++
		b = b[size:]
	}
	return n
}

func (c *fdCount) close() {
	if c.fd >= 0 {
		unix.Close(c.fd)
		c.fd = -1
	}
}
