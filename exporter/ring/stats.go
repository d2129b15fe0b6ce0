package ring

// Stats is the state of a ring at one moment. Counters are since the start.
type Stats struct {
	Bytes    int    // that the frames held take, the open one included
	Capacity int    // the budget
	Frames   int    // held, the open one included
	Ticks    uint64 // held
	Slots    int    // of the newest tick

	// The oldest and the newest tick held; zero while there is none. Times are
	// nanoseconds since the exporter's start.
	FirstSeq, LastSeq   uint64
	FirstTime, LastTime int64

	TotalTicks    uint64 // taken
	TotalFrames   uint64 // sealed
	PackedFrames  uint64 // compressed
	EvictedFrames uint64
	EvictedTicks  uint64
	// EvictedUndelivered is the number of evicted ticks that were not delivered
	// everywhere, nor kept by Evicted; Losses has their ranges.
	EvictedUndelivered uint64
	// Refused is the number of ticks that were out of order or too large.
	Refused uint64
	// TooSmall is set while the budget cannot hold one frame of the present
	// slots.
	TooSmall bool
}

// Stats tells the state. It takes no memory.
func (r *Ring) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{
		Bytes:              r.arena.used + len(r.open),
		Capacity:           r.capacity,
		Frames:             len(r.arena.all()),
		Ticks:              r.total - r.evicted.ticks,
		Slots:              len(r.enc.Last().Values),
		TotalTicks:         r.total,
		TotalFrames:        r.next,
		PackedFrames:       r.packed,
		EvictedFrames:      r.evicted.frames,
		EvictedTicks:       r.evicted.ticks,
		EvictedUndelivered: r.evicted.undelivered,
		Refused:            r.refused,
		TooSmall:           r.tooSmall,
	}
	oldest := r.cur
	if s.Frames > 0 {
		oldest = r.arena.all()[0].span
	}
	if len(r.open) > 0 {
		s.Frames++
	}
	if s.Frames > 0 {
		s.FirstSeq, s.FirstTime = oldest.firstSeq, oldest.firstTime
		s.LastSeq, s.LastTime = r.cur.lastSeq, r.cur.lastTime
	}
	return s
}
