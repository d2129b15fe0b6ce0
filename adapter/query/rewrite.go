package query

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"

	"github.com/ticktier/ticktier/adapter/store"
)

// reservedLabel names the matcher by which a rewritten selector finds its plan
// again when the engine selects its series. It is stripped before a store sees it.
const reservedLabel = "__tier_agg__"

// selector is one selector of a query, with the plan for it.
type selector struct {
	fn   string // the function around its range, "" for none
	rng  int64  // in ms, 0 without a range
	grid grid
	reading
	stretches []stretch
	lookback  int64
	pos       posrange.PositionRange
	// statsOnly: of native histograms only count and sum are needed.
	statsOnly bool
}

// grid is the times at which a selector is evaluated, its offset taken off: the
// ends of its ranges. step is 0 where there is one only.
type grid struct{ first, last, step int64 }

// n is how many times there are.
func (g grid) n() int64 {
	if g.step <= 0 || g.last < g.first {
		return 1
	}
	return (g.last-g.first)/g.step + 1
}

// at is time number i.
func (g grid) at(i int64) int64 { return g.first + i*g.step }

// after is the number of the first time after t; it may be n.
func (g grid) after(t int64) int64 {
	switch {
	case t < g.first:
		return 0
	case g.step <= 0:
		return 1
	}
	return min((t-g.first)/g.step+1, g.n())
}

// next is after(t), given that it is k or more.
func (g grid) next(k, t int64) int64 {
	for range 4 {
		if k >= g.n() || g.at(k) > t {
			return k
		}
		k++
	}
	return max(k, g.after(t))
}

// refuseReserved returns an error where expr uses the reserved label.
func refuseReserved(expr parser.Expr) error {
	var err error
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if vs, ok := node.(*parser.VectorSelector); ok && hasReserved(vs.LabelMatchers) {
			err = fmt.Errorf("the label %q is reserved", reservedLabel)
		}
		return nil
	})
	return err
}

func hasReserved(ms []*labels.Matcher) bool {
	for _, m := range ms {
		if m.Name == reservedLabel {
			return true
		}
	}
	return false
}

// rewrite plans every selector of stmt. Those that may read a folded tier get the
// reserved matcher, and a range function that is computed here becomes
// sum_over_time(x[1ms]): it reads back the one answer of each evaluation time, and
// drops the metric's name as the function would have.
func (e *Engine) rewrite(p *planned, stmt *parser.EvalStmt) {
	var changes []func()
	parser.Inspect(stmt.Expr, func(node parser.Node, path []parser.Node) error {
		vs, ok := node.(*parser.VectorSelector)
		if !ok || vs.Anchored || vs.Smoothed || vs.BypassEmptyMatcherCheck {
			return nil
		}
		s := &selector{reading: instantReading(), pos: vs.PosRange, lookback: ms(stmt.LookbackDelta)}
		s.grid = e.gridOf(stmt, vs, path)
		ranged, call := around(path)
		if ranged != nil {
			s.rng = ms(ranged.Range)
			s.pos = ranged.PositionRange()
			if call != nil {
				s.fn = call.Func.Name
			}
			s.reading = readingOf(s.fn)
		}
		p.choose(s)
		if !p.folded(s) && !e.rewriteAll {
			return nil
		}
		changes = append(changes, func() {
			vs.LabelMatchers = append(vs.LabelMatchers, p.register(s))
			if s.shape == asWindows {
				s.statsOnly, vs.SkipHistogramBuckets = vs.SkipHistogramBuckets, false
				call.Func = parser.Functions["sum_over_time"]
				ranged.Range = time.Millisecond
			}
		})
		return nil
	})
	for _, change := range changes {
		change()
	}
}

// around finds the range and the function that a selector's path ends with.
func around(path []parser.Node) (*parser.MatrixSelector, *parser.Call) {
	n := len(path)
	if n == 0 {
		return nil, nil
	}
	ranged, ok := path[n-1].(*parser.MatrixSelector)
	if !ok || n < 2 {
		return ranged, nil
	}
	call, _ := path[n-2].(*parser.Call)
	return ranged, call
}

