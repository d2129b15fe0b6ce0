package receive

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
)

// seen remembers, for one request, the newest element of each series. The store
// judges a sample by what it has committed; two samples of one request that
// contradict each other would pass, and the second be dropped at the commit, unnoticed.
type seen struct {
	slots []last
	gen   uint32
	rich  bool // some slot points to a histogram
}

// last is the newest element a request had for a series.
type last struct {
	gen  uint32
	kind kind
	r    *resolved
	t    int64
	bits uint64
	h    *histogram.Histogram
	fh   *histogram.FloatHistogram
}

type kind uint8

const (
	kindNone kind = iota
	kindFloat
	kindHistogram
)

// reset makes room for n series and forgets what was.
func (s *seen) reset(n int) {
	if s.rich {
		clear(s.slots)
		s.rich = false
	}
	if s.gen++; s.gen == math.MaxUint32 {
		clear(s.slots)
		s.gen = 1
	}
	size := 64
	for size < 2*n {
		size *= 2
	}
	if size > len(s.slots) || size < len(s.slots)/64 {
		s.slots = make([]last, size)
	}
}

// of returns the slot of a series: its own, or a free one marked with it.
func (s *seen) of(r *resolved) *last {
	mask := uint64(len(s.slots) - 1)
	for i := r.hash & mask; ; i = (i + 1) & mask {
		l := &s.slots[i]
		if l.gen != s.gen {
			*l = last{gen: s.gen, r: r}
			return l
		}
		if l.r == r || l.r.hash == r.hash && labels.Equal(l.r.ls, r.ls) {
			return l
		}
	}
}
