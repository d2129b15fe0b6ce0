package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ticktier/ticktier/e2e/client"
)

// TestQueriesAgreeWithPrometheus puts several hundred made-up queries to the adapter,
// which has raw samples of the last hours, five-minute buckets of the last days and
// hours of all, and to a real Prometheus that holds the same raw samples for ever.
// An answer is the same, or the adapter says in a warning or an info why it is not,
// and then it is within bounds.
func TestQueriesAgreeWithPrometheus(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	end := lastHour()
	start := end - 4*dayMs
	series := queryHistory(seed, start, end)
	// The seams, more or less: blocks go as a whole.
	m := &queryMaker{rand.New(rand.NewPCG(seed, 12)), start, end - 48*hourMs, end - 8*hourMs, end}

	prom := startPrometheus(t, "storage: {tsdb: {out_of_order_time_window: 10d}}\n", "--web.enable-remote-write-receiver")
	prom.peer = true
	adapter := startAdapter(t, t.TempDir(), "--no-self.store", "--retention.raw=6h", "--retention.5m=48h", "--out-of-order-window=2h", "--fold.interval=1s", "--fold.lag=1s")
	for from := start; from < end; from += hourMs {
		piece := between(series, from, from+hourMs)
		pushTyped(t, prom.Client, piece, queryTypes)
		pushTyped(t, adapter.Client, piece, queryTypes)
	}
	waitFolded(t, adapter)
	waitRawGone(t, adapter, series[0], end-dayMs)

	d := &differential{t: t, prom: prom, adapter: adapter, series: series}
	for range 300 {
		d.random(m)
	}
	for range 300 {
		d.simple(m)
	}
	t.Logf("%d queries, %d refused by both: %d from raw samples only, %d the same from buckets, %d the same in spite of what was announced, %d not the same and announced",
		d.asked, d.refused, d.raw, d.exact, d.close, d.announced)
	if d.raw < 20 || d.exact < 50 || d.announced < 50 {
		t.Error("the queries made up this time test too little of one kind")
	}
}

// differential puts queries to both and compares.
type differential struct {
	t                                                 *testing.T
	prom, adapter                                     *app
	series                                            []client.Series
	asked, refused, raw, exact, close, announced, bad int
}

func (d *differential) fail(q asked, format string, args ...any) {
	d.t.Helper()
	d.t.Errorf("%s: %s", q, fmt.Sprintf(format, args...))
	if d.bad++; d.bad >= 25 {
		d.t.Fatal("25 queries went wrong; stopping")
	}
}

func (d *differential) random(m *queryMaker) {
	d.t.Helper()
	q := asked{expr: m.vector(2)}
	q.start, q.end, q.step = m.times()
	if m.IntN(6) == 0 {
		q.step = 0
	}
	d.compare(q)
}

// compare asks both and returns the answers, the adapter's second, and whether they
// may differ; nil where both refuse.
func (d *differential) compare(q asked) (want, got *reply, differs bool) {
	d.t.Helper()
	d.asked++
	want, got = ask(d.t, d.prom.Client, q), ask(d.t, d.adapter.Client, q)
	if (want.Error == "") != (got.Error == "") {
		d.fail(q, "Prometheus says %q, the adapter %q", want.Error, got.Error)
		return nil, nil, false
	}
	if want.Error != "" {
		d.refused++
		return nil, nil, false
	}
	said := announcements(want, got)
	diff := diffReplies(want, got, got.Tiers == "raw" || got.Tiers == "")
	if diff != "" && got.Tiers != "raw" && (strings.Contains(q.expr, "topk") || strings.Contains(q.expr, "bottomk")) && sameValues(want, got) {
		diff = "" // of series that are equal but for the order of adding up, either may be chosen
	}
	switch {
	case got.Tiers == "raw" || got.Tiers == "":
		d.raw++
		if diff != "" || len(said) > 0 {
			d.fail(q, "from raw samples only: %s %q", diff, said)
		}
	case diff == "" && len(said) == 0:
		d.exact++
	case diff == "":
		d.close++
	case len(said) == 0:
		d.fail(q, "tiers %s, silently different: %s", got.Tiers, diff)
	default:
		d.announced++
		if want.points() > 0 && got.points() == 0 && !emptyOnPurpose(q.expr) {
			d.fail(q, "tiers %s: Prometheus has %d points, the adapter none; %q", got.Tiers, want.points(), said)
		}
	}
	return want, got, diff != ""
}

