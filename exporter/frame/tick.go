package frame

// Tick is one tick of the exporter: when it was, what was read, and the raw value
// of every slot.
type Tick struct {
	// Seq is the number of the slot on the schedule; a missed slot leaves a hole.
	Seq uint64
	// Time is the monotonic time of the tick in nanoseconds since the exporter's
	// start: the slot's own time, or the true time of the read where it began
	// late.
	Time int64
	// Read has bit i set when source i was read in this tick. The slots of other
	// sources repeat what was read before and are not samples of this tick.
	Read uint64
	// Values holds the raw value of each slot; Present has bit slot%64 of word
	// slot/64 set where the slot has one.
	Values  []int64
	Present []uint64
}

// Has reports whether a slot has a value.
func (t *Tick) Has(slot int) bool {
	w := slot >> 6
	return w < len(t.Present) && t.Present[w]>>(slot&63)&1 == 1
}
