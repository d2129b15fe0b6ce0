package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/prometheus/prometheus/tsdb"
	"golang.org/x/sys/unix"
)

// Release takes the pages of the blocks' files out of this process's resident
// memory. They stay in the kernel's cache, and come back when they are read.
func (b *Buckets) Release() error { return releaseBlocks(b.snapshot()) }

// Release does the same for raw blocks.
func (r *Raw) Release() error { return releaseBlocks(r.db.Blocks()) }

// releaseBlocks holds a reader of each block meanwhile: a block's files are not
// unmapped while it has one, so no other mapping can take their place.
func releaseBlocks(blocks []*tsdb.Block) (err error) {
	held := map[string]bool{}
	for _, blk := range blocks {
		r, e := blk.Index()
		if e != nil {
			continue // it is being closed
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		held[blk.Meta().ULID.String()] = true
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("list mapped files: %w", err)
	}
	for _, m := range mappedFiles(maps) {
		if m.writable || !m.below(held) {
			continue
		}
		if err := dontNeed(m.from, m.to); err != nil {
			return fmt.Errorf("release pages of %s: %w", m.path, err)
		}
	}
	return nil
}

// ReleaseProgram takes those pages of the program's own file out of resident memory
// that nothing writes to: most are read once, at the start. They come back when they
// are needed.
func ReleaseProgram() error {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find the program's file: %w", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("list mapped files: %w", err)
	}
	for _, m := range mappedFiles(maps) {
		if m.writable || string(m.path) != exe {
			continue
		}
		if err := dontNeed(m.from, m.to); err != nil {
			return fmt.Errorf("release pages of the program: %w", err)
		}
	}
	return nil
}

// mapping is one line of /proc/self/maps that names a file.
type mapping struct {
	from, to uintptr
	writable bool
	path     []byte
}

// below reports whether the file is in one of the named directories.
func (m mapping) below(names map[string]bool) bool {
	for dir := range bytes.SplitSeq(m.path, []byte("/")) {
		if names[string(dir)] {
			return true
		}
	}
	return false
}

// mappedFiles parses /proc/self/maps. Lines that it does not understand are left
// out.
func mappedFiles(maps []byte) (out []mapping) {
	s := bufio.NewReader(bytes.NewReader(maps))
	for {
		line, err := s.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out
		}
		slash := bytes.IndexByte(line, '/')
		f := bytes.Fields(line)
		if slash < 0 || len(f) < 6 || len(f[1]) < 4 {
			continue
		}
		from, to, ok := bytes.Cut(f[0], []byte("-"))
		a, errA := strconv.ParseUint(string(from), 16, 64)
		b, errB := strconv.ParseUint(string(to), 16, 64)
		if !ok || errA != nil || errB != nil || b <= a {
			continue
		}
		out = append(out, mapping{
			from: uintptr(a), to: uintptr(b), writable: f[1][1] != '-',
			path: bytes.TrimSuffix(line[slash:], []byte("\n")),
		})
	}
}

// dontNeed drops the pages of a read-only mapping of a file.
func dontNeed(from, to uintptr) error {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
	if errno != 0 && errno != unix.EINVAL { // EINVAL: locked in memory
		return errno
	}
	return nil
}
