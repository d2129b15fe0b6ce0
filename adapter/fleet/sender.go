package fleet

import (
	"strconv"
	"strings"
	"time"
)

// sender is what an exporter says of itself with each push, in X-Ticktier-Sender. The
// zero value is a sender that says nothing.
type sender struct {
	id       string // of this run of it
	instance string
	time     int64 // its clock in Unix ms; 0 is unknown
	interval time.Duration
	lost     uint64 // ticks lost in this run so far
	last     bool   // it is stopping
}

// Bounds of what is believed.
const (
	maxSenderID = 24
	maxHeader   = 4*maxInstance + 200
	maxInterval = 24 * time.Hour
)

// parseSender reads the header. What is not understood is left out; a header whose id
// is no id says nothing.
func parseSender(header string) sender {
	if len(header) > maxHeader {
		return sender{}
	}
	var s sender
	rest, instance, quoted := strings.Cut(header, "; instance=")
	if quoted {
		if v, err := strconv.Unquote(instance); err == nil && validInstance(v) {
			s.instance = v
		}
	}
	id, params, _ := strings.Cut(rest, "; ")
	if id == "" || len(id) > maxSenderID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return sender{}
	}
	s.id = id
	for params != "" {
		var p string
		p, params, _ = strings.Cut(params, "; ")
		name, value, _ := strings.Cut(p, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			continue
		}
		switch name {
		case "time":
			s.time = n
		case "interval":
			s.interval = min(time.Duration(min(n, int64(maxInterval/time.Millisecond)))*time.Millisecond, maxInterval)
		case "lost":
			s.lost = uint64(n)
		case "last":
			s.last = n == 1
		}
	}
	return s
}

// patience is how long another sender waits for this one to be silent before it is
// taken for the device: two pushes and a second.
func (s *sender) patience() time.Duration {
	const unknown = 5 * time.Second
	every := s.interval
	if every <= 0 {
		every = unknown
	}
	return min(2*every+time.Second, 5*time.Minute)
}
