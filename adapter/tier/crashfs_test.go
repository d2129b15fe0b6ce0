package tier

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ticktier/ticktier/adapter/store"
)

var errStopped = errors.New("stopped by the test")

// crashFS is a file system that stops at an operation: that one happens in part, and
// those after it not at all. crash then takes back what was not synced, as a loss of
// power may: of each file a part of the writes since its last sync, of each directory a
// part of what was made, renamed and removed in it since its last.
type crashFS struct {
	grave string // where what is removed or replaced waits

	mu      sync.Mutex
	r       *rand.Rand
	n       int // operations so far
	stopAt  int // the operation to stop at; 0: none
	buried  int
	changes []change
	files   []*crashFile
	loose   map[string]bool // directories made and not synced since
}

// change is one that is not synced yet. old is where what it replaced or removed lies.
type change struct {
	dir           string // that has to be synced
	from, to, old string
}

func newCrashFS(t *testing.T, r *rand.Rand, stopAt int) *crashFS {
	return &crashFS{grave: t.TempDir(), r: r, stopAt: stopAt, loose: map[string]bool{}}
}

// op counts an operation and says whether it is to happen, and what to return.
func (f *crashFS) op() (happens bool, err error) {
	if f.stopAt > 0 && f.n >= f.stopAt {
		return false, errStopped
	}
	if f.n++; f.n == f.stopAt {
		return f.r.IntN(2) == 0, errStopped
	}
	return true, nil
}

func (f *crashFS) stopped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopAt > 0 && f.n >= f.stopAt
}

// bury moves what is at a path away and returns where to; "" where nothing is.
func (f *crashFS) bury(path string) (string, error) {
	if _, err := os.Lstat(path); err != nil {
		return "", nil
	}
	f.buried++
	to := filepath.Join(f.grave, strconv.Itoa(f.buried))
	if err := os.Rename(path, to); err != nil {
		return "", err
	}
	f.moved(path, to)
	return to, nil
}

// moved has what is noted of a path and of all below it follow a move.
func (f *crashFS) moved(from, to string) {
	follow := func(p string) string {
		if rest, ok := strings.CutPrefix(p, from); ok && (rest == "" || rest[0] == filepath.Separator) {
			return to + rest
		}
		return p
	}
	for i, c := range f.changes {
		// What was moved once lies at to; from is only a name in a directory.
		if d := filepath.Dir(c.from); c.from != "" {
			c.from = filepath.Join(follow(d), filepath.Base(c.from))
		}
		f.changes[i] = change{follow(c.dir), c.from, follow(c.to), c.old}
	}
	for _, x := range f.files {
		x.path = follow(x.path)
	}
	for d := range f.loose {
		if t := follow(d); t != d {
			delete(f.loose, d)
			f.loose[t] = true
		}
	}
}

func (f *crashFS) MkdirAll(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	happens, err := f.op()
	if _, e := os.Stat(path); e == nil || !happens {
		return err
	}
	if e := os.MkdirAll(path, 0o777); e != nil {
		return e
	}
	f.loose[path] = true
	f.changes = append(f.changes, change{dir: filepath.Dir(path), to: path})
	return err
}

func (f *crashFS) Create(path string) (store.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	happens, err := f.op()
	if !happens {
		return nil, err
	}
	old, e := f.bury(path)
	if e != nil {
		return nil, e
	}
	file, e := os.Create(path)
	if e != nil {
		return nil, e
	}
	f.changes = append(f.changes, change{dir: filepath.Dir(path), to: path, old: old})
	x := &crashFile{File: file, fs: f, path: path}
	f.files = append(f.files, x)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return x, nil
}

func (f *crashFS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	happens, err := f.op()
	if !happens {
		return err
	}
	old, e := f.bury(to)
	if e != nil {
		return e
	}
	if e := os.Rename(from, to); e != nil {
		return e
	}
	f.moved(from, to)
	f.changes = append(f.changes, change{dir: filepath.Dir(to), from: from, to: to, old: old})
	return err
}

