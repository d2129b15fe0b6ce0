package ring

// held is one sealed frame in the arena.
type held struct {
	id     uint64 // frames are numbered from 0 without holes
	off    int    // where its stored bytes are
	len    int
	rows   int // where its rows end before compression
	packed bool

	span
}

// span is what a frame, open or sealed, covers.
type span struct {
	firstSeq, lastSeq   uint64
	firstTime, lastTime int64
	ticks               uint64
	before              uint64 // ticks since the start that came before it
}

// arena is a fixed piece of memory used in a circle. Each frame lies in one piece;
// one that does not fit behind the newest goes to the beginning, and the tail
// stays unused until the circle comes round. Frames leave in the order they came.
type arena struct {
	buf    []byte
	head   int    // where the next frame goes
	used   int    // the sum of all frames' bytes
	frames []held // frames[first:], oldest first
	first  int
}

// all is the frames held, oldest first, valid until the next change.
func (a *arena) all() []held { return a.frames[a.first:] }

// place says where n bytes fit without touching a frame; false when the oldest
// frame has to go first. n is at most the size of the arena.
func (a *arena) place(n int) (int, bool) {
	fs := a.all()
	if len(fs) == 0 {
		return 0, true
	}
	tail := fs[0].off
	if a.head <= tail {
		// In use: the tail to the end of the last lap, then 0 to the head.
		return a.head, tail-a.head >= n
	}
	if len(a.buf)-a.head >= n {
		return a.head, true
	}
	return 0, tail >= n
}

// push copies a frame to where place said.
func (a *arena) push(off int, b []byte, f held) {
	f.off, f.len = off, len(b)
	copy(a.buf[off:], b)
	a.head = off + len(b)
	a.used += len(b)
	if len(a.frames) == cap(a.frames) && a.first > 0 {
		a.frames = a.frames[:copy(a.frames, a.all())]
		a.first = 0
	}
	a.frames = append(a.frames, f)
}

// shrink replaces the newest frame's bytes by fewer, and gives back the room.
func (a *arena) shrink(b []byte) {
	f := &a.frames[len(a.frames)-1]
	a.used -= f.len - len(b)
	f.len, f.packed = len(b), true
	copy(a.buf[f.off:], b)
	a.head = f.off + len(b)
}

// pop forgets the oldest frame. Its bytes stay readable until the next push.
func (a *arena) pop() held {
	f := a.frames[a.first]
	a.used -= f.len
	a.first++
	if a.first == len(a.frames) {
		a.frames, a.first = a.frames[:0], 0
	}
	return f
}

// bytes is what a frame takes; it changes with the next push.
func (a *arena) bytes(f *held) []byte { return a.buf[f.off : f.off+f.len : f.off+f.len] }
