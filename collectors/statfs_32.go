//go:build 386 || arm || mips || mipsle || ppc

package collectors

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// statfs is unix.Statfs without a copy of the path, which ends in a zero byte.
func statfs(path []byte, st *unix.Statfs_t) error {
	_, _, errno := unix.Syscall(unix.SYS_STATFS64, uintptr(unsafe.Pointer(&path[0])),
		unsafe.Sizeof(*st), uintptr(unsafe.Pointer(st)))
	if errno != 0 {
		return errno
	}
	return nil
}
