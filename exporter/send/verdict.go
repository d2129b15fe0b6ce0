package send

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// verdict is what a reply means for the request.
type verdict uint8

const (
	accepted  verdict = iota
	retry             // later, unchanged
	refused           // for good: retrying is forbidden
	downgrade         // 1.0 may be understood where 2.0 was not
	tooLarge          // fewer series may fit
)

// classify says what a reply to protocol p means. auto says that the protocol may
// be changed, known that this receiver has confirmed a 2.0 request before.
func classify(r reply, p Protocol, auto, known bool) verdict {
	switch {
	case r.err != nil:
		return retry
	case r.code/100 == 2 && p == V2 && !r.confirmed:
		// The receiver took the body for a 1.0 message, found it empty, and stored
		// nothing. The specification says to take that for a 415.
		r.code = http.StatusUnsupportedMediaType
	case r.code/100 == 2:
		return accepted
	}
	switch {
	case r.code == http.StatusUnsupportedMediaType && p == V2 && auto:
		return downgrade
	case r.code == http.StatusBadRequest && p == V2 && auto && !known && !r.confirmed:
		return downgrade // what 1.0 receivers answer where 415 was not yet thought of
	case r.code == http.StatusRequestEntityTooLarge:
		return tooLarge
	case r.code == http.StatusTooManyRequests:
		return retry
	case ofContent(r.code):
		return refused
	default:
		// 5xx; another 4xx, which is about who asks, where and how; and what a
		// remote-write receiver never answers: a redirect, garbage. None says that the
		// samples are bad.
		return retry
	}
}

// ofContent reports whether a status is about what was sent, and the same would be
// refused again. 409 is what some receivers answer to duplicates and samples out of
// order.
func ofContent(code int) bool {
	switch code {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// denied reports whether a reply says that the endpoint or the identity is wrong:
// somebody has to change one of them, which waiting does not.
func denied(r reply) bool {
	if r.err != nil || r.code/100 != 4 || ofContent(r.code) {
		return false
	}
	switch r.code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return true
}

// check says what to look at when a receiver denies.
func check(code int) string {
	switch code {
	case http.StatusUnauthorized:
		return "the token or the password is missing, wrong or expired"
	case http.StatusForbidden:
		return "the token or the user may not write there"
	case http.StatusNotFound, http.StatusGone:
		return "the path of --remote-write.url is not the receiver's, or remote write is not enabled there"
	case http.StatusMethodNotAllowed:
		return "the path of --remote-write.url takes no POST: it is not that of remote write"
	case http.StatusProxyAuthRequired:
		return "the proxy wants credentials"
	}
	return "--remote-write.url, the credentials and what stands between"
}

const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 30 * time.Second
	// deniedBackoff is the same for a receiver that denies.
	deniedBackoff = time.Minute
	// maxRetryAfter bounds what a receiver may ask for: past it the ring has most
	// likely lost what is waiting.
	maxRetryAfter = time.Hour
	// herd is how far apart senders are spread that were all told the same time.
	herd = 5 * time.Second
)

// backoff is how long to wait before retry number n, from 0: anything up to a
// bound that doubles (full jitter), up to most, or what the receiver asked for and a
// little.
func backoff(n int, most, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		return retryAfter + rand.N(min(herd, retryAfter)+1)
	}
	bound := most
	if n < 7 {
		bound = min(bound, firstBackoff<<n)
	}
	return max(rand.N(bound), time.Millisecond)
}

// parseRetryAfter reads a Retry-After header, seconds or a date; 0 is none.
func parseRetryAfter(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	if v == "" {
		return 0
	}
	var d time.Duration
	if s, err := strconv.ParseInt(v, 10, 64); err == nil {
		d = time.Duration(min(max(s, 0), int64(maxRetryAfter/time.Second))) * time.Second
	} else if t, err := http.ParseTime(v); err == nil {
		d = t.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

// negotiation remembers which protocol a receiver understands.
type negotiation struct {
	auto  bool
	use   Protocol
	known bool // a 2.0 request was confirmed
	// trial says that 1.0 is only tried, because 2.0 was answered with an
	// ambiguous 400.
	trial bool
	tried bool          // and it was refused too
	again time.Time     // when 2.0 is tried again
	wait  time.Duration // how long that was
}

const (
	firstAgain = time.Hour
	maxAgain   = 24 * time.Hour
)

func newNegotiation(m Mode) negotiation {
	n := negotiation{auto: m == Auto, use: V2}
	if m == Only1 {
		n.use = V1
	}
	return n
}

// start is called before a batch: now and then 2.0 is tried again.
func (n *negotiation) start(now time.Time) {
	if n.auto && n.use == V1 && !now.Before(n.again) {
		n.use = V2
	}
}

// downgrade makes 1.0 the protocol for a while, longer each time.
func (n *negotiation) downgrade(now time.Time, trial bool) {
	n.use, n.known, n.trial = V1, false, trial
	n.wait = min(max(2*n.wait, firstAgain), maxAgain)
	n.again = now.Add(n.wait)
}

// accepted is told that a request was accepted.
func (n *negotiation) accepted(p Protocol) {
	n.trial = false
	if p == V2 {
		n.known, n.wait = true, 0
	}
}

// refused is told that a request was refused. If 1.0 was only tried, the samples
// were at fault and not the protocol.
func (n *negotiation) refused() {
	if n.trial {
		n.trial, n.tried, n.use, n.wait = false, true, V2, 0
	}
}

// httpStatus is a status code with its name.
func httpStatus(code int) string {
	return strings.TrimSpace("HTTP " + strconv.Itoa(code) + " " + http.StatusText(code))
}
