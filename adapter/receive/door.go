package receive

import (
	"net/http"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
)

// Door says who a request is from, before its body is read. Enter is called from many
// goroutines.
type Door interface {
	Enter(r *http.Request) Entry
}

// DoorFunc is a function as a Door.
type DoorFunc func(r *http.Request) Entry

// Enter calls f.
func (f DoorFunc) Enter(r *http.Request) Entry { return f(r) }

// Entry is what a Door says.
type Entry struct {
	// Labels are forced on every series, whatever it says itself; ordered by name,
	// valid, and not changed while the request lasts. nil forces none.
	Labels []labels.Label
	// Status is 0 where the request may come in, else that of the answer, with its
	// text and, for 401, the value of WWW-Authenticate.
	Status          int
	Text, Challenge string
}

// instance is the instance label that is forced, "" if none is.
func (e *Entry) instance() string {
	for i := range e.Labels {
		if e.Labels[i].Name == "instance" {
			return e.Labels[i].Value
		}
	}
	return ""
}

// senderOf is what a sender says of itself, without a name where it has been given one.
func (e *Entry) senderOf(r *http.Request) string {
	s := r.Header.Get(headerSender)
	if e.instance() != "" {
		s, _, _ = strings.Cut(s, "; instance=")
	}
	return s
}

// failure is the answer to a request that may not come in.
func (e *Entry) failure() *failure {
	return &failure{status: e.Status, text: e.Text, challenge: e.Challenge}
}

// forced is a forced label with its hashes.
type forced struct {
	name, value         string
	nameHash, valueHash uint64
}

// setForced takes over the labels for the series of one request.
func (v *resolver) setForced(list []labels.Label) {
	v.forced = v.forced[:0]
	for _, l := range list {
		v.forced = append(v.forced, forced{l.Name, l.Value, v.hash(bytesOf(l.Name)), v.hash(bytesOf(l.Value))})
	}
}

// renameForced changes the forced instance label; false: there is none.
func (v *resolver) renameForced(to string) bool {
	for i := range v.forced {
		if f := &v.forced[i]; f.name == "instance" {
			f.value, f.valueHash = to, v.hash(bytesOf(to))
			return true
		}
	}
	return false
}

// isForced tells whether a label that was sent gives way to a forced one.
func (v *resolver) isForced(name []byte) bool {
	for i := range v.forced {
		if v.forced[i].name == string(name) {
			return true
		}
	}
	return false
}

// force appends the forced labels from next on that belong before name, all where it is
// nil, and returns the hash with them and which is next.
func (v *resolver) force(hash uint64, next int, name []byte) (uint64, int) {
	for ; next < len(v.forced); next++ {
		f := &v.forced[next]
		if name != nil && f.name > string(name) {
			break
		}
		hash = mix(mix(hash, f.nameHash), f.valueHash)
		v.pairs = append(v.pairs, pair{bytesOf(f.name), bytesOf(f.value)})
	}
	return hash, next
}
