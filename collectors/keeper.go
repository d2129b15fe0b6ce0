package collectors

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// keepBelow is the time between two reads below which attributes are kept open: to
	// open and close one costs the kernel several times what its content does.
	keepBelow = time.Second
	// maxKept bounds the descriptors. The kernel keeps a page for each.
	maxKept = 512
)

// keeper keeps attributes of sysfs open, as many as it may; the others are opened for
// each read. The zero value keeps none.
type keeper struct{ left int }

// newKeeper keeps attributes of the file system that fd is on, if they are read so
// often that it is worth it. A captured tree's files may be replaced: those are not
// kept.
func newKeeper(env Env, fd int) keeper {
	var st unix.Statfs_t
	if env.Every <= 0 || env.Every >= keepBelow || unix.Fstatfs(fd, &st) != nil || uint32(st.Type) != unix.SYSFS_MAGIC {
		return keeper{}
	}
	return keeper{left: maxKept}
}

// read is a.read.
func (k *keeper) read(a *attr, buf []byte) ([]byte, unix.Errno) {
	if a.kept == 0 {
		if k.left == 0 {
			return a.read(buf)
		}
		fd, errno := openPath(a.path)
		if errno != 0 {
			return nil, errno
		}
		a.kept = int32(fd) + 1
		k.left--
	}
	for {
		n, err := unix.Pread(int(a.kept-1), buf, 0)
		if err == nil {
			return trim(buf[:max(n, 0)]), 0
		}
		errno, ok := err.(unix.Errno)
		switch {
		case !ok:
			errno = unix.EIO
		case errno == unix.EINTR:
			continue
		case errno == unix.ENODEV, errno == unix.ENOENT:
			k.drop(a) // the device is gone; one of that name may come
		}
		return nil, errno
	}
}

// drop closes an attribute.
func (k *keeper) drop(a *attr) {
	if a.kept > 0 {
		unix.Close(int(a.kept - 1))
		a.kept = 0
		k.left++
	}
}
