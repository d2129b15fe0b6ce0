package receive

import (
	"bytes"
	"net/http"
	"time"
)

// headerSender is how an exporter says who it is and how it fares: the client's own
// words, which the Gate reads.
const headerSender = "X-Ticktier-Sender"

// Gate judges who may write before anything of a request is stored. Admit is called
// from many goroutines and must not block.
type Gate interface {
	Admit(c Claim) Verdict
}

// Claim is who a request says it is from. Strings are the client's own words, of any
// length and content.
type Claim struct {
	// Device is the instance label that is forced on the request, else that of the
	// first good series, "" where it has none.
	Device string
	// RemoteAddr is the peer's address and port, Sender its X-Ticktier-Sender header.
	RemoteAddr string
	Sender     string
	// Received is when the request came.
	Received time.Time
}

// Verdict is what becomes of a request.
type Verdict struct {
	// Device is who the request is taken for, in the log of pushes.
	Device string
	// Refuse is why nothing of it is stored, in words for the sender; "" admits it.
	// RetryAfter is how long the sender is asked to wait then.
	Refuse     string
	RetryAfter time.Duration
	// Rename is the value for instance labels that are Claim.Device; "" leaves them.
	Rename string
}

// gateError is the verdict of a Gate that refuses; tooMuch says that the sender is over
// a bound.
type gateError struct {
	v       Verdict
	tooMuch bool
}

func (e gateError) Error() string { return e.v.Refuse }

// failure is the answer: later, for what is refused here may be right in a while.
func (e gateError) failure() *failure {
	status := http.StatusServiceUnavailable
	if e.tooMuch {
		status = http.StatusTooManyRequests
	}
	return &failure{status: status, text: e.v.Refuse + "; nothing is stored", retryAfter: e.v.RetryAfter}
}

// admit asks the gate about the request whose first good series is r, once. It
// returns the series as it is to be stored.
func (b *batch) admit(q *request, r *resolved) (*resolved, error) {
	b.judged = true
	b.device = r.ls.Get("instance")
	if own := b.entry.instance(); own != "" {
		b.device = own
	}
	if b.gate == nil {
		return r, b.charge()
	}
	claim := b.claim
	claim.Device = b.device
	v := b.gate.Admit(claim)
	if v.Refuse != "" {
		return nil, gateError{v: v}
	}
	if v.Device != "" {
		b.device = v.Device
	}
	if v.Rename == "" || claim.Device == "" || v.Rename == claim.Device {
		return r, b.charge()
	}
	b.renamed = []byte(v.Rename)
	if !b.renameForced(v.Rename) {
		b.rename = []byte(claim.Device)
	}
	renamed, why := b.resolve(q, &b.series)
	if why != reasonNone {
		return nil, gateError{v: Verdict{Refuse: "the instance label cannot be " + quote(b.renamed)}}
	}
	return renamed, b.charge()
}

// charge opens the account of the request's device.
func (b *batch) charge() error {
	if b.accounts == nil {
		return nil
	}
	acc, wait, bound := b.accounts.enter(b.device, b.claim.Received)
	if acc != nil {
		b.account = acc
		return nil
	}
	text := "the device sends more samples a second than it may"
	if bound == "all" {
		text = "more samples a second come than may, and this device sends more than its share"
	}
	b.metrics.limited.WithLabelValues(bound).Inc()
	return gateError{v: Verdict{Refuse: text, RetryAfter: wait}, tooMuch: true}
}

// instance is the value that the instance label gets, and whether it is another.
func (v *resolver) instance(name, value []byte) ([]byte, bool) {
	if v.rename == nil || string(name) != "instance" || !bytes.Equal(value, v.rename) {
		return value, false
	}
	return v.renamed, true
}
