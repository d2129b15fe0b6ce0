package spool

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// crashFS is a disk that dies after so many operations: the last one is done in
// part, and then nothing is done any more. lose then takes away what was not synced.
type crashFS struct {
	disk
	rnd *rand.Rand

	mu     sync.Mutex
	left   int // operations; negative is dead
	done   int
	synced map[string]int64  // by path: bytes that survive a power cut
	names  map[string][]byte // by path: what a name that is not durable yet stood for before; nil for nothing
	full   bool              // no room
}

var errDead = errors.New("the machine is dead")

func newCrashFS(seed uint64, left int) *crashFS {
	return &crashFS{rnd: rand.New(rand.NewPCG(seed, 9)), left: left, synced: map[string]int64{}, names: map[string][]byte{}}
}

// op reports whether an operation is done, and whether only in part.
func (c *crashFS) op() (ok, part bool) {
	c.done++
	if c.left < 0 {
		return false, false
	}
	c.left--
	return c.left >= 0, c.left < 0
}

// before notes what a name stands for, until its directory is synced.
func (c *crashFS) before(path string) {
	if _, ok := c.names[path]; ok || strings.HasSuffix(path, ".tmp") {
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		b = nil
	}
	c.names[path] = b
}

func (c *crashFS) Create(path string) (file, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full {
		return nil, syscall.ENOSPC
	}
	if ok, part := c.op(); !ok && !part {
		return nil, errDead
	}
	c.before(path)
	f, err := c.disk.Create(path)
	if err != nil {
		return nil, err
	}
	c.synced[path] = 0
	return &crashFile{file: f, c: c, path: path}, nil
}

func (c *crashFS) Open(path string) (file, error) {
	f, err := c.disk.Open(path)
	if err != nil {
		return nil, err
	}
	return &crashFile{file: f, c: c, path: path}, nil
}

func (c *crashFS) Rename(from, to string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok, part := c.op(); !ok && !part {
		return errDead
	}
	c.before(to)
	c.synced[to] = c.synced[from]
	return c.disk.Rename(from, to)
}

func (c *crashFS) Remove(path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok, part := c.op(); !ok && !part {
		return errDead
	}
	c.before(path)
	return c.disk.Remove(path)
}

func (c *crashFS) SyncDir(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok, _ := c.op(); !ok {
		return errDead
	}
	clear(c.names)
	return nil
}

type crashFile struct {
	file
	c    *crashFS
	path string
}

func (f *crashFile) WriteAt(b []byte, off int64) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.c.full {
		n, _ := f.file.WriteAt(b[:len(b)/2], off) // as far as there was room
		return n, syscall.ENOSPC
	}
	ok, part := f.c.op()
	switch {
	case part:
		n, _ := f.file.WriteAt(b[:f.c.rnd.IntN(len(b)+1)], off)
		return n, errDead
	case !ok:
		return 0, errDead
	}
	return f.file.WriteAt(b, off)
}

func (f *crashFile) Sync() error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if ok, _ := f.c.op(); !ok {
		return errDead
	}
	n, err := f.Size()
	f.c.synced[f.path] = n
	return err
}

func (f *crashFile) Truncate(size int64) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if ok, part := f.c.op(); !ok && !part {
		return errDead
	}
	f.c.synced[f.path] = min(f.c.synced[f.path], size)
	return f.file.Truncate(size)
}

