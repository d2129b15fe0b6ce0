package query

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/ticktier/ticktier/adapter/store"
)

// rawSource is the index of raw samples among the sources; tier i is source i+1.
const rawSource = 0

// source is one place samples are read from, as it stands when a query is planned.
type source struct {
	res      int64 // width of a window in ms, 1 for raw
	from, to int64 // what it holds, half-open
}

// holds reports whether all of [a, b) is there.
func (s source) holds(a, b int64) bool { return s.from <= a && b <= s.to }

// stretch is a half-open piece of time and the source it is read from. Both ends
// are edges of the source's windows, except where raw meets raw.
type stretch struct {
	src      int
	from, to int64
}

// choice says what a selector would like to read.
type choice struct {
	// wanted is the source it prefers where that exists.
	wanted int
	// inner, where set, bounds the windows coarser than raw that may be read: they
	// must lie within [inner[0], inner[1]), so that an instant query takes the
	// ends of its range from finer sources and is exact.
	inner *[2]int64
	// holes are pieces of time, half-open, whose edges are edges of all sources'
	// windows: raw samples are missing there, so that they are read only where no
	// other source has that time.
	holes [][2]int64
	// allowed says which sources may be read at all.
	allowed func(src int) bool
}

// at is the source preferred in [a, b), which does not cross any of the breaks.
func (c choice) at(srcs []source, a int64) int {
	w := c.wanted
	for c.inner != nil && w > rawSource {
		r := srcs[w].res
		if a >= ceilTo(c.inner[0], r) && a < floorTo(c.inner[1], r) {
			break
		}
		w--
	}
	return w
}

// breaks are the times at which the preferred or the existing sources change.
func (c choice) breaks(srcs []source) []int64 {
	var out []int64
	for i, s := range srcs {
		if s.from >= s.to {
			continue
		}
		out = append(out, s.from, s.to)
		if c.inner != nil && i > rawSource && i <= c.wanted {
			out = append(out, ceilTo(c.inner[0], s.res), floorTo(c.inner[1], s.res))
		}
	}
	for _, h := range c.holes {
		out = append(out, h[0], h[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hole reports whether the piece of time that begins at a lies in one.
func (c choice) hole(a int64) bool {
	return slices.ContainsFunc(c.holes, func(h [2]int64) bool { return h[0] <= a && a < h[1] })
}

// holer is a Raw that knows where samples are missing because a block is damaged.
type holer interface{ Holes() []store.Range }

// holes are those of the raw samples, out to edges of the windows of all sources.
func (q *Queryable) holes(srcs []source) (out [][2]int64) {
	h, ok := q.raw.(holer)
	if !ok {
		return nil
	}
	res := srcs[len(srcs)-1].res
	for _, r := range h.Holes() {
		out = append(out, [2]int64{floorTo(r.From, res), ceilTo(r.To, res)})
	}
	return out
}

// pick is the source to read [a, b) from: the wanted one, then the next finer ones
// down to raw, then whatever coarser one still exists.
func (c choice) pick(srcs []source, a, b int64) (int, bool) {
	w := c.at(srcs, a)
	for i := w; i >= rawSource; i-- {
		if srcs[i].holds(a, b) && c.allowed(i) && (i != rawSource || !c.hole(a)) {
			return i, true
		}
	}
	for i := w + 1; i < len(srcs); i++ {
		if srcs[i].holds(a, b) && c.allowed(i) {
			return i, true
		}
	}
	// In a hole raw samples are better than nothing: others may be of the same time.
	return rawSource, srcs[rawSource].holds(a, b) && c.allowed(rawSource)
}

// timeline says what to read when, for all time. Pieces of time that no source
// holds are left out.
func timeline(srcs []source, c choice) []stretch {
	points := c.breaks(srcs)
	var out []stretch
	for i := 0; i+1 < len(points); i++ {
		a, b := points[i], points[i+1]
		src, ok := c.pick(srcs, a, b)
		if !ok {
			continue
		}
		out = join(srcs, out, stretch{src, a, b})
	}
	return out
}

// join appends next. A seam that is no window edge of the coarser side is moved up
// to one, so that no sample is counted twice or missed: the coarser source keeps
// the window that the seam lies in. Where no source has an older window, data began
// in this one, and the finer source has all of it.
func join(srcs []source, out []stretch, next stretch) []stretch {
	n := len(out)
	if n == 0 || out[n-1].to < next.from {
		return append(out, next)
	}
	last := &out[n-1]
	if last.src == next.src {
		last.to = next.to
		return out
	}
	res := max(srcs[last.src].res, srcs[next.src].res)
	seam := max(next.from, last.to) // last may have been moved up
	if down := floorTo(seam, res); down != seam {
		if srcs[last.src].res == res && last.to == next.from && oldest(srcs, seam) {
			return append(out[:n-1], next)
		}
		seam = down + res
	}
	last.to = seam
	if next.to <= seam {
		return out
	}
	next.from = seam
	return append(out, next)
}

// oldest reports whether t lies in the oldest window of every source.
func oldest(srcs []source, t int64) bool {
	for _, s := range srcs {
		if s.from < floorTo(t, s.res) {
			return false
		}
	}
	return true
}

// clip keeps the stretches that have windows in [lo, hi], cut at the edges of the
// windows that contain lo and hi.
func clip(srcs []source, list []stretch, lo, hi int64) []stretch {
	var out []stretch
	for _, s := range list {
		res := srcs[s.src].res
		s.from = max(s.from, floorTo(lo, res))
		s.to = min(s.to, floorTo(hi, res)+res)
		if s.from < s.to {
			out = append(out, s)
		}
	}
	return out
}

// floorTo is the last multiple of res not after t.
func floorTo(t, res int64) int64 {
	if t == math.MaxInt64 || t == math.MinInt64 {
		return t
	}
	r := t % res
	if r < 0 {
		r += res
	}
	return t - r
}

// ceilTo is the first multiple of res not before t.
func ceilTo(t, res int64) int64 {
	f := floorTo(t, res)
	if f == t {
		return t
	}
	return f + res
}

// sourceName is how requests and answers call a source: raw, 5m, 1h.
func sourceName(s source) string {
	if s.res <= 1 {
		return "raw"
	}
	return model.Duration(time.Duration(s.res) * time.Millisecond).String()
}
