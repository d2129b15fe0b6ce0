package send

import "math/bits"

// thinning leaves out reads: of each source the first in every so many slots is
// sent, at its own time.
type thinning struct {
	every  uint64 // slots; 0 and 1 are all
	bucket [64]uint64
}

// left notes reads that are left out, and reports whether there are any.
func (b *batch) left(reads uint64) bool {
	for m := reads; m != 0; m &= m - 1 {
		b.cut[bits.TrailingZeros64(m)]++
	}
	return reads != 0
}

// mask is the part of a tick's Read mask that is sent.
func (t *thinning) mask(every, seq, read uint64) uint64 {
	if every <= 1 {
		return read
	}
	if t.every != every {
		*t = thinning{every: every}
	}
	bucket := seq/every + 1
	out := read
	for i := range t.bucket {
		if read>>i&1 == 0 {
			continue
		}
		if t.bucket[i] == bucket {
			out &^= 1 << i
		}
		t.bucket[i] = bucket
	}
	return out
}
