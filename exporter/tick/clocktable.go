package tick

import "iter"

// Table is the table that turns monotonic into wall time: from each time on, the
// offset that makes it wall time, both in nanoseconds. The clock must not be asked
// anything while it is gone through.
func (c *Clock) Table() iter.Seq2[int64, int64] {
	return func(yield func(mono, offset int64) bool) {
		c.mu.RLock()
		defer c.mu.RUnlock()
		for _, e := range c.entries {
			if !yield(e.mono, e.offset) {
				return
			}
		}
	}
}
