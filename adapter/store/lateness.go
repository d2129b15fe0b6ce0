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
	windows  []int64   // noted, in no order
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
	return ref, err
}

func (a *lateAppender) note(t int64) {
	a.from = fold.Window(t, a.late.res)
	a.to = a.from + a.late.res
	if !slices.Contains(a.windows, a.from) {
		a.windows = append(a.windows, a.from)
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
	late := slices.DeleteFunc(a.windows, func(from int64) bool { return from+a.late.res > w })
	if len(late) == 0 {
		return nil
	}
	if err := a.late.mark(late); err != nil {
		return fmt.Errorf("mark windows with late samples: %w", err)
	}
	return nil
}
