package tier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
)

// The journal's records; FORMAT.md has the bytes.
const (
	journalMagic  = "ttdirty1"
	recordSize    = 16
	kindMark      = 1
	kindClear     = 2
	compactBeyond = 4096 // records, before the file is written anew
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// journal remembers the windows that got samples after they were folded, until
// they are folded again: a crash between the two loses none. It is as durable as
// the TSDB's write-ahead log, which is not synced on every commit either. Safe
// for concurrent use.
type journal struct {
	path string

	mu      sync.Mutex
	f       *os.File
	size    int64 // of the good records and what comes before them
	records int
	dirty   map[int64]bool // start of a window → still to be taken
}

// openJournal opens or creates the journal. A torn or damaged tail is cut off,
// and said so by dropped.
func openJournal(path string) (j *journal, dropped int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, 0, fmt.Errorf("open the journal of late windows: %w", err)
	}
	j = &journal{path: path, f: f, dirty: map[int64]bool{}}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	good := j.replay(b)
	if err := j.rewrite(); err != nil {
		return nil, 0, errors.Join(err, f.Close())
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
		if binary.LittleEndian.Uint32(r[12:]) != crc32.Checksum(r[:12], castagnoli) {
			return good
		}
		w := int64(binary.LittleEndian.Uint64(r))
		switch r[8] {
		case kindMark:
			j.dirty[w] = true
		case kindClear:
			delete(j.dirty, w)
		default:
			return good
		}
	}
	return good
}

func appendRecord(b []byte, w int64, kind byte) []byte {
	n := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(w))
	b = append(b, kind, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[n:], castagnoli))
}

// mark notes windows by their starts. They are on file when it returns.
func (j *journal) mark(windows []int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b []byte
	for _, w := range windows {
		if !j.dirty[w] {
			b = appendRecord(b, w, kindMark)
		}
	}
	if err := j.write(b); err != nil {
		return err
	}
	for _, w := range windows {
		j.dirty[w] = true
	}
	return nil
}

func (j *journal) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if _, err := j.f.WriteAt(b, j.size); err != nil {
		// What was written of b is overwritten by the next records.
		return fmt.Errorf("write %s: %w", j.path, err)
	}
	j.size += int64(len(b))
	j.records += len(b) / recordSize
	return nil
}

// take returns all marked windows in order. They stay on file until done is told,
// and one that is marked again meanwhile stays after it.
func (j *journal) take() []int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	for w := range j.dirty {
		j.dirty[w] = false
	}
	return slices.Sorted(maps.Keys(j.dirty))
}

// done clears windows that take returned, but for those marked since.
func (j *journal) done(windows []int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b []byte
	for _, w := range windows {
		if again, ok := j.dirty[w]; ok && !again {
			delete(j.dirty, w)
			b = appendRecord(b, w, kindClear)
		}
	}
	if j.records+len(b)/recordSize > compactBeyond {
		return j.rewrite()
	}
	return j.write(b)
}

// oldest is the start of the oldest marked window, and whether there is one.
func (j *journal) oldest() (w int64, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for d := range j.dirty {
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
	return len(j.dirty)
}

// rewrite replaces the file by one with the marked windows only.
func (j *journal) rewrite() error {
	b := []byte(journalMagic)
	for _, w := range slices.Sorted(maps.Keys(j.dirty)) {
		b = appendRecord(b, w, kindMark)
	}
	tmp := j.path + ".tmp"
	f, err := os.Create(tmp)
	if err != nil {
		return fmt.Errorf("create %s: %w", tmp, err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), os.Rename(tmp, j.path)); err != nil {
		return errors.Join(fmt.Errorf("rewrite %s: %w", j.path, err), f.Close())
	}
	old := j.f
	j.f, j.size, j.records = f, int64(len(b)), len(j.dirty)
	return old.Close()
}

// close closes the file.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.f.Close()
}