// lose is a power cut: of what was not synced, any part may be gone or zeros, and
// names may be what they were before.
func (c *crashFS) lose(t *testing.T) {
	t.Helper()
	for path, kept := range c.synced {
		b, err := os.ReadFile(path)
		if err != nil || int64(len(b)) <= kept {
			continue
		}
		cut := kept + c.rnd.Int64N(int64(len(b))-kept+1)
		if c.rnd.IntN(3) == 0 {
			clear(b[cut:]) // the size was written, the bytes were not
		} else {
			b = b[:cut]
		}
		if err := os.WriteFile(path, b, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	for path, b := range c.names {
		if c.rnd.IntN(2) == 0 {
			continue
		}
		err := os.Remove(path)
		if b != nil {
			err = os.WriteFile(path, b, 0o640)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// scenario is an outage with everything in it: segments begun and closed, one
// receiver that falls behind, one that takes what there is, and removal. It returns
// when the disk is dead, or at its end. durable is the first tick that may be lost,
// passed what b has.
func scenario(w *world) (durable, passed uint64) {
	r := w.joined()
	for i := range 14 {
		w.sample(100)
		w.cycle()
		if w.sp.w.broken != "" {
			return durable, passed
		}
		if !w.sp.w.dirty {
			durable = w.sp.spooledTo
		}
		if i >= 6 {
			for range 260 {
				if !r.Next() {
					break
				}
			}
			w.sp.Passed(1, w.sp.epoch, r.Tick().Seq+1)
			passed = r.Tick().Seq + 1
		}
		if i == 9 {
			w.sp.Passed(0, w.sp.epoch, 900)
		}
	}
	w.ring.Seal()
	_ = w.sp.Close()
	if w.sp.w.broken == "" {
		durable = w.seq
	}
	return durable, passed
}

// TestCrashes kills the scenario at every operation on the disk, takes away what was
// not synced, and starts again: every tick that was synced is there for whoever
// lacks it.
func TestCrashes(t *testing.T) {
	first := seed(t)
	dir := t.TempDir()
	c := newCrashFS(first, 1<<30)
	w := begin(t, dir, "one", func(cfg *Config) { cfg.fs, cfg.MaxBytes = c, 512<<10 }, "a", "b")
	scenario(w)
	verify(t, dir)
	total := c.done
	if total < 60 {
		t.Fatalf("only %d operations", total)
	}
	for n := range total {
		crash(t, first+uint64(n), n)
	}
	t.Logf("%d points", total)
}

func crash(t *testing.T, seed uint64, n int) {
	dir := t.TempDir()
	c := newCrashFS(seed, n)
	change := func(cfg *Config) { cfg.fs, cfg.MaxBytes = c, 512<<10 }
	w := begin(t, dir, "one", change, "a", "b")
	durable, passed := scenario(w)
	w.kill()
	c.lose(t)

	after := newCrashFS(seed, 1<<30)
	w = begin(t, dir, "two", func(cfg *Config) { cfg.fs = after }, "a", "b")
	for i, from := range []uint64{900, passed} {
		var seqs []uint64
		for _, g := range readEarlier(t, w.sp.Earlier(i), true) {
			if g.session != "one" {
				t.Fatalf("point %d: a session %q", n, g.session)
			}
			seqs = g.seqs
		}
		for _, s := range all(from, durable) {
			if _, ok := slices.BinarySearch(seqs, s); !ok {
				t.Fatalf("TEST_SEED=%d point %d: receiver %d lacks tick %d; durable to %d, it had %d\n%s", seed-uint64(n), n, i, s, durable, from, w.log)
			}
		}
	}
	w.sample(400)
	w.stop()
	if q := w.sp.stats.quarantined.Load(); q > 0 {
		t.Errorf("TEST_SEED=%d point %d: a crash looks like damage\n%s", seed-uint64(n), n, w.log)
	}
	verify(t, dir)
}

// TestFull: a disk without room leaves the exporter with its memory; what is dropped
// meanwhile is counted, and all goes on when there is room again.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	c := newCrashFS(1, 1<<30)
	w := begin(t, dir, "s", func(cfg *Config) { cfg.fs = c }, "a")
	r := w.joined()
	w.sample(1000)
	w.cycle()
	c.full = true
	for range 60 {
		w.sample(200)
		w.cycle()
		if w.sp.waiting > maxPending {
			t.Fatalf("%d bytes wait", w.sp.waiting)
		}
	}
	if !w.sp.stats.failing.Load() || strings.Count(w.log.String(), "spool cannot be written") != 1 {
		t.Errorf("failing %v; log:\n%s", w.sp.stats.failing.Load(), w.log)
	}
	c.full = false
	for range 10 {
		w.sample(100)
		w.cycle()
	}
	if w.sp.stats.failing.Load() || w.sp.waiting > 0 {
		t.Errorf("still failing; %d bytes wait", w.sp.waiting)
	}
	seqs, lost := drain(t, r, -1)
	dropped := uint64(w.sp.stats.droppedQ.Load())
	if dropped == 0 || lost != dropped || len(seqs)+int(lost) != ticksTo(w.seq) {
		t.Errorf("%d sampled, %d read, %d lost, %d dropped", ticksTo(w.seq), len(seqs), lost, dropped)
	}
	w.stop()
	verify(t, dir)
}
