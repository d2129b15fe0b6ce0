package receive

import (
	"math/bits"
	"sync"
	"time"
)

// large keeps the large buffers of requests that are over for those that come: what is
// thrown away is memory until the collector comes by, which the budget knows nothing
// of. Buffers have sizes of powers of two. Safe for concurrent use.
type large struct {
	most int64 // bytes that are kept

	mu    sync.Mutex
	free  [][]byte  // the smallest first
	bytes int64     // of free
	used  time.Time // when one was taken or given back
}

// keepLarge is how long buffers that nobody needs are kept.
const keepLarge = 30 * time.Second

// take returns an empty buffer for n bytes or more.
func (l *large) take(n int64, now time.Time) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = now
	for i, b := range l.free {
		if int64(cap(b)) >= n {
			copy(l.free[i:], l.free[i+1:])
			l.free[len(l.free)-1] = nil
			l.free = l.free[:len(l.free)-1]
			l.bytes -= int64(cap(b))
			return b[:0]
		}
	}
	return make([]byte, 0, 1<<bits.Len64(uint64(n-1)))
}

// put takes a buffer back, in place of smaller ones if need be.
func (l *large) put(b []byte, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = now
	size := int64(cap(b))
	if size > l.most {
		return
	}
	for l.bytes+size > l.most && len(l.free) > 0 && int64(cap(l.free[0])) < size {
		l.bytes -= int64(cap(l.free[0]))
		l.free = append(l.free[:0], l.free[1:]...)
	}
	if l.bytes+size > l.most {
		return
	}
	i := 0
	for i < len(l.free) && cap(l.free[i]) < cap(b) {
		i++
	}
	l.free = append(l.free, nil)
	copy(l.free[i+1:], l.free[i:])
	l.free[i] = b[:0]
	l.bytes += size
}

// settle gives up what was not needed for long.
func (l *large) settle(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) > 0 && now.Sub(l.used) > keepLarge {
		l.free, l.bytes = nil, 0
	}
}
