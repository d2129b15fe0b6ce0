package frame

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
)

// Compressor makes sealed frames smaller, and raw again. The zero value is ready;
// it keeps its memory, a few times the size of the frames, between calls. Not safe
// for concurrent use.
type Compressor struct {
	cols columns

	out   appender
	codes *flate.Writer // made when it is needed

	body []byte // the streams, when reading
	src  bytes.Reader
	z    io.ReadCloser
	one  [1]byte
}

// Compress appends the compressed form of a sealed raw frame to dst. Where that
// would not be smaller, or slow to expand, it appends the frame as it is.
func (c *Compressor) Compress(dst, raw []byte) ([]byte, error) {
	in, err := Parse(raw)
	if err != nil {
		return dst, fmt.Errorf("compress: %w", err)
	}
	if !in.Sealed || in.Codec != Raw {
		return dst, fmt.Errorf("compress: frame is open or compressed")
	}
	if !c.cols.turn(raw[headerLen:len(raw)-trailerLen], in.Slots) {
		return dst, fmt.Errorf("compress: %w: rows", ErrCorrupt)
	}
	start := len(dst)
	if c.cols.work(in.Ticks) > maxWork {
		return append(dst, raw...), nil
	}
	dst = append(dst, raw[:headerLen]...)
	dst[start+offFlags] |= byte(Columns) << codecShift
	streams := [...][]byte{c.cols.heads, c.cols.counts, c.cols.gaps, c.cols.deltas}
	for _, s := range streams {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
	}
	c.out.b = dst
	for i, s := range streams {
		if err := c.deflate(s, i == len(streams)-1); err != nil {
			return dst[:start], fmt.Errorf("compress: %w", err)
		}
	}
	dst, c.out.b = c.out.b, nil
	if len(dst)-start+trailerLen >= len(raw) {
		return append(dst[:start], raw...), nil
	}
	return appendTrailer(dst, start, in.LastSeq, in.LastTime, in.Ticks), nil
}

// deflate appends one stream to the output, as blocks of its own with codes that
// fit it. Stateless compression keeps no memory between frames, but it takes
// differences that look random for incompressible; shorter codes for the more
// frequent bytes still save a quarter of those.
func (c *Compressor) deflate(s []byte, last bool) error {
	start := len(c.out.b)
	if err := flate.StatelessDeflate(&c.out, s, last, nil); err != nil {
		return err
	}
	end := len(c.out.b)
	if end-start <= len(s)-len(s)/8 {
		return nil
	}
	if c.codes == nil {
		var err error
		if c.codes, err = flate.NewWriter(&c.out, flate.HuffmanOnly); err != nil {
			return err
		}
	}
	c.codes.Reset(&c.out)
	if _, err := c.codes.Write(s); err != nil {
		return err
	}
	finish := c.codes.Flush
	if last {
		finish = c.codes.Close
	}
	if err := finish(); err != nil {
		return err
	}
	if len(c.out.b)-end < end-start {
		end = start + copy(c.out.b[start:], c.out.b[end:])
	}
	c.out.b = c.out.b[:end]
	return nil
}

// appender is an io.Writer that appends.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

// Expand appends the raw form of a frame to dst, whatever its codec. The
// bytes may be hostile: memory is taken for what really is in them, at most a few
// times MaxBytes, and time is bounded.
func (c *Compressor) Expand(dst, stored []byte) ([]byte, error) {
	in, err := Parse(stored)
	if err != nil {
		return dst, err
	}
	if !in.Sealed || in.Codec == Raw {
		return append(dst, stored...), nil
	}
	start := len(dst)
	if err := c.inflate(stored[headerLen : len(stored)-trailerLen]); err != nil {
		return dst, err
	}
	dst = append(dst, stored[:headerLen]...)
	dst[start+offFlags] = flagSealed
	dst, ok := c.cols.appendRows(dst, &in)
	if !ok || len(dst)-start+trailerLen != in.RawLen {
		return dst[:start], fmt.Errorf("%w: columns", ErrCorrupt)
	}
	return appendTrailer(dst, start, in.LastSeq, in.LastTime, in.Ticks), nil
}

// inflate reads the streams of a compressed frame into the columns.
func (c *Compressor) inflate(b []byte) error {
	cur := cursor{b: b}
	var lens [4]int
	total := 0
	for i := range lens {
		n, ok := cur.uvarint()
		if !ok || n > uint64(MaxBytes-total) {
			return fmt.Errorf("%w: length of a stream", ErrCorrupt)
		}
		lens[i] = int(n)
		total += int(n)
	}
	c.src.Reset(b[cur.pos:])
	if c.z == nil {
		c.z = flate.NewReader(&c.src)
	} else if err := c.z.(flate.Resetter).Reset(&c.src, nil); err != nil {
		return fmt.Errorf("inflate: %w", err)
	}
	if err := c.read(total); err != nil {
		return err
	}
	for i, s := range [...]*[]byte{&c.cols.heads, &c.cols.counts, &c.cols.gaps, &c.cols.deltas} {
		off := total
		for _, n := range lens[i:] {
			off -= n
		}
		*s = c.body[off : off+lens[i] : off+lens[i]]
	}
	return nil
}

// read inflates exactly total bytes into the body, which grows with what comes
// and not with what is claimed.
func (c *Compressor) read(total int) error {
	c.body = c.body[:0]
	for len(c.body) < total {
		if len(c.body) == cap(c.body) {
			c.body = append(c.body, make([]byte, min(total-len(c.body), 16<<10+len(c.body)))...)[:len(c.body)]
		}
		n, err := io.ReadFull(c.z, c.body[len(c.body):min(cap(c.body), total)])
		c.body = c.body[:len(c.body)+n]
		if err != nil {
			return fmt.Errorf("%w: inflate: %v", ErrCorrupt, err)
		}
	}
	if n, err := c.z.Read(c.one[:]); n != 0 || err != io.EOF || c.src.Len() != 0 {
		return fmt.Errorf("%w: more bytes than the streams have", ErrCorrupt)
	}
	return nil
}
