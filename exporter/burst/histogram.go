package burst

import (
	"math"
	"slices"
)

const (
	// Schema is that of Prometheus' exponential buckets: each power of two is put
	// into 2^Schema of them, here 8, each 9 % wide.
	Schema  = 3
	perOct  = 1 << Schema
	minKey  = -40 * perOct // 10^-12; what is smaller counts as zero
	maxKey  = 63 * perOct  // what is larger is put into the last bucket
	growKey = perOct       // buckets are made by the octave
)

// ZeroThreshold is the largest value that counts as zero: the lower bound of the
// first bucket.
const ZeroThreshold = 1.0 / (1 << 40)

// bounds are the upper bounds of the buckets between a half and one.
var bounds = func() (b [perOct]float64) {
	for i := range b {
		b[i] = math.Exp2(float64(i)/perOct - 1)
	}
	return b
}()

// key is the number of the bucket that v, greater than ZeroThreshold, falls into:
// bucket k is over (2^((k-1)/8), 2^(k/8)].
func key(v float64) int {
	frac, exp := math.Frexp(v)
	i := 0
	for i < perOct && bounds[i] < frac {
		i++
	}
	return min(max(i+(exp-1)*perOct, minKey+1), maxKey)
}

// histogram is the spread of the values of one series, and their range since each
// scraper's last visit.
type histogram struct {
	start   int64 // monotonic time at which count was 0, ns
	count   uint64
	sum     float64
	zero    uint64
	first   int      // key of native[0]
	native  []uint64 // by key, dense
	classic []uint64 // by the family's bounds, not cumulative; the last is +Inf
	moved   bool     // a value other than zero was seen

	now    extent
	before [maxScrapers]extent // until the newest snapshot
}

// extent is the lowest and highest of some values.
type extent struct {
	min, max float64
	any      bool
}

func (e *extent) add(o extent) {
	switch {
	case !o.any:
	case !e.any:
		*e = o
	default:
		e.min, e.max = min(e.min, o.min), max(e.max, o.max)
	}
}

func (h *histogram) observe(v float64, bounds []float64) {
	if !(v >= 0 && v <= math.MaxFloat64) {
		return
	}
	h.count++
	h.sum += v
	if h.now.any {
		h.now.min, h.now.max = min(h.now.min, v), max(h.now.max, v)
	} else {
		h.now = extent{v, v, true}
	}
	i := 0
	for i < len(bounds) && bounds[i] < v {
		i++
	}
	h.classic[i]++
	if v <= ZeroThreshold {
		h.zero++
		return
	}
	h.moved = true
	k := key(v)
	if k < h.first || k >= h.first+len(h.native) {
		h.grow(k)
	}
	h.native[k-h.first]++
}

// grow makes room for a bucket, with those of its octave.
func (h *histogram) grow(k int) {
	lo := floor(k, growKey)
	hi := lo + growKey
	if len(h.native) > 0 {
		lo, hi = min(lo, h.first), max(hi, h.first+len(h.native))
	}
	grown := make([]uint64, hi-lo)
	if len(h.native) > 0 {
		copy(grown[h.first-lo:], h.native)
	}
	h.first, h.native = lo, grown
}

func floor(k, n int) int { return k - ((k%n)+n)%n }

// roll moves the range seen since the last snapshot to every scraper's.
func (h *histogram) roll() {
	for i := range h.before {
		h.before[i].add(h.now)
	}
	h.now = extent{}
}

// copyTo copies what a snapshot shows; it reuses the slices of dst.
func (h *histogram) copyTo(dst *Series, e extent) {
	dst.Start, dst.Count, dst.Sum, dst.Zero = h.start, h.count, h.sum, h.zero
	first, native := trimmed(h.first, h.native)
	dst.First, dst.Native = first, append(dst.Native[:0], native...)
	dst.Classic = append(dst.Classic[:0], h.classic...)
	dst.Min, dst.Max, dst.Ranged = e.min, e.max, e.any
}

// trimmed is native without the empty buckets at both ends.
func trimmed(first int, native []uint64) (int, []uint64) {
	some := func(n uint64) bool { return n > 0 }
	i := slices.IndexFunc(native, some)
	if i < 0 {
		return first, nil
	}
	n := len(native)
	for native[n-1] == 0 {
		n--
	}
	return first + i, native[i:n]
}
