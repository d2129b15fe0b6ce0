package tick

import (
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

const (
	absentMessage = "source is not there, its series are absent and it is tried again now and then"
	// settleTime is how long sources may take to be opened before those that are not
	// there are logged.
	settleTime = 5 * time.Second
)

// absent gathers the sources that are not there when the loop begins, so that they
// take one line in the log and not one each.
type absent struct {
	told bool // what comes from now on is logged at once
	// none are those whose files this machine does not have, foreign those that would
	// show another machine's network; both go without saying. The others have a reason.
	none, foreign, reasons []string
}

func (a *absent) add(log *slog.Logger, name string, err error) {
	switch {
	case a.told:
		log.Info(absentMessage, "collector", name, "err", err)
	case errors.Is(err, collectors.ErrNetwork):
		a.foreign = append(a.foreign, name)
	case errors.Is(err, fs.ErrNotExist):
		a.none = append(a.none, name)
	default:
		a.reasons = append(a.reasons, name+": "+err.Error())
	}
}

// tell logs what was gathered, once.
func (a *absent) tell(log *slog.Logger) {
	if a.told {
		return
	}
	a.told = true
	var args []any
	for _, kind := range []struct {
		key   string
		names []string
	}{{"not_on_this_machine", a.none}, {"not_this_network", a.foreign}} {
		if len(kind.names) > 0 {
			slices.Sort(kind.names)
			args = append(args, kind.key, strings.Join(kind.names, " "))
		}
	}
	if len(a.reasons) > 0 {
		slices.Sort(a.reasons)
		args = append(args, "other", strings.Join(a.reasons, "; "))
	}
	if len(args) > 0 {
		log.Info("sources that are not there, their series are absent and they are tried again now and then "+
			"(ticktier-exporter sources says why)", args...)
	}
	*a = absent{told: true}
}

// settled tells that every source was tried, or had its time.
func (l *Loop) settled(now int64) bool {
	if now-l.begin > int64(settleTime) {
		return true
	}
	for _, s := range l.sources {
		if !s.tried.Load() {
			return false
		}
	}
	return true
}
