package tick

import (
	"time"

	"github.com/ticktier/ticktier/collectors"
)

// worker reads one blocking source on a goroutine of its own, into a row of its own.
// At most one read is outstanding: the tick goroutine sends to ask only when the last
// answer has come, and until then touches neither row nor out.
type worker struct {
	ask    chan struct{}
	answer chan answer
	gone   chan struct{} // closed when the goroutine has ended
	row    collectors.Row
}

type answer struct {
	src  collectors.Source // non-nil when it was just opened
	err  error
	took int64
}

func newWorker() *worker {
	return &worker{ask: make(chan struct{}, 1), answer: make(chan answer, 1), gone: make(chan struct{})}
}

// run opens the source when first asked and serves until ask is closed.
func (w *worker) run(spec *collectors.Spec, env collectors.Env, out *collectors.Out, mono func() int64) {
	defer close(w.gone)
	var src collectors.Source
	for range w.ask {
		var a answer
		begin := mono()
		if src == nil {
			src, a.err = open(spec, env)
			a.src = src
		}
		if a.err == nil {
			if a.err = read(src, out); a.err != nil {
				out.ClearAll()
			}
		}
		a.took = mono() - begin
		w.answer <- a
	}
	if src != nil {
		src.Close()
	}
}

// waitGone tells whether the goroutine has ended, or does while there is patience.
func (w *worker) waitGone(patience <-chan time.Time) bool {
	select {
	case <-w.gone:
		return true
	default:
	}
	select {
	case <-w.gone:
		return true
	case <-patience:
		return false
	}
}
