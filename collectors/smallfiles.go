package collectors

import (
	"fmt"
	"path/filepath"
)

var (
	entropyAvailable = Metric{Name: "node_entropy_available_bits", Type: Gauge, Kind: Signed,
		Help: "Bits of available entropy."}
	entropyPool = Metric{Name: "node_entropy_pool_size_bits", Type: Gauge, Kind: Signed,
		Help: "Bits of entropy pool."}
	hungTasks = Metric{Name: "node_kernel_hung_tasks_total", Type: Counter, Kind: Signed,
		Help: "Total number of tasks that have been detected as hung since the system booted."}
	fileMetrics = [...]Metric{
		{Name: "node_filefd_allocated", Type: Gauge, Help: "File descriptor statistics: allocated."},
		{Name: "node_filefd_maximum", Type: Gauge, Help: "File descriptor statistics: maximum."},
	}
)

// valueFiles is a source of files with one number each, all of which must be there.
type valueFiles []*valueFile

func newValueFiles(files ...*valueFile) (Source, error) {
	for _, f := range files {
		if err := f.open(); err != nil {
			valueFiles(files).Close()
			return nil, err
		}
	}
	return valueFiles(files), nil
}

func (s valueFiles) Read(out *Out) error {
	for _, f := range s {
		if err := f.read(out); err != nil {
			return err
		}
	}
	return nil
}

func (s valueFiles) Close() error {
	for _, f := range s {
		f.close()
	}
	return nil
}

func newEntropy(env Env) (Source, error) {
	dir := filepath.Join(env.Procfs, "sys/kernel/random")
	return newValueFiles(newValueFile(filepath.Join(dir, "entropy_avail"), &entropyAvailable),
		newValueFile(filepath.Join(dir, "poolsize"), &entropyPool))
}

// newKernelHung reads what the kernel counts since Linux 6.13.
func newKernelHung(env Env) (Source, error) {
	return newValueFiles(newValueFile(filepath.Join(env.Procfs, "sys/kernel/hung_task_detect_count"), &hungTasks))
}

// filefd reads sys/fs/file-nr: allocated, always zero, maximum.
type filefd struct {
	*file
	slots [len(fileMetrics)]int
	known bool
}

func newFilefd(env Env) (Source, error) {
	f, err := openFile(filepath.Join(env.Procfs, "sys/fs/file-nr"), 128, true)
	if err != nil {
		return nil, err
	}
	return &filefd{file: f}, nil
}

func (s *filefd) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *filefd) parse(out *Out, text []byte) error {
	line, _, _ := cutLine(text)
	var v [3]uint64
	if n, _, _ := numbers(line, 0, v[:]); n < len(v) {
		return fmt.Errorf("read %s: %d numbers", s.path, n)
	}
	if !s.known {
		s.slots = [2]int{out.Add(&fileMetrics[0]), out.Add(&fileMetrics[1])}
		s.known = true
	}
	out.Set(s.slots[0], int64(v[0]))
	out.Set(s.slots[1], int64(v[2]))
	return nil
}
