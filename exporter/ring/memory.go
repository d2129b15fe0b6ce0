package ring

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// pages is a piece of memory from the kernel, beside Go's heap: what was not written
// yet takes none, and the collector of garbage, which lets its heap grow by a share of
// what lives in it, does not count it. It is given back some time after the owner is
// no longer reachable.
func pages(owner *Ring, size int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("--ring.max-bytes: get %d bytes: %w", size, err)
	}
	runtime.AddCleanup(owner, func(b []byte) { _ = unix.Munmap(b) }, b)
	return b, nil
}
