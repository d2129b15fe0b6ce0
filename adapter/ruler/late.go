package ruler

import (
	"slices"
	"sync"
	"time"
)

// span is a stretch of sample times in Unix ms, both ends included.
type span struct{ from, to int64 }

// late gathers the times of samples that came after rules had looked there.
type late struct {
	mu    sync.Mutex
	spans []span    // guarded by mu; apart from each other, in order
	first time.Time // guarded by mu; when the first came
	last  time.Time // guarded by mu; when the last came
}

// maxSpans bounds what is remembered; nearer ones are joined then.
const maxSpans = 1000

// add notes a span that came now.
func (l *late) add(s span, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spans) == 0 {
		l.first = now
	}
	l.last = now
	i, _ := slices.BinarySearchFunc(l.spans, s.from, func(o span, from int64) int { return int(min(1, max(-1, o.to+1-from))) })
	j := i
	for j < len(l.spans) && l.spans[j].from <= s.to+1 {
		s.from, s.to = min(s.from, l.spans[j].from), max(s.to, l.spans[j].to)
		j++
	}
	l.spans = slices.Replace(l.spans, i, j, s)
	if len(l.spans) > maxSpans {
		l.join()
	}
}

// join joins the two spans that are nearest to each other; mu is held.
func (l *late) join() {
	best := 0
	for i := range l.spans[:len(l.spans)-1] {
		if l.spans[i+1].from-l.spans[i].to < l.spans[best+1].from-l.spans[best].to {
			best = i
		}
	}
	l.spans[best].to = l.spans[best+1].to
	l.spans = slices.Delete(l.spans, best+1, best+2)
}

// take returns what was gathered, once nothing came for quiet or the first is longest
// ago.
func (l *late) take(now time.Time, quiet, longest time.Duration) []span {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spans) == 0 || now.Sub(l.last) < quiet && now.Sub(l.first) < longest {
		return nil
	}
	out := l.spans
	l.spans = nil
	return out
}
