package store

import (
	"fmt"
	"math/bits"
)

// checkLayout reads the layout at the start of a Prometheus chunk of float
// histograms and returns an error where it names more buckets than the chunk can
// hold: the TSDB's own reader takes memory for as many as are named.
func checkLayout(b []byte) error {
	const header = 3
	if len(b) < header {
		return fmt.Errorf("%w: a chunk is cut short", errHist)
	}
	r := bitReader{b: b[header:]}
	if r.bits(8) == 255 { // width of the zero bucket, in full
		r.bits(64)
	}
	r.varbit() // schema
	total := uint64(0)
	for range 2 { // positive and negative spans
		spans := r.varbit()
		for i := uint64(0); i < spans && !r.failed; i++ {
			length := r.varbit()
			offset := r.varbit() // where it is negative, its top bit is set
			if i > 0 && offset>>(r.last-1)&1 == 1 && offset != 1<<(r.last-1) {
				return fmt.Errorf("%w: spans out of order", errHist)
			}
			if total += length; length > uint64(len(b)) || total > uint64(len(b)) {
				return fmt.Errorf("%w: %d buckets in %d bytes", errHist, total, len(b))
			}
		}
	}
	if r.failed {
		return fmt.Errorf("%w: a chunk is cut short", errHist)
	}
	return nil
}

// bitReader reads Prometheus' bit streams.
type bitReader struct {
	b      []byte
	at     int // bits read
	failed bool
	last   uint // width of the last varbit, at least 1
}

func (r *bitReader) bits(n int) (v uint64) {
	if r.failed || r.at+n > 8*len(r.b) {
		r.failed = true
		return 0
	}
	for range n {
		v = v<<1 | uint64(r.b[r.at/8]>>(7-r.at%8)&1)
		r.at++
	}
	return v
}

// varbit reads an integer of Prometheus' variable width, as it stands: its sign is
// its top bit.
func (r *bitReader) varbit() uint64 {
	prefix := uint8(0)
	for range 8 {
		bit := uint8(r.bits(1))
		prefix = prefix<<1 | bit
		if bit == 0 {
			break
		}
	}
	widths := [...]int{0, 3, 6, 9, 12, 18, 25, 56, 64}
	n := widths[bits.OnesCount8(prefix)]
	r.last = uint(max(n, 1))
	return r.bits(n)
}