// RemoveAll stops half way through a directory.
func (f *crashFS) RemoveAll(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	happens, err := f.op()
	if !happens {
		return err
	}
	if err != nil {
		f.lose(path, nil)
		return err
	}
	old, e := f.bury(path)
	if old != "" {
		f.changes = append(f.changes, change{dir: filepath.Dir(path), from: path, to: "", old: old})
	}
	return e
}

// lose removes some of what is in a directory, but for what changes say of it.
func (f *crashFS) lose(dir string, but []change) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if f.r.IntN(2) == 0 && !slices.ContainsFunc(but, func(c change) bool { return c.to == path }) {
			os.RemoveAll(path)
		}
	}
}

func (f *crashFS) SyncDir(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	happens, err := f.op()
	if happens {
		f.changes = slices.DeleteFunc(f.changes, func(c change) bool { return c.dir == path })
		delete(f.loose, path)
	}
	return err
}

// crash takes back what was not synced. Nothing may be open any more.
func (f *crashFS) crash() error {
	for _, x := range f.files {
		if err := x.crash(f.r); err != nil {
			return err
		}
	}
	for d := range f.loose {
		f.lose(d, f.changes)
	}
	left := map[string]int{}
	for _, c := range f.changes {
		left[c.dir]++
	}
	for d, n := range left {
		left[d] = f.r.IntN(n + 1) // so many of the last are taken back
	}
	for len(f.changes) > 0 {
		c := f.changes[len(f.changes)-1]
		f.changes = f.changes[:len(f.changes)-1]
		if left[c.dir] == 0 {
			continue
		}
		left[c.dir]--
		if err := f.undo(c); err != nil {
			return err
		}
	}
	return nil
}

func (f *crashFS) undo(c change) (err error) {
	switch {
	case c.to == "":
		f.moved(c.old, c.from)
		return os.Rename(c.old, c.from)
	case c.from == "":
		err = os.RemoveAll(c.to)
	default:
		if err = os.Rename(c.to, c.from); err == nil {
			f.moved(c.to, c.from)
		}
	}
	if c.old != "" {
		f.moved(c.old, c.to)
		err = errors.Join(err, os.Rename(c.old, c.to))
	}
	return err
}

// crashFile remembers what was written since it was synced.
type crashFile struct {
	*os.File
	fs     *crashFS
	path   string
	synced []byte
	writes []write
}

type write struct {
	at int64
	b  []byte
}

func (x *crashFile) WriteAt(b []byte, at int64) (int, error) {
	x.fs.mu.Lock()
	defer x.fs.mu.Unlock()
	happens, err := x.fs.op()
	if !happens {
		return 0, err
	}
	if err != nil {
		b = b[:x.fs.r.IntN(len(b)+1)]
	}
	x.writes = append(x.writes, write{at, slices.Clone(b)})
	n, e := x.File.WriteAt(b, at)
	return n, errors.Join(e, err)
}

func (x *crashFile) Sync() error {
	x.fs.mu.Lock()
	defer x.fs.mu.Unlock()
	happens, err := x.fs.op()
	if happens {
		for _, w := range x.writes {
			x.synced = w.apply(x.synced)
		}
		x.writes = nil
	}
	return err
}

func (w write) apply(b []byte) []byte {
	if n := int(w.at) + len(w.b); n > len(b) {
		b = append(b, make([]byte, n-len(b))...)
	}
	copy(b[w.at:], w.b)
	return b
}

// crash leaves what was synced and a part of what came after.
func (x *crashFile) crash(r *rand.Rand) error {
	if len(x.writes) == 0 {
		return nil
	}
	b := x.synced
	kept := x.writes[:r.IntN(len(x.writes)+1)]
	for i, w := range kept {
		if i == len(kept)-1 {
			w.b = w.b[:r.IntN(len(w.b)+1)]
		}
		b = w.apply(b)
	}
	return os.WriteFile(x.path, b, 0o666)
}
