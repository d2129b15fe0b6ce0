package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/ticktier/ticktier/adapter/fold"
)

// lateAppender notes which windows a transaction touches and, once it is
// committed, marks those that are folded already. Fold moves the watermark before
// it reads, and this looks at the watermark after it has committed: either the
// fold sees the sample or this sees the watermark.
type lateAppender struct {
	storage.ExemplarAppenderV2
	raw      *Raw
	late     *lateness // nil: nobody wants to know
	oldest   int64     // time
	from, to int64     // of the window noted last
	closed   bool      // it was folded when it was noted
	last     int       // it in windows
	windows  []Late    // noted, in no order
}

// Late is a window that got samples when it was folded already, and the series that got
// them, by LateHash, in no order and some of them more than once. All says that there
// may be others.
type Late struct {
	Window int64 // start, in Unix milliseconds
	Series []uint64
	All    bool
}

// LateHash is what a Late calls a series. Two series may share one; it is the same on
// every machine and in every version.
func LateHash(lset labels.Labels) uint64 {
	if lset.Has(FillLabel) { // read without it
		lset = labels.NewBuilder(lset).Del(FillLabel).Labels()
	}
	return labels.StableHash(lset)
}

// GetRef implements storage.GetRef.
func (a *lateAppender) GetRef(ls labels.Labels, hash uint64) (storage.SeriesRef, labels.Labels) {
	if g, ok := a.ExemplarAppenderV2.(storage.GetRef); ok {
		return g.GetRef(ls, hash)
	}
	return 0, labels.EmptyLabels()
}

func (a *lateAppender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options) (storage.SeriesRef, error) {
	if h != nil || fh != nil {
		if err := a.raw.hist.note(); err != nil {
			return 0, err
		}
	}
	ref, err := a.ExemplarAppenderV2.Append(ref, ls, st, t, v, h, fh, opts)
	if err == nil {
		a.oldest = min(a.oldest, t)
	}
	if a.late != nil && (t < a.from || t >= a.to) {
		a.note(t)
	}
	if a.closed {
		a.noteSeries(ls)
	}
	return ref, err
}

// note makes the window of a time the one noted last. Where it is not folded yet its
// series are not noted: should it be by the time of the commit, all of them may be late.
func (a *lateAppender) note(t int64) {
	a.from = fold.Window(t, a.late.res)
	a.to = a.from + a.late.res
	a.closed = a.to <= a.late.watermark()
	a.last = slices.IndexFunc(a.windows, func(l Late) bool { return l.Window == a.from })
	if a.last < 0 {
		a.last = len(a.windows)
		a.windows = append(a.windows, Late{Window: a.from})
	}
	if !a.closed {
		a.windows[a.last].All = true
	}
}

// noteSeries notes a series of the window noted last.
func (a *lateAppender) noteSeries(ls labels.Labels) {
	l := &a.windows[a.last]
	if l.All = l.All || ls.IsEmpty(); l.All {
		return
	}
	if h, n := LateHash(ls), len(l.Series); n == 0 || l.Series[n-1] != h {
		l.Series = append(l.Series, h)
	}
}

var errLateLog = errors.New("a write to the log of late samples failed")

// Commit commits, then marks. Where marking fails the samples are stored, but the
// sender is told otherwise and sends them again, which marks them again.
func (a *lateAppender) Commit() error {
	a.raw.torn.commits.RLock()
	defer a.raw.torn.commits.RUnlock()
	before := a.raw.torn.failed()
	if err := a.ExemplarAppenderV2.Commit(); err != nil {
		a.raw.torn.tear(err)
		return fmt.Errorf("%w: %w", ErrTorn, err)
	}
	if a.raw.torn.failed() > before {
		a.raw.torn.tear(errLateLog)
		return fmt.Errorf("%w: %w", ErrTorn, errLateLog)
	}
	for {
		o := a.raw.oldest.Load()
		if a.oldest >= o || a.raw.oldest.CompareAndSwap(o, a.oldest) {
			break
		}
	}
	if a.late == nil {
		return nil
	}
	w := a.late.watermark()
	late := slices.DeleteFunc(a.windows, func(l Late) bool { return l.Window+a.late.res > w })
	if len(late) == 0 {
		return nil
	}
	if err := a.late.mark(late); err != nil {
		return fmt.Errorf("mark windows with late samples: %w", err)
	}
	return nil
}
