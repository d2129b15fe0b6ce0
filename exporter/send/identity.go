package send

import (
	"strconv"
	"time"
)

// headerSender tells a receiver who sends and how it fares. Its value is the run's id
// and parameters, each after "; ": time, the sender's clock in Unix ms; interval, the
// ms between pushes; lost, the ticks lost so far for want of room; last=1 where the
// sender is stopping; and at the end instance, quoted as Go quotes strings.
const headerSender = "X-Ticktier-Sender"

// identity is the value of headerSender; "" where the run has no id.
func (s *Sender) identity() string {
	if s.cfg.Session == "" {
		return ""
	}
	b := make([]byte, 0, 160)
	b = append(b, s.cfg.Session...)
	b = strconv.AppendInt(append(b, "; time="...), s.cfg.Wall(s.cfg.Now()), 10)
	b = strconv.AppendInt(append(b, "; interval="...), int64(s.cfg.Interval/time.Millisecond), 10)
	b = strconv.AppendInt(append(b, "; lost="...), s.stats.lostTicks.Load(), 10)
	if s.stopping() {
		b = append(b, "; last=1"...)
	}
	for _, l := range s.cfg.ExternalLabels {
		if l.Name == "instance" {
			b = strconv.AppendQuoteToASCII(append(b, "; instance="...), l.Value)
		}
	}
	return string(b)
}

// origin is what a request's headers say of where it comes from. Empty ones are left
// out.
type origin struct {
	seqs    string // the range of ticks
	session string // theirs, for people who read a receiver's log
	sender  string
}
