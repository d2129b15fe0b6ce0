package store

// Agg says which number of a bucket a reader wants.
type Agg uint8

// The aggregates of a bucket. Each but Value and Counter yields one sample per
// bucket, at the last millisecond of its window.
const (
	// Value is what a bare selector means: a gauge's average, a counter's last
	// value. After a bucket in which the series ended, a staleness marker follows.
	Value Agg = iota
	// Count is the number of raw samples.
	Count
	// Sum is the sum of the raw samples.
	Sum
	// Min is the smallest raw sample.
	Min
	// Max is the largest raw sample.
	Max
	// Counter yields the samples from which rate, increase and the like get the
	// raw answer: the first and the last raw sample of the bucket at their own
	// times and, where the counter was reset between them, one more just before
	// the last that carries what was counted until the reset.
	Counter
	// Resets is the number of counter resets inside the bucket.
	Resets
	// Last is the last raw sample's value.
	Last
)
