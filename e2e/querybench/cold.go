package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// uncached times first requests of new processes whose data was dropped from the
// kernel's cache before; what the start itself reads is in it again.
func (s *server) uncached(ctx context.Context, o *options, i int, r *result) error {
	for range o.cold {
		if err := dropCached(s.dir); err != nil {
			return fmt.Errorf("drop files from the kernel's cache: %w", err)
		}
		took, err := s.first(ctx, o, i)
		if err != nil {
			return err
		}
		r.uncached = append(r.uncached, took)
	}
	slices.Sort(r.uncached)
	return nil
}

// first is how long the first request of a new process takes.
func (s *server) first(ctx context.Context, o *options, i int) (time.Duration, error) {
	p, c, err := s.start(ctx)
	if err != nil {
		return 0, err
	}
	defer p.Kill()
	defer c.Close()
	settle(ctx, p.PID())
	begin := time.Now()
	_, err = o.ask(ctx, c, i, 0)
	return time.Since(begin), err
}

// dropCached asks the kernel to forget what it holds of the files in dir. Nobody may
// have them mapped.
func dropCached(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // only read
		if err := f.Sync(); err != nil {
			return err // dirty pages are not dropped
		}
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}

// spread is the median of sorted durations, the lowest and the highest, in ms.
func spread(d []time.Duration) string {
	if len(d) == 0 {
		return ""
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	return fmt.Sprintf("%.1f (%.1f to %.1f)", ms(d[len(d)/2]), ms(d[0]), ms(d[len(d)-1]))
}
