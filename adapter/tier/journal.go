package tier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ticktier/ticktier/adapter/store"
)

// The journal's records; FORMAT.md has the bytes.
const (
	journalMagic  = "ttdirty2"
	recordSize    = 24
	kindMark      = 1    // one series
	kindClear     = 2    // all of a window
	kindMarkAll   = 3    // a window with series that are not known
	compactBeyond = 4096 // records that say nothing any more, before the file is written anew
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// journal remembers the windows that got samples after they were folded, until
// they are folded again: a crash between the two loses none, nor does a loss of power,
// after which the samples may be there. Safe for concurrent use.
type journal struct {
	path string
	fs   store.FS

	syncing sync.Mutex // held while the file is synced or replaced; before mu
	mu      sync.Mutex
	f       store.File
	size    int64 // of the good records and what comes before them
	records int
	written int64 // records, since the start
	synced  int64 // of them
	loose   bool  // the file's name may not be durable
	dirty   lateWindows
	// unwritten are records of what dirty says already.
	unwritten []byte
}

// openJournal opens or creates the journal. A torn or damaged tail is cut off,
// and said so by dropped.
func openJournal(path string, fs store.FS) (j *journal, dropped int64, err error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("open the journal of late windows: %w", err)
	}
	j = &journal{path: path, fs: fs, dirty: lateWindows{byStart: map[int64]*lateWindow{}}}
	good := j.replay(b)
	if err := j.rewrite(); err != nil {
		if j.f != nil {
			err = errors.Join(err, j.f.Close())
		}
		return nil, 0, err
	}
	return j, int64(len(b) - good), nil
}

// replay applies the records of a file's bytes and returns how many of them are
// good.
func (j *journal) replay(b []byte) (good int) {
	if len(b) < len(journalMagic) || string(b[:len(journalMagic)]) != journalMagic {
		return 0
	}
	good = len(journalMagic)
	for ; len(b)-good >= recordSize; good += recordSize {
		r := b[good : good+recordSize]
		if binary.LittleEndian.Uint32(r[20:]) != crc32.Checksum(r[:20], castagnoli) {
			return good
		}
		w, h := int64(binary.LittleEndian.Uint64(r)), binary.LittleEndian.Uint64(r[8:])
		switch r[16] {
		case kindMark:
			j.dirty.note(w, h)
		case kindMarkAll:
			j.dirty.noteAll(w)
		case kindClear:
			j.dirty.forget(w)
		default:
			return good
		}
	}
	return good
}

func appendRecord(b []byte, w int64, h uint64, kind byte) []byte {
	n := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(w))
	b = binary.LittleEndian.AppendUint64(b, h)
	b = append(b, kind, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[n:], castagnoli))
}

// appendWindow appends what is marked in a window.
func appendWindow(b []byte, w int64, l *lateWindow) []byte {
	if l.all {
		return appendRecord(b, w, 0, kindMarkAll)
	}
	for _, h := range slices.Sorted(maps.Keys(l.series)) {
		b = appendRecord(b, w, h, kindMark)
	}
	return b
}

// mark notes what is late. It is durable when it returns.
func (j *journal) mark(list []store.Late) error {
	upto, err := j.append(list)
	if err != nil {
		return err
	}
	return j.sync(upto)
}

// append writes what is not marked yet, and says how many records have to be synced for
// all of it to be durable.
func (j *journal) append(list []store.Late) (upto int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.unwritten
	for _, l := range list {
		if l.All || len(l.Series) == 0 {
			if j.dirty.noteAll(l.Window) {
				b = appendRecord(b, l.Window, 0, kindMarkAll)
			}
			continue
		}
		for _, h := range l.Series {
			switch news, all := j.dirty.note(l.Window, h); {
			case news && all:
				b = appendRecord(b, l.Window, 0, kindMarkAll)
			case news:
				b = appendRecord(b, l.Window, h, kindMark)
			}
		}
	}
	j.unwritten = b
	err = j.flush()
	return j.written, err
}

// sync makes the first so many records durable. Whoever waits here for another's sync
// finds its own records synced with it.
func (j *journal) sync(upto int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= upto && !j.loose {
		return nil
	}
	j.mu.Lock()
	f, written := j.f, j.written
	j.mu.Unlock()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", j.path, err)
	}
	if j.loose {
		if err := j.fs.SyncDir(filepath.Dir(j.path)); err != nil {
			return fmt.Errorf("sync the directory of %s: %w", j.path, err)
		}
	}
	j.synced, j.loose = written, false
	return nil
}

// flush writes the records that wait for it.
func (j *journal) flush() error {
	b := j.unwritten
	if len(b) == 0 {
		return nil
	}
	if _, err := j.f.WriteAt(b, j.size); err != nil {
		// What was written of it is overwritten by the next try.
		return fmt.Errorf("write %s: %w", j.path, err)
	}
	j.size += int64(len(b))
	j.records += len(b) / recordSize
	j.written += int64(len(b) / recordSize)
	j.unwritten = b[:0]
	return nil
}

// take returns all marked windows in order. They stay on file until done is told,
// and what is marked again meanwhile stays after it.
func (j *journal) take() []late {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dirty.take()
}

// done clears windows that take returned, but for what was marked since.
func (j *journal) done(windows []int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, w := range windows {
		if left, changed := j.dirty.done(w); changed {
			j.unwritten = appendWindow(appendRecord(j.unwritten, w, 0, kindClear), w, left)
		}
	}
	if j.records+len(j.unwritten)/recordSize > j.dirty.records()+compactBeyond {
		return j.rewrite()
	}
	return j.flush()
}

// oldest is the start of the oldest marked window, and whether there is one.
func (j *journal) oldest() (w int64, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for d := range j.dirty.byStart {
		if !ok || d < w {
			w, ok = d, true
		}
	}
	return w, ok
}

// len is the number of marked windows.
func (j *journal) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.dirty.byStart)
}

// rewrite replaces the file by one with the marked windows only. The file there is
// stays in use where that fails. Both locks are held, or nobody else has the journal.
func (j *journal) rewrite() error {
	b := []byte(journalMagic)
	for _, w := range slices.Sorted(maps.Keys(j.dirty.byStart)) {
		b = appendWindow(b, w, j.dirty.byStart[w])
	}
	f, err := j.replace(b)
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", j.path, err)
	}
	old := j.f
	j.f, j.size, j.records = f, int64(len(b)), len(b)/recordSize
	j.unwritten = nil
	j.synced, j.loose = j.written, true
	if old != nil {
		err = old.Close()
	}
	if e := j.fs.SyncDir(filepath.Dir(j.path)); e != nil {
		return errors.Join(err, fmt.Errorf("sync the directory of %s: %w", j.path, e))
	}
	j.loose = false
	return err
}

// replace puts a file of these bytes in the place of the journal's.
func (j *journal) replace(b []byte) (store.File, error) {
	tmp := j.path + ".tmp"
	f, err := j.fs.Create(tmp)
	if err != nil {
		return nil, err
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = j.fs.Rename(tmp, j.path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// close closes the file.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.f.Close()
}
