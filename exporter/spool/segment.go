package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ticktier/ticktier/exporter/frame"
)

// segment is one file of the spool. What is not of the header is guarded by
// Spool.mu.
type segment struct {
	header
	path string

	size   int64 // of what is good in it
	frames int
	ticks  uint64
	// The numbers and times of the first and the last tick.
	firstSeq, lastSeq   uint64
	firstTime, lastTime int64
	damaged             bool // a part of it was found bad, and cut
}

const suffix = ".seg"

func segmentName(number uint64) string { return fmt.Sprintf("%012d%s", number, suffix) }

// segmentNumber is the number that a file's name says it has.
func segmentNumber(name string) (uint64, bool) {
	s, ok := strings.CutSuffix(name, suffix)
	if !ok || len(s) != 12 {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// add notes a frame at the end of the segment.
func (s *segment) add(f *Frame) {
	if s.frames == 0 {
		s.firstSeq, s.firstTime = f.FirstSeq, f.FirstTime
	}
	s.lastSeq, s.lastTime = f.LastSeq, f.LastTime
	s.ticks += f.Ticks
	s.frames++
}

// scanned is what a segment was found to hold.
type scanned struct {
	segment
	slots  int
	clock  []offset
	boot   boot
	length int64 // of the file
	// bad is why reading ended before the end of the file. torn says that nothing
	// but what was written last can be missing.
	bad  error
	torn bool
}

// scan reads a segment from end to end. An error is of the disk; what is wrong with
// the bytes is in bad.
func scan(fsys fsys, path string) (scanned, error) {
	s := scanned{segment: segment{path: path}}
	f, err := fsys.OpenRead(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	if s.length, err = f.Size(); err != nil {
		return s, err
	}
	var head [headerLen]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return s, err
	}
	if s.header, s.bad = parseHeader(head[:n]); s.bad != nil {
		zeros, err := trailingZeros(f, 0, s.length)
		s.torn = n < headerLen || err == nil && zeros < headerLen
		return s, nil
	}
	if number, ok := segmentNumber(filepath.Base(path)); ok && number != s.number {
		s.bad = fmt.Errorf("%w: number %d in a file named %s", errBad, s.number, filepath.Base(path))
		return s, nil
	}
	s.size = headerLen
	rr := recordReader{r: f, size: s.length, off: headerLen}
	var sch schema
	for {
		rec, err := rr.next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err == nil {
			err = s.take(&rec, &sch)
		}
		if errors.Is(err, errBad) {
			s.bad, s.torn = err, tornAt(f, rec.off, s.length)
			return s, nil
		}
		if err != nil {
			return s, err
		}
		s.size = rec.end
	}
}

// take notes one record.
func (s *scanned) take(rec *record, sch *schema) error {
	switch rec.kind {
	case kindSchema:
		if err := sch.add(rec.payload); err != nil {
			return err
		}
		s.slots = len(sch.series)
	case kindClock:
		table, err := parseClock(rec.payload)
		if err != nil {
			return err
		}
		s.clock = table
	case kindBoot:
		b, err := parseBoot(rec.payload)
		if err != nil {
			return err
		}
		s.boot = b
	case kindFrame:
		f, err := parseFrame(rec.payload)
		if err != nil {
			return err
		}
		if s.frames > 0 && f.FirstSeq <= s.lastSeq {
			return fmt.Errorf("%w: tick %d after tick %d", errBad, f.FirstSeq, s.lastSeq)
		}
		if err := fits(&f, s.slots); err != nil {
			return err
		}
		s.add(&f)
	default:
		return fmt.Errorf("%w: record of kind %d at %d", errBad, rec.kind, rec.off)
	}
	return nil
}

// fits compares a frame with what its record says of it, and with the number of
// slots whose series are known.
func fits(f *Frame, slots int) error {
	in, err := frame.Parse(f.Bytes)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errBad, err)
	case !in.Sealed || in.FirstSeq != f.FirstSeq || in.LastSeq != f.LastSeq || uint64(in.Ticks) != f.Ticks:
		return fmt.Errorf("%w: a frame that is not what its record says", errBad)
	case in.Slots > slots:
		return fmt.Errorf("%w: a frame of %d slots, %d are known", errBad, in.Slots, slots)
	}
	return nil
}

// tornAt reports whether a bad record can be what a write that was cut short left:
// it is the last one, or from somewhere in it on there is nothing but zeros.
func tornAt(f file, off, size int64) bool {
	var head [headLen]byte
	if size-off < headLen {
		return true
	}
	if _, err := f.ReadAt(head[:], off); err != nil {
		return false
	}
	end := off
	if k := kind(head[0]); k >= kindSchema && k <= kindBoot {
		end = off + headLen + int64(binary.LittleEndian.Uint32(head[4:]))
	}
	zeros, err := trailingZeros(f, off, size)
	return err == nil && (end >= size || zeros <= end)
}

// trailingZeros is where the zeros begin that a file ends with; off, if all from
// there on are.
func trailingZeros(f file, off, size int64) (int64, error) {
	var b [4096]byte
	for at := size; at > off; {
		n := min(int64(len(b)), at-off)
		if _, err := f.ReadAt(b[:n], at-n); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := n - 1; i >= 0; i-- {
			if b[i] != 0 {
				return at - n + i + 1, nil
			}
		}
		at -= n
	}
	return off, nil
}
