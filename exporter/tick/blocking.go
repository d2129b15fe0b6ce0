package tick

import (
	"errors"
	"fmt"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

// ask asks a blocking source for a read, unless one is outstanding.
func (l *Loop) ask(s *source, now int64) {
	if s.busy || now < s.retryAt {
		return
	}
	s.busy, s.late, s.since = true, false, now
	s.worker.ask <- struct{}{} // never blocks: the last question was answered
}

// collect takes the answer of a blocking source, or notes that its deadline has
// passed, and tells whether the row changed.
func (l *Loop) collect(s *source, now int64) bool {
	if !s.busy {
		return false
	}
	var a answer
	select {
	case a = <-s.worker.answer:
		s.busy = false
	default:
		return l.overdue(s, now)
	}
	if a.src != nil {
		s.src = a.src
	}
	if a.err != nil && (s.src == nil || errors.Is(a.err, collectors.ErrTooLarge)) {
		s.retryAt = now + int64(l.cfg.RetryEvery)
	}
	s.slots = s.out.Slots()
	if s.late {
		// What it read is old by now. The deadline was reported; the next read
		// tells how things are.
		return false
	}
	s.took(a.took, a.err)
	s.series.Store(int64(len(s.slots)))
	l.report(s, a.err)
	s.out.CopyTo(&l.row)
	return true
}

// overdue clears the series of a source whose read takes too long, once.
func (l *Loop) overdue(s *source, now int64) bool {
	if s.late || now-s.since <= deadline(&s.spec) {
		return false
	}
	s.late = true
	for _, slot := range s.slots {
		l.row.Clear(int(slot))
	}
	err := fmt.Errorf("read %s: not done after %v", s.spec.Name, time.Duration(now-s.since))
	s.took(now-s.since, err)
	l.report(s, err)
	return len(s.slots) > 0
}

// stop ends the workers and closes the sources. Reads that block are left behind
// after a while: they hold one goroutine each until the kernel lets go.
func (l *Loop) stop() {
	l.absent.tell(l.log)
	patience := time.NewTimer(stopWait)
	defer patience.Stop()
	for _, s := range l.sources {
		if s.worker == nil {
			if s.src != nil {
				s.src.Close()
			}
			continue
		}
		close(s.worker.ask)
	}
	for _, s := range l.sources {
		if s.worker == nil {
			continue
		}
		if !s.worker.waitGone(patience.C) {
			patience.Reset(0) // the others had as long
			l.log.Warn("blocking read left behind", "collector", s.spec.Name)
		}
	}
}
