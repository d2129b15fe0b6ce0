package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Limits of the format. A frame beyond them is corrupt.
const (
	// MaxSlots bounds the slots of a frame: a thousand interfaces, CPUs and IRQs
	// each stay far below it.
	MaxSlots = 1 << 20
	// MaxBytes bounds a frame, stored and raw: the key row of MaxSlots values
	// that all have ten digits takes about 6 MiB.
	MaxBytes = 32 << 20
	// MaxMasks bounds the dictionary of Read masks: its index is one byte.
	MaxMasks = 256
)

// The layout; FORMAT.md says it in full.
const (
	version    = 1
	headerLen  = 36
	trailerLen = 24

	offMagic    = 0
	offVersion  = 2
	offFlags    = 3
	offSlots    = 4
	offRaw      = 8
	offFirstSeq = 12
	offBase     = 20
	offPeriod   = 28

	flagSealed = 1 << 0
	codecShift = 4
	flagsKnown = flagSealed | 0xf<<codecShift

	rowGap     = 1 << 0
	rowTime    = 1 << 1
	rowPeriod  = 1 << 2
	rowToggles = 1 << 3
	rowMaskIdx = 1 << 4
	rowMaskNew = 1 << 5
	rowKnown   = 1<<6 - 1
)

// Codec says how the rows of a sealed frame are stored.
type Codec uint8

// The codecs. An open frame is always Raw.
const (
	Raw     Codec = 0
	Columns Codec = 1 // by slot instead of by tick, and deflated
)

// ErrCorrupt is wrapped by every error about the bytes of a frame.
var ErrCorrupt = errors.New("corrupt frame")

// ErrCompressed is returned where rows are wanted and the frame is compressed.
var ErrCompressed = errors.New("frame is compressed")

// Info is what a frame says of itself.
type Info struct {
	Slots    int
	FirstSeq uint64
	Sealed   bool
	Codec    Codec
	// RawLen is the length of the frame before compression; 0 while open.
	RawLen int
	// Of sealed frames only: the number of ticks, the last one's number and its
	// time in nanoseconds since the exporter's start.
	Ticks    uint32
	LastSeq  uint64
	LastTime int64
}

// Parse checks a frame's header and, where it is sealed, its checksum and
// trailer. It decodes no row.
func Parse(b []byte) (Info, error) {
	var in Info
	if len(b) < headerLen {
		return in, fmt.Errorf("%w: %d bytes are less than a header", ErrCorrupt, len(b))
	}
	if len(b) > MaxBytes {
		return in, fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrCorrupt, len(b), MaxBytes)
	}
	if b[offMagic] != 't' || b[offMagic+1] != 'f' || b[offVersion] != version {
		return in, fmt.Errorf("%w: not a frame of version %d", ErrCorrupt, version)
	}
	flags := b[offFlags]
	if flags&^flagsKnown != 0 {
		return in, fmt.Errorf("%w: unknown flags %#x", ErrCorrupt, flags)
	}
	in.Sealed = flags&flagSealed != 0
	in.Codec = Codec(flags >> codecShift)
	slots := binary.LittleEndian.Uint32(b[offSlots:])
	raw := binary.LittleEndian.Uint32(b[offRaw:])
	in.FirstSeq = binary.LittleEndian.Uint64(b[offFirstSeq:])
	if slots > MaxSlots {
		return in, fmt.Errorf("%w: %d slots exceed the limit of %d", ErrCorrupt, slots, MaxSlots)
	}
	in.Slots = int(slots)
	if !in.Sealed {
		if in.Codec != Raw || raw != 0 {
			return in, fmt.Errorf("%w: an open frame that is compressed or has a length", ErrCorrupt)
		}
		return in, nil
	}
	if raw < headerLen+trailerLen || raw > MaxBytes {
		return in, fmt.Errorf("%w: raw length %d", ErrCorrupt, raw)
	}
	in.RawLen = int(raw)
	return in, in.parseTrailer(b)
}

// parseTrailer checks the trailer of a sealed frame.
func (in *Info) parseTrailer(b []byte) error {
	switch {
	case len(b) < headerLen+trailerLen:
		return fmt.Errorf("%w: %d bytes are less than header and trailer", ErrCorrupt, len(b))
	case in.Codec > Columns:
		return fmt.Errorf("%w: unknown codec %d", ErrCorrupt, in.Codec)
	case in.Codec == Raw && in.RawLen != len(b):
		return fmt.Errorf("%w: %d bytes, the header says %d", ErrCorrupt, len(b), in.RawLen)
	}
	sum := len(b) - 4
	if got, want := Checksum(b[:sum]), binary.LittleEndian.Uint32(b[sum:]); got != want {
		return fmt.Errorf("%w: checksum is %08x, the trailer says %08x", ErrCorrupt, got, want)
	}
	t := b[len(b)-trailerLen:]
	in.LastSeq = binary.LittleEndian.Uint64(t)
	in.LastTime = int64(binary.LittleEndian.Uint64(t[8:]))
	in.Ticks = binary.LittleEndian.Uint32(t[16:])
	if in.Ticks == 0 || in.LastSeq < in.FirstSeq || in.LastSeq-in.FirstSeq < uint64(in.Ticks)-1 {
		return fmt.Errorf("%w: %d ticks from %d to %d", ErrCorrupt, in.Ticks, in.FirstSeq, in.LastSeq)
	}
	return nil
}

// Checksum is the CRC-32C that a sealed frame ends with.
func Checksum(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}
