package collectors

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// dirEntry is where a name begins in a record of getdents64, and dirType its type.
const (
	dirEntry   = 19
	dirType    = 18
	dirRegular = 8 // DT_REG
)

// dir is a directory kept open and listed again and again without allocating.
type dir struct {
	path string
	fd   int // −1 when closed
	buf  [4096]byte
}

func newDir(path string) dir { return dir{path: path, fd: -1} }

func (d *dir) open() error {
	if d.fd < 0 {
		fd, err := unix.Open(d.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		d.fd = fd
	}
	return nil
}

// each calls fn for every entry but . and .., as the kernel orders them. The name is
// valid until fn returns.
func (d *dir) each(fn func(name []byte, regular bool)) error {
	return d.eachNode(func(_ uint64, name []byte, regular bool) { fn(name, regular) })
}

// eachNode is each, with the number of each entry's inode. In sysfs it stays with a
// device that is renamed, and no other has it.
func (d *dir) eachNode(fn func(node uint64, name []byte, regular bool)) error {
	if err := d.open(); err != nil {
		return err
	}
	if _, err := unix.Seek(d.fd, 0, unix.SEEK_SET); err != nil {
		d.close()
		return err
	}
	if err := listNodes(d.fd, d.buf[:], fn); err != nil {
		d.close()
		return err
	}
	return nil
}

// list calls fn for every entry of an open directory but . and .., from where it
// stands on.
func list(fd int, buf []byte, fn func(name []byte, regular bool)) error {
	return listNodes(fd, buf, func(_ uint64, name []byte, regular bool) { fn(name, regular) })
}

func listNodes(fd int, buf []byte, fn func(node uint64, name []byte, regular bool)) error {
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if n <= 0 {
			return nil
		}
		entries(buf[:n], fn)
	}
}

// entries calls fn for the records of a getdents64 reply; the inode stands at byte 0,
// their length at byte 16.
func entries(b []byte, fn func(node uint64, name []byte, regular bool)) {
	for len(b) >= dirEntry {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size < dirEntry || size > len(b) {
			return
		}
		name := b[dirEntry:size]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		if string(name) != "." && string(name) != ".." && len(name) > 0 {
			fn(binary.NativeEndian.Uint64(b), name, b[dirType] == dirRegular)
		}
		b = b[size:]
	}
}

func (d *dir) close() {
	if d.fd >= 0 {
		unix.Close(d.fd)
		d.fd = -1
	}
}