// emptyOnPurpose reports whether a small difference may empty an answer: what is
// there or not there decides.
func emptyOnPurpose(expr string) bool {
	for _, s := range []string{"unless", "and", "absent", "topk", "bottomk"} {
		if strings.Contains(expr, s) {
			return true
		}
	}
	return false
}

// announcements are what the adapter says that Prometheus does not, without the list
// of tiers.
func announcements(want, got *reply) (out []string) {
	for _, s := range slices.Concat(got.Warnings, got.Infos) {
		if !slices.Contains(want.Warnings, s) && !slices.Contains(want.Infos, s) && !strings.Contains(s, "answered from tiers") {
			out = append(out, s)
		}
	}
	return out
}

// diffReplies says where two answers differ first; bit by bit where they are to be
// the same exactly.
func diffReplies(want, got *reply, exactly bool) string {
	for name, w := range want.Series {
		g, ok := got.Series[name]
		if !ok {
			return fmt.Sprintf("%s is missing (Prometheus has %d points)", name, len(w))
		}
		for t, v := range w {
			u, ok := g[t]
			if !ok {
				return fmt.Sprintf("%s at %d is missing, want %v (%d of %d points)", name, t, v, len(g), len(w))
			}
			if !equalTo(u, v, exactly) {
				return fmt.Sprintf("%s at %d is %v, want %v", name, t, u, v)
			}
		}
		for t, u := range g {
			if _, ok := w[t]; !ok {
				return fmt.Sprintf("%s at %d is %v, want nothing", name, t, u)
			}
		}
	}
	for name, g := range got.Series {
		if _, ok := want.Series[name]; !ok {
			return fmt.Sprintf("%s has %d points, want none", name, len(g))
		}
	}
	return ""
}

// sameValues tells that two answers have the same values at each time, whichever series
// they are of.
func sameValues(want, got *reply) bool {
	at := func(r *reply) map[int64][]float64 {
		out := map[int64][]float64{}
		for _, s := range r.Series {
			for t, v := range s {
				out[t] = append(out[t], v)
			}
		}
		return out
	}
	w, g := at(want), at(got)
	if len(w) != len(g) {
		return false
	}
	for t, vs := range w {
		us := g[t]
		slices.Sort(vs)
		slices.Sort(us)
		if !slices.EqualFunc(vs, us, func(a, b float64) bool { return equalTo(a, b, false) }) {
			return false
		}
	}
	return true
}

func equalTo(a, b float64, exactly bool) bool {
	switch {
	case a == b, math.IsNaN(a) && math.IsNaN(b):
		return true
	case exactly:
		return false
	}
	// Sums are added up in another order.
	return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b))+1e-6
}

// simple asks for one range function or one bare selector, whose bounds are known.
func (d *differential) simple(m *queryMaker) {
	d.t.Helper()
	s := d.series[m.IntN(len(d.series))]
	fn := pick(m, "count_over_time", "sum_over_time", "avg_over_time", "min_over_time", "max_over_time", "last_over_time", "present_over_time", "")
	if isCounter(s) {
		fn = pick(m, "rate", "increase", "increase", "resets", "count_over_time", "last_over_time", "")
	}
	q := asked{expr: s.Name()}
	rng := m.width()
	if fn != "" {
		q.expr = fmt.Sprintf("%s(%s[%dms])", fn, s.Name(), rng)
	}
	q.start, q.end, q.step = m.times()
	want, got, differs := d.compare(q)
	if !differs {
		return
	}
	b := bounds{s, fn, rng, 5 * minuteMs}
	if strings.Contains(got.Tiers, "1h") {
		b.res = hourMs
	}
	if err := b.check(q, row(want), row(got)); err != nil {
		d.fail(q, "tiers %s: %v; %q", got.Tiers, err, announcements(want, got))
	}
}

// row is the only series of an answer.
func row(r *reply) map[int64]float64 {
	for _, s := range r.Series {
		return s
	}
	return nil
}
