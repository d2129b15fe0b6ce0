package collectors

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// attrBytes is the most a sysfs attribute can hold.
const attrBytes = 4096

// attr is a small file that is opened for each read: there are dozens for each
// device, too many to keep open unless they are read very often (see keeper). Reading
// it does not allocate.
type attr struct {
	path []byte // ends in a zero byte, for the kernel
	kept int32  // its descriptor + 1; 0 is not open
}

func newAttr(path string) attr { return attr{path: append([]byte(path), 0)} }

// read returns the trimmed content, held in buf, or why there is none: a device
// that does not know an attribute may refuse to be asked for it in many ways.
func (a attr) read(buf []byte) ([]byte, unix.Errno) {
	fd, errno := openPath(a.path)
	if errno != 0 {
		return nil, errno
	}
	n, err := unix.Read(fd, buf)
	unix.Close(fd)
	if err != nil {
		if errno, ok := err.(unix.Errno); ok {
			return nil, errno
		}
		return nil, unix.EIO
	}
	return trim(buf[:max(n, 0)]), 0
}

// openPath is unix.Open for reading without a copy of the path, which ends in a zero
// byte.
func openPath(path []byte) (fd int, errno unix.Errno) {
	r, _, errno := unix.Syscall6(unix.SYS_OPENAT, atFDCWD, uintptr(unsafe.Pointer(&path[0])),
		unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0, 0, 0)
	return int(r), errno
}

// atFDCWD is AT_FDCWD as a system call takes it.
const atFDCWD = ^uintptr(-unix.AT_FDCWD - 1)

// numAttr is an attribute that is one number, and the series it fills. The metric's
// Kind must be Signed.
type numAttr struct {
	attr
	metric *Metric
	label  Label
	slot   int32 // slot + 1
}

// update sets the series, or clears it when the attribute has no number.
func (a *numAttr) update(out *Out, buf []byte) bool {
	text, errno := a.read(buf)
	return a.take(out, text, errno)
}

// take is update with what was read.
func (a *numAttr) take(out *Out, text []byte, errno unix.Errno) bool {
	out.Stats.Bytes.Add(uint64(len(text)))
	v, ok := parseAny(text)
	if errno != 0 || !ok {
		a.clear(out)
		return false
	}
	a.set(out, v)
	return true
}

func (a *numAttr) set(out *Out, v int64) {
	if a.slot == 0 {
		a.slot = int32(out.Add(a.metric, a.label)) + 1
	}
	out.Set(int(a.slot-1), v)
}

func (a *numAttr) clear(out *Out) {
	if a.slot > 0 {
		out.Clear(int(a.slot - 1))
	}
}

// parseAny reads a text that is one number, decimal or with 0x hexadecimal.
func parseAny(text []byte) (int64, bool) {
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		v, next, f := hex(text, 2)
		return int64(v), f == good && next == len(text) && int64(v) >= 0
	}
	return parseValue(text)
}
