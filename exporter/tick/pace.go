package tick

import (
	"fmt"
	"time"
)

const (
	// paceWindow is the time over which missed slots are judged.
	paceWindow = int64(time.Minute)
	// paceShare is the share of slots that may be missed without a word.
	paceShare = 0.01
	// paceAgain is the shortest time between two warnings.
	paceAgain = int64(10 * time.Minute)
)

// pace tells in the log when the machine does not keep up. Only the tick goroutine
// touches it.
type pace struct {
	begun         bool
	since         int64 // when the minute that is counted began
	ticks, missed uint64
	behind        bool  // the log says that ticks are missed
	told          int64 // when it said so last
}

// watchPace judges each minute's slots. now is monotonic, ns.
func (l *Loop) watchPace(now int64) {
	p := &l.pace
	if p.begun && now-p.since < paceWindow {
		return
	}
	ticks, missed, took := l.ticks.Load(), l.missed.Load(), now-p.since
	read, lost := ticks-p.ticks, missed-p.missed
	judged := p.begun && read+lost > 0
	p.begun, p.since, p.ticks, p.missed = true, now, ticks, missed
	if !judged {
		return
	}
	share := float64(lost) / float64(read+lost)
	switch {
	case share > paceShare && (!p.behind || now-p.told >= paceAgain):
		p.behind, p.told = true, now
		l.log.Warn("ticks are missed, this machine does not keep up",
			"missed", fmt.Sprintf("%.1f%%", 100*share), "reached_hz", fmt.Sprintf("%.1f", float64(read)*float64(second)/float64(took)),
			"rate", l.cfg.Rate, "dearest", l.dearest(),
			"helps", "a lower --rate, --rate.protect=0.05, or --no-collector.NAME for what ticktier-exporter sources shows to be dear")
	case share <= paceShare && p.behind:
		p.behind = false
		l.log.Info("ticks are no longer missed", "rate", l.cfg.Rate)
	}
}

// dearest is the source that ticks have waited for longest so far.
func (l *Loop) dearest() string {
	name, most := "", uint64(0)
	for _, s := range l.sources {
		if n := s.spent.Load(); s.worker == nil && n > most {
			name, most = s.spec.Name, n
		}
	}
	return name
}
