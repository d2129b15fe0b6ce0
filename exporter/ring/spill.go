package ring

import "sort"

// Sealed copies the first sealed frame with a tick of number seq or later, reusing
// buf. What it covers is in Span. false means that there is none.
func (r *Ring) Sealed(seq uint64, buf []byte) (Eviction, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fs := r.arena.all()
	i := sort.Search(len(fs), func(i int) bool { return fs[i].lastSeq >= seq })
	if i == len(fs) {
		return Eviction{}, false
	}
	return Eviction{Frame: append(buf[:0], r.arena.bytes(&fs[i])...), Before: fs[i].before, Span: fs[i].all()}, true
}

// Spill makes frames short while whoever calls writes them to disk as soon as they
// are sealed. It takes no lock.
func (r *Ring) Spill(on bool) { r.spilling.Store(on) }

// Seal ends the open frame, so that Sealed gives all there is.
func (r *Ring) Seal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.open) > 0 {
		r.close()
	}
}