// gridOf follows the engine down path: subqueries set times of their own, and what
// does not depend on the step is evaluated at the first time only.
func (e *Engine) gridOf(stmt *parser.EvalStmt, vs *parser.VectorSelector, path []parser.Node) grid {
	g := grid{stmt.Start.UnixMilli(), stmt.End.UnixMilli(), ms(stmt.Interval)}
	for _, node := range path {
		switch n := node.(type) {
		case *parser.StepInvariantExpr:
			g.last = g.first
		case *parser.SubqueryExpr:
			g = e.subquery(g, n)
		}
	}
	if vs.Timestamp != nil {
		g = grid{first: *vs.Timestamp, last: *vs.Timestamp}
	}
	off := ms(vs.OriginalOffset)
	g.first, g.last = g.first-off, g.last-off
	if g.n() == 1 {
		g.last, g.step = g.first, 0
	}
	return g
}

// subquery is the grid inside of a subquery that is evaluated on g: multiples of
// its own step.
func (e *Engine) subquery(g grid, n *parser.SubqueryExpr) grid {
	step := ms(n.Step)
	if step == 0 {
		step = e.subStep(ms(n.Range))
	}
	g.last = g.at(g.n() - 1)
	if n.Timestamp != nil {
		g = grid{first: *n.Timestamp, last: *n.Timestamp}
	}
	off := ms(n.OriginalOffset)
	lo := g.first - off - ms(n.Range)
	first := step * (lo / step)
	if first <= lo {
		first += step
	}
	return grid{first: first, last: g.last - off, step: step}
}

// ms is d in milliseconds.
func ms(d time.Duration) int64 { return int64(d / time.Millisecond) }

// register numbers s and makes the matcher that names it. The matcher is a "not
// equal" one: absent() makes labels of the equal ones.
func (p *planned) register(s *selector) *labels.Matcher {
	p.selectors = append(p.selectors, s)
	return labels.MustNewMatcher(labels.MatchNotEqual, reservedLabel, strconv.Itoa(len(p.selectors)-1))
}

// lookup finds the selector that ms name and strips the reserved matcher.
func (p *planned) lookup(ms []*labels.Matcher) (*selector, []*labels.Matcher) {
	for i, m := range ms {
		if m.Name != reservedLabel {
			continue
		}
		n, err := strconv.Atoi(m.Value)
		if err != nil || n < 0 || n >= len(p.selectors) {
			return nil, ms
		}
		rest := make([]*labels.Matcher, 0, len(ms)-1)
		return p.selectors[n], append(append(rest, ms[:i]...), ms[i+1:]...)
	}
	return nil, ms
}

// choose fills in what s reads when.
func (p *planned) choose(s *selector) {
	lo, hi := s.bounds()
	c := choice{allowed: p.opts.allowed(p.srcs), holes: p.q.holes(p.srcs)}
	if s.grid.step == 0 && s.rng > 0 {
		c.inner = &[2]int64{lo, hi + 1}
	}
	for i := len(p.srcs) - 1; i > rawSource; i-- {
		if s.suits(p.srcs[i].res) && c.allowed(i) {
			c.wanted = i
			break
		}
	}
	list := timeline(p.srcs, c)
	s.stretches = clip(p.srcs, list, lo, hi)
	if len(s.stretches) > 0 && len(s.cols) > 1 && s.cols[0] == store.Counter {
		// One bucket more, for its last sample; see bucketPart.before.
		first := &s.stretches[0]
		for _, st := range list {
			if res := p.srcs[st.src].res; st.src == first.src && st.src != rawSource && st.from < first.from && first.from <= st.to {
				first.from -= res
			}
		}
	}
}

// bounds are the first and the last millisecond that s reads.
func (s *selector) bounds() (lo, hi int64) {
	back := s.rng
	if back == 0 {
		back = s.lookback
	}
	return s.grid.first - back + 1, s.grid.at(s.grid.n() - 1)
}

// suits reports whether buckets of res ms give the answer that s asks for.
func (s *selector) suits(res int64) bool {
	switch {
	case s.rng == 0 && s.grid.step == 0, s.wantRaw:
		return false
	case s.rng > 0 && s.rng/s.minBuckets < res && !(s.exactAt(res) && !s.inexact):
		return false
	}
	step := s.grid.step
	if step == 0 {
		step = math.MaxInt64
	}
	return res <= step
}

// folded reports whether s reads a tier of buckets.
func (p *planned) folded(s *selector) bool {
	for _, st := range s.stretches {
		if st.src != rawSource {
			return true
		}
	}
	return false
}
