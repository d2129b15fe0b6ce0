package ring

// expire evicts the frames of which every tick is older, at monotonic time now, than
// ticks are to be held: what is younger is all there.
func (r *Ring) expire(now int64) {
	if r.Duration <= 0 {
		return
	}
	for fs := r.arena.all(); len(fs) > 0 && now-fs[0].lastTime > int64(r.Duration); fs = r.arena.all() {
		r.evictOldest()
	}
}
