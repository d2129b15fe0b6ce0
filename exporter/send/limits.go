package send

import "time"

// limits are the bounds of requests as the receiver and the way to it allow.
type limits struct {
	now bounds // of the next request
	max bounds // that now may grow to
}

const (
	// No request is made smaller than this: its symbols alone may take that much.
	minBytes   = 64 << 10
	minSamples = 1000
)

// halve makes the next request half of r; false means that r is small already.
func (l *limits) halve(r *request) bool {
	if r.series == 1 || r.samples <= minSamples {
		return false
	}
	l.now.samples = max(minSamples, r.samples/2)
	l.now.bytes = max(minBytes, min(l.now.bytes, len(r.body)/2))
	return true
}

// tooLarge is told of a request that the receiver finds too large: none will be so
// large again.
func (l *limits) tooLarge(r *request) bool {
	ok := l.halve(r)
	l.max = l.now
	return ok
}

// slower is told of a request that got no reply in time. On a slow line a smaller
// one may.
func (l *limits) slower(r *request) bool { return l.halve(r) }

// took is told how long a request took that was answered. While that is well below
// the timeout, requests grow again.
func (l *limits) took(d, timeout time.Duration) {
	if d < timeout/4 {
		l.now.samples = min(l.max.samples, l.now.samples+l.now.samples/4)
		l.now.bytes = min(l.max.bytes, l.now.bytes+l.now.bytes/4)
	}
}
