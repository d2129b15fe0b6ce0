package collectors

// stepGuard keeps a counter that reads low for one read from looking like a reset:
// some drivers print zero, or an older value, while they gather their counters. The
// last value is held for one read; a counter that is still low then was reset.
type stepGuard struct {
	value uint64 // what is reported
	low   bool   // the last read was low and held
}

// reset takes v as it is.
func (g *stepGuard) reset(v uint64) { *g = stepGuard{value: v} }

// held takes v, or holds the value, and tells that it began to.
func (g *stepGuard) held(v uint64) bool {
	if v >= g.value || g.low {
		g.value, g.low = v, false
		return false
	}
	g.low = true
	return true
}
