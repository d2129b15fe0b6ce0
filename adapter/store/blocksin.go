package store

// BlocksIn are the names of the blocks with a part of [from, to), oldest first; what
// is in memory is called "memory".
func (b *Buckets) BlocksIn(from, to int64) []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := []string{}
	for _, blk := range b.blocks {
		if blk.MinTime() < to && blk.MaxTime() > from {
			out = append(out, blk.Meta().ULID.String())
		}
	}
	if to > b.cut {
		out = append(out, "memory")
	}
	return out
}

// BlocksIn are the names of the blocks with a part of [from, to), oldest first; the
// TSDB's head is called "memory".
func (r *Raw) BlocksIn(from, to int64) []string {
	out := []string{}
	for _, blk := range r.db.Blocks() {
		if blk.MinTime() < to && blk.MaxTime() > from {
			out = append(out, blk.Meta().ULID.String())
		}
	}
	if h := r.db.Head(); min(h.MinTime(), h.MinOOOTime()) < to && h.MaxTime() >= from {
		out = append(out, "memory")
	}
	return out
}
