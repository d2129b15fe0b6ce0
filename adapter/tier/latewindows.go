package tier

import (
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/ticktier/ticktier/adapter/store"
)

// What is remembered of series; of a window with more, or that would be one too many of
// all, all series are folded again.
const (
	maxWindowSeries = 4096
	maxLateSeries   = 1 << 15
)

// lateWindows are the windows that are marked.
type lateWindows struct {
	byStart map[int64]*lateWindow
	series  int // of all of them
}

// lateWindow is what is late in a window.
type lateWindow struct {
	all bool
	// allAgain says that all was marked since the window was last taken, series which of
	// its series were.
	allAgain bool
	series   map[uint64]bool
}

// marked reports whether anything was marked since the window was taken.
func (l *lateWindow) marked() bool {
	if l.allAgain {
		return true
	}
	for _, again := range l.series {
		if again {
			return true
		}
	}
	return false
}

// late is what take gives: a window, and the series to be folded again, nil for all.
type late struct {
	window int64
	series seriesSet
}

// note marks a series of a window. It says whether that is news, and whether it made
// the window one of all series.
func (d *lateWindows) note(w int64, h uint64) (news, all bool) {
	l := d.window(w)
	if l.all {
		l.allAgain = true
		return false, true
	}
	if _, ok := l.series[h]; ok {
		l.series[h] = true
		return false, false
	}
	if len(l.series) >= maxWindowSeries || d.series >= maxLateSeries {
		d.noteAll(w)
		return true, true
	}
	if l.series == nil {
		l.series = map[uint64]bool{}
	}
	l.series[h] = true
	d.series++
	return true, false
}

// noteAll marks all series of a window, and says whether that is news.
func (d *lateWindows) noteAll(w int64) (news bool) {
	l := d.window(w)
	d.series -= len(l.series)
	news = !l.all
	*l = lateWindow{all: true, allAgain: true}
	return news
}

func (d *lateWindows) window(w int64) *lateWindow {
	l := d.byStart[w]
	if l == nil {
		l = &lateWindow{}
		d.byStart[w] = l
	}
	return l
}

func (d *lateWindows) forget(w int64) {
	if l := d.byStart[w]; l != nil {
		d.series -= len(l.series)
		delete(d.byStart, w)
	}
}

// take returns all windows in order, and has them marked no more, though they stay.
func (d *lateWindows) take() []late {
	out := make([]late, 0, len(d.byStart))
	for _, w := range slices.Sorted(maps.Keys(d.byStart)) {
		l := d.byStart[w]
		l.allAgain = false
		t := late{window: w}
		if !l.all {
			t.series = make(seriesSet, len(l.series))
		}
		for h := range l.series {
			l.series[h] = false
			t.series[h] = struct{}{}
		}
		out = append(out, t)
	}
	return out
}

// done forgets what was taken of a window and not marked since. It returns what is left,
// and whether anything went.
func (d *lateWindows) done(w int64) (left *lateWindow, changed bool) {
	l := d.byStart[w]
	if l == nil || l.allAgain {
		return l, false
	}
	if !l.marked() {
		d.forget(w)
		return &lateWindow{}, true
	}
	n := len(l.series)
	maps.DeleteFunc(l.series, func(_ uint64, again bool) bool { return !again })
	d.series -= n - len(l.series)
	return l, true
}

// records is how many say all that is marked, or a few more.
func (d *lateWindows) records() int { return d.series + len(d.byStart) }

// seriesSet are series by store.LateHash; nil are all.
type seriesSet map[uint64]struct{}

func (s seriesSet) has(lset labels.Labels) bool {
	if s == nil {
		return true
	}
	_, ok := s[store.LateHash(lset)]
	return ok
}

// union is both together.
func (s seriesSet) union(other seriesSet) seriesSet {
	if s == nil || other == nil {
		return nil
	}
	out := maps.Clone(s)
	maps.Copy(out, other)
	return out
}
