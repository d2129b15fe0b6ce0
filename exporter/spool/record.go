package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/ticktier/ticktier/exporter/frame"
)

// The layout; FORMAT.md says it in full.
const (
	magic     = "ttsp"
	version   = 1
	headerLen = 64
	headLen   = 12 // of a record
	metaLen   = 44 // of a frame record, before the frame

	maxSession = 24
	maxBoot    = 64

	// maxRecord bounds a record: a frame, or the series of MaxSlots slots.
	maxRecord = frame.MaxBytes + metaLen
)

// kind is what a record holds.
type kind uint8

const (
	kindSchema kind = 1
	kindClock  kind = 2
	kindFrame  kind = 3
	kindBoot   kind = 4
)

// errBad is wrapped by every error about the bytes of a segment.
var errBad = errors.New("corrupt segment")

// header is the beginning of a segment.
type header struct {
	number, epoch uint64
	created       int64 // Unix ms by the clock of that moment
	session       string
}

func checksum(p ...[]byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := uint32(0)
	for _, b := range p {
		sum = crc32.Update(sum, table, b)
	}
	return sum
}

func (h *header) append(dst []byte) []byte {
	var b [headerLen]byte
	copy(b[:], magic)
	b[4] = version
	binary.LittleEndian.PutUint64(b[8:], h.epoch)
	binary.LittleEndian.PutUint64(b[16:], h.number)
	binary.LittleEndian.PutUint64(b[24:], uint64(h.created))
	copy(b[32:32+maxSession], h.session)
	binary.LittleEndian.PutUint32(b[60:], checksum(b[:60]))
	return append(dst, b[:]...)
}

func parseHeader(b []byte) (header, error) {
	var h header
	switch {
	case len(b) < headerLen:
		return h, fmt.Errorf("%w: %d bytes are less than a header", errBad, len(b))
	case string(b[:4]) != magic || b[4] != version:
		return h, fmt.Errorf("%w: not a segment of version %d", errBad, version)
	case checksum(b[:60]) != binary.LittleEndian.Uint32(b[60:]):
		return h, fmt.Errorf("%w: checksum of the header", errBad)
	}
	h.epoch = binary.LittleEndian.Uint64(b[8:])
	h.number = binary.LittleEndian.Uint64(b[16:])
	h.created = int64(binary.LittleEndian.Uint64(b[24:]))
	id := b[32 : 32+maxSession]
	n := 0
	for n < len(id) && id[n] >= ' ' && id[n] < 0x7f {
		n++
	}
	h.session = string(id[:n])
	return h, nil
}

// beginRecord appends the head of a record whose payload follows; endRecord, given
// where it began, fills it in.
func beginRecord(dst []byte, k kind) []byte {
	return append(dst, byte(k), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
}

func endRecord(dst []byte, at int) {
	binary.LittleEndian.PutUint32(dst[at+4:], uint32(len(dst)-at-headLen))
	binary.LittleEndian.PutUint32(dst[at+8:], checksum(dst[at:at+8], dst[at+headLen:]))
}

// Frame is a sealed frame, and what it covers.
type Frame struct {
	// Bytes is the frame as the ring stores it, compressed or not.
	Bytes []byte
	// Before is the number of ticks of the session that came before it.
	Before uint64
	Ticks  uint64
	// The numbers and monotonic times, in ns, of its first and its last tick.
	FirstSeq, LastSeq   uint64
	FirstTime, LastTime int64
}

func (f *Frame) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, f.Before)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.Ticks))
	for _, v := range [...]uint64{f.FirstSeq, f.LastSeq, uint64(f.FirstTime), uint64(f.LastTime)} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return append(dst, f.Bytes...)
}

// parseFrame takes a frame record apart; Bytes is a part of b.
func parseFrame(b []byte) (Frame, error) {
	if len(b) < metaLen {
		return Frame{}, fmt.Errorf("%w: %d bytes are no frame", errBad, len(b))
	}
	u := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	f := Frame{Before: u(0), Ticks: uint64(binary.LittleEndian.Uint32(b[8:])), FirstSeq: u(12), LastSeq: u(20),
		FirstTime: int64(u(28)), LastTime: int64(u(36)), Bytes: b[metaLen:]}
	if f.Ticks == 0 || f.LastSeq < f.FirstSeq || f.LastSeq-f.FirstSeq < f.Ticks-1 {
		return Frame{}, fmt.Errorf("%w: a frame of %d ticks from %d to %d", errBad, f.Ticks, f.FirstSeq, f.LastSeq)
	}
	return f, nil
}

// record is one record as it is read.
type record struct {
	kind    kind
	off     int64  // where it begins
	end     int64  // and ends
	payload []byte // valid until the next read
}

// recordReader reads the records of a segment. It takes memory only for what is
// there.
type recordReader struct {
	r    io.ReaderAt
	size int64 // of what may be read
	off  int64
	buf  []byte
	head [headLen]byte
}

// next reads the record at off. io.EOF means that there is none.
func (rr *recordReader) next() (record, error) {
	rec := record{off: rr.off}
	left := rr.size - rr.off
	if left <= 0 {
		return rec, io.EOF
	}
	if left < headLen {
		return rec, fmt.Errorf("%w: %d bytes at %d are no record", errBad, left, rr.off)
	}
	if _, err := rr.r.ReadAt(rr.head[:], rr.off); err != nil {
		return rec, fmt.Errorf("read at %d: %w", rr.off, err)
	}
	rec.kind = kind(rr.head[0])
	n := int64(binary.LittleEndian.Uint32(rr.head[4:]))
	if n > left-headLen || n > maxRecord {
		return rec, fmt.Errorf("%w: record of %d bytes at %d, of which %d are there", errBad, n, rr.off, left-headLen)
	}
	if int64(cap(rr.buf)) < n {
		rr.buf = make([]byte, n)
	}
	rec.payload = rr.buf[:n]
	if _, err := rr.r.ReadAt(rec.payload, rr.off+headLen); err != nil {
		return rec, fmt.Errorf("read at %d: %w", rr.off, err)
	}
	if checksum(rr.head[:8], rec.payload) != binary.LittleEndian.Uint32(rr.head[8:]) {
		return rec, fmt.Errorf("%w: checksum of the record at %d", errBad, rr.off)
	}
	rec.end = rr.off + headLen + n
	rr.off = rec.end
	return rec, nil
}
