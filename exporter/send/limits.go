package send

import "time"

// limits are the bounds of requests as the receiver and the way to it allow.
type limits struct {
	now bounds // of the next request
	max bounds // that now may grow to

	// Where smaller requests got past a receiver's limit, what max was and until when
	// it is not tried.
	full  bounds
	until time.Time
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

// limitTries is after how many refusals of one request, for a limit of the receiver, a
// smaller one is tried: there are limits that waiting lifts, and those of a size that
// it does not. limitRest is for how long requests then stay smaller.
const (
	limitTries = 5
	limitRest  = time.Hour
)

// limited is told of a request that was refused for a limit again and again.
func (l *limits) limited(r *request, now time.Time) bool {
	if l.until.IsZero() {
		l.full = l.max
	}
	if !l.halve(r) {
		return false
	}
	l.max, l.until = l.now, now.Add(limitRest)
	return true
}

// lift lets requests grow again that were made smaller for a limit.
func (l *limits) lift(now time.Time) {
	if !l.until.IsZero() && now.After(l.until) {
		l.max, l.until = l.full, time.Time{}
	}
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
