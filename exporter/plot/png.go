package plot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
)

// finish writes the picture as PNG (ISO 15948) with a palette of a byte a pixel. It is
// written by hand: image/png links a second deflate.
func (r *raster) finish(w io.Writer) error {
	var head [13]byte
	binary.BigEndian.PutUint32(head[0:], uint32(r.w))
	binary.BigEndian.PutUint32(head[4:], uint32(r.h))
	head[8], head[9] = 8, 3 // bits, colours from a palette
	var palette []byte
	for _, c := range r.palette {
		palette = append(palette, c.R, c.G, c.B)
	}
	data, err := r.deflated()
	if err != nil {
		return fmt.Errorf("compress the picture: %w", err)
	}
	out := []byte("\x89PNG\r\n\x1a\n")
	out = appendChunk(out, "IHDR", head[:])
	out = appendChunk(out, "PLTE", palette)
	out = appendChunk(out, "IDAT", data)
	out = appendChunk(out, "IEND", nil)
	_, err = w.Write(out)
	return err
}

// deflated is the rows, each behind the number of its filter, 0, in zlib's format.
func (r *raster) deflated() ([]byte, error) {
	var b bytes.Buffer
	b.Write([]byte{0x78, 0x9c})
	z, err := flate.NewWriter(&b, 6)
	if err != nil {
		return nil, err
	}
	sum := adler32.New()
	to := io.MultiWriter(z, sum)
	for y := range r.h {
		if _, err := to.Write([]byte{0}); err != nil {
			return nil, err
		}
		if _, err := to.Write(r.pix[y*r.w : (y+1)*r.w]); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return sum.Sum(b.Bytes()), nil
}

func appendChunk(dst []byte, kind string, data []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(data)))
	from := len(dst)
	dst = append(append(dst, kind...), data...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[from:]))
}
