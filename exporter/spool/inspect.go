package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"time"
)

// ErrDamaged is returned by Verify where something is not as it should be.
var ErrDamaged = errors.New("the spool is damaged")

// Inspect writes what a directory holds. It changes nothing, and may look at one
// that is in use.
func Inspect(dir string, w io.Writer) error { return look(disk{}, dir, w, false) }

// Verify reads every byte of a directory and writes what is wrong with it; then it
// returns ErrDamaged. A torn tail of the newest segment, which a kill leaves and
// the next start cuts, is not wrong. It changes nothing.
func Verify(dir string, w io.Writer) error { return look(disk{}, dir, w, true) }

// look goes through a directory.
func look(fsys fsys, dir string, w io.Writer, verify bool) error {
	list, err := names(fsys, dir)
	if err != nil {
		return err
	}
	v := viewer{fs: fsys, dir: dir, w: w, verify: verify}
	for i, name := range list {
		if strings.HasPrefix(name, "cursor.") && !strings.HasSuffix(name, ".tmp") {
			v.cursor(name)
		} else if _, ok := segmentNumber(name); ok {
			v.segment(name, i == len(list)-1)
		}
	}
	set, err := names(fsys, filepath.Join(dir, "quarantine"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range set {
		fmt.Fprintf(w, "quarantine/%s\n", name)
	}
	fmt.Fprintf(w, "%d segments, %d ticks, %d bytes, %d files in quarantine, %d problems\n",
		v.segments, v.ticks, v.bytes, len(set), v.problems)
	if verify && v.problems > 0 {
		return ErrDamaged
	}
	return nil
}

type viewer struct {
	fs     fsys
	dir    string
	w      io.Writer
	verify bool

	segments, problems int
	ticks              uint64
	bytes              int64
	last               *segment
}

func (v *viewer) problem(name string, err error) {
	v.problems++
	fmt.Fprintf(v.w, "%s: %v\n", name, err)
}

func (v *viewer) segment(name string, newest bool) {
	found, err := scan(v.fs, filepath.Join(v.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return // delivered meanwhile
	}
	if err != nil {
		v.problem(name, err)
		return
	}
	if found.bad != nil && !(newest && found.torn) {
		v.problem(name, found.bad)
	}
	if found.frames == 0 {
		return
	}
	if v.last != nil && !follows(v.last, &found.segment) {
		v.problem(name, fmt.Errorf("%w: it does not follow the one before", errBad))
	}
	v.last = &found.segment
	v.segments++
	v.ticks += found.ticks
	v.bytes += found.size
	if !v.verify {
		fmt.Fprintf(v.w, "%s session %d (%s) ticks %d numbers %d to %d from %s to %s series %d bytes %d\n", name, found.epoch, found.session,
			found.ticks, found.firstSeq, found.lastSeq, stamp(found.clock, found.firstTime), stamp(found.clock, found.lastTime), found.slots, found.size)
	}
}

func stamp(clock []offset, mono int64) string {
	ms := wall(clock, mono)
	if ms == math.MinInt64 {
		return "unknown"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
}

func (v *viewer) cursor(name string) {
	b, err := readFile(v.fs, filepath.Join(v.dir, name), maxCursorFile)
	var p position
	var receiver string
	if err == nil {
		p, receiver, err = parsePosition(b)
	}
	switch {
	case err != nil:
		v.problem(name, err)
	case !v.verify:
		fmt.Fprintf(v.w, "%s session %d tick %d", receiver, p.epoch, p.seq)
		for _, r := range p.ahead {
			fmt.Fprintf(v.w, ", and %d to %d of session %d", r.From, r.To-1, r.Epoch)
		}
		fmt.Fprintln(v.w)
	}
}
