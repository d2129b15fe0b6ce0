// Package send pushes ticks to a remote-write receiver: cursor → batch → encode →
// POST → classify → advance cursor. One Sender serves one URL.
//
// In come ticks from the ring, oldest first, and the schema that names their
// slots. Out go remote write 2.0 requests, or 1.0 where the receiver does not
// speak 2.0. The cursor moves when the receiver answered 2xx, or refused a request
// for good; then what was refused is counted. What the ring evicted first is
// counted too. A request that is refused as a whole is halved until the series that
// are at fault stand alone, and one that is too large or too slow is made smaller.
//
// It never slows sampling down, never drops what a receiver may yet take, follows
// no redirect, and writes no credential to a log or a label.
package send
