package fold

import "math"

// staleNaN is the bit pattern of Prometheus' staleness marker. It is a NaN like no
// other: compared by bits, never by IsNaN.
const staleNaN uint64 = 0x7ff0000000000002

// IsStale reports whether v is a staleness marker.
func IsStale(v float64) bool { return math.Float64bits(v) == staleNaN }

// Bucket is what one series did in one window. Its numbers are those that PromQL
// gives for the raw samples of the window, an ordinary NaN included: it counts,
// it makes the sum NaN, and it is a minimum or maximum only where nothing else is.
type Bucket struct {
	// Start is the first millisecond of the window.
	Start int64
	// Count is the number of samples, staleness markers not counted. A bucket of
	// none says only that the series ended here.
	Count         uint64
	Sum, Min, Max float64
	// First and Last are the raw samples at both ends, FirstT and LastT their
	// times in Unix milliseconds.
	First, Last   float64
	FirstT, LastT int64
	// Resets is how many times a sample was less than the one before it, and Corr
	// the sum of the samples that these came after: what a counter had counted
	// when it was reset.
	Resets uint32
	Corr   float64
	// Ended says that a staleness marker follows the last sample.
	Ended bool
	// Lacks says what is not known, because it has no meaning for the series: a
	// counter's sum, a gauge's first sample and resets. The fields are then zero.
	Lacks Parts
	// Hist is set where the window holds native histograms. Count, Resets, Ended and
	// both times are then theirs, and the floats are zero.
	Hist *Hist
}

// Parts are parts of a bucket.
type Parts uint8

// The parts that a bucket may lack.
const (
	PartSum     Parts = 1 << iota // Sum
	PartCounter                   // First, FirstT, Resets and Corr
)

// Drop forgets parts, of floats.
func (b *Bucket) Drop(p Parts) {
	if b.Hist != nil {
		return
	}
	if b.Lacks |= p; p&PartSum != 0 {
		b.Sum = 0
	}
	if p&PartCounter != 0 {
		b.First, b.FirstT, b.Resets, b.Corr = 0, 0, 0, 0
	}
}

// Window is the start of the window of width res that t lies in. It is right for
// times before the epoch too.
func Window(t, res int64) int64 {
	w := t - t%res
	if w > t {
		w -= res
	}
	return w
}

// Increase is what a counter grew from First to Last.
func (b *Bucket) Increase() float64 { return b.Last - b.First + b.Corr }

// Avg is the mean of the samples.
func (b *Bucket) Avg() float64 { return b.Sum / float64(b.Count) }

// first makes b the bucket of its first sample.
func (b *Bucket) first(t int64, v float64) {
	b.Count = 1
	b.Sum, b.Min, b.Max = v, v, v
	b.First, b.Last = v, v
	b.FirstT, b.LastT = t, t
	b.Ended = false
}

// spread widens b's minimum and maximum as PromQL does: a number beats a NaN.
func (b *Bucket) spread(lo, hi float64) {
	if lo < b.Min || math.IsNaN(b.Min) {
		b.Min = lo
	}
	if hi > b.Max || math.IsNaN(b.Max) {
		b.Max = hi
	}
}

// follow notes a reset where v, the sample after b's last, is less than it.
func (b *Bucket) follow(v float64) {
	if v < b.Last {
		b.Corr += b.Last
		b.Resets++
	}
}

// sum is a compensated sum (Neumaier): large counters keep their low digits, and
// twelve five-minute sums make the hour's.
type sum struct{ s, c float64 }

func (k *sum) add(v float64) {
	t := k.s + v
	switch {
	case math.IsInf(t, 0):
		k.c = 0
	case math.Abs(k.s) >= math.Abs(v):
		k.c += (k.s - t) + v
	default:
		k.c += (v - t) + k.s
	}
	k.s = t
}

func (k *sum) value() float64 { return k.s + k.c }
