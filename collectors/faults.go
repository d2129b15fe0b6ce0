package collectors

import "log/slog"

// maxLogged bounds how much of a bad row goes to the log.
const maxLogged = 80

// faults counts what a source could not use and names the first of each kind in
// the log: once, because a kernel that prints such a row prints it at every tick.
// Not safe for concurrent use.
type faults struct {
	log  *slog.Logger
	name string

	saidBad, saidOver, saidHeld bool
}

func newFaults(env Env, name string) faults {
	log := env.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return faults{log: log, name: name}
}

// badRow counts a row that could not be parsed.
func (f *faults) badRow(out *Out, row []byte) {
	out.Stats.BadRows.Add(1)
	if f.saidBad {
		return
	}
	f.saidBad = true
	f.log.Warn("row of a kernel file left out, further ones are only counted",
		"collector", f.name, "row", label(row[:min(len(row), maxLogged)]))
}

// overflow counts a row beyond the cap.
func (f *faults) overflow(out *Out, row []byte) {
	out.Stats.Overflow.Add(1)
	if f.saidOver {
		return
	}
	f.saidOver = true
	f.log.Warn("source is at its cap, further rows are only counted",
		"collector", f.name, "row", label(row[:min(len(row), maxLogged)]))
}

// corrected counts a counter that stepped back and was held.
func (f *faults) corrected(out *Out, row string) {
	out.Stats.Corrections.Add(1)
	if f.saidHeld {
		return
	}
	f.saidHeld = true
	f.log.Info("kernel counter stepped back, its last value is held, further ones are only counted",
		"collector", f.name, "row", row)
}

// refused files a row that a table did not take.
func (f *faults) refused(out *Out, state rowState, row []byte) {
	if state == rowOver {
		f.overflow(out, row)
		return
	}
	f.badRow(out, row)
}
