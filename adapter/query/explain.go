package query

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/stats"
)

// readMetrics count what is read of each source, raw first.
type readMetrics struct {
	series, samples []prometheus.Counter
}

func newReadMetrics(names []string, reg prometheus.Registerer) readMetrics {
	series := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ticktier_adapter_query_series_read_total", Help: "Series that queries read of a tier, once for each selector and aggregate.",
	}, []string{"tier"})
	samples := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ticktier_adapter_query_samples_read_total", Help: "Samples that queries read of a tier: of a folded one, aggregates of buckets.",
	}, []string{"tier"})
	if reg != nil {
		reg.MustRegister(series, samples)
	}
	var m readMetrics
	for _, n := range names {
		m.series = append(m.series, series.WithLabelValues(n))
		m.samples = append(m.samples, samples.WithLabelValues(n))
	}
	return m
}

// explained is what one selector of a query read.
type explained struct {
	Selector string             `json:"selector"`
	Function string             `json:"function,omitempty"`
	Range    string             `json:"range,omitempty"`
	Parts    []explainedStretch `json:"parts"`
}

// explainedStretch is what was read of one source for one stretch of time.
type explainedStretch struct {
	Tier    string       `json:"tier"`
	From    string       `json:"from"` // inclusive
	To      string       `json:"to"`   // exclusive
	Blocks  []string     `json:"blocks"`
	Series  atomicNumber `json:"series"`
	Samples atomicNumber `json:"samples"`
}

type atomicNumber struct{ atomic.Int64 }

// MarshalJSON implements json.Marshaler.
func (n *atomicNumber) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, n.Load(), 10), nil
}

// explanation is what all selectors of a request read. It is safe for concurrent use.
type explanation struct {
	mu   sync.Mutex
	list []*explained
}

func (e *explanation) selectors() []*explained {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// tally counts what one selector reads, stretch by stretch.
type tally struct {
	q         *Queryable
	opts      *options
	stretches []stretch
	ex        *explained // nil unless the request wants it explained
}

// tally starts to count for a selector.
func (q *querier) tally(opts *options, fn string, rng int64, stretches []stretch, ms []*labels.Matcher) *tally {
	t := &tally{q: q.q, opts: opts, stretches: stretches}
	if opts.explain == nil {
		return t
	}
	t.ex = &explained{Selector: selectorText(ms), Function: fn, Parts: make([]explainedStretch, len(stretches))}
	if rng > 0 {
		t.ex.Range = msToDuration(rng).String()
	}
	for i, st := range stretches {
		p := &t.ex.Parts[i]
		p.Tier, p.From, p.To, p.Blocks = q.q.names[st.src], rfc3339(st.from), rfc3339(st.to), q.q.blocks(st)
	}
	opts.explain.mu.Lock()
	defer opts.explain.mu.Unlock()
	opts.explain.list = append(opts.explain.list, t.ex)
	return t
}

// series notes n series of stretch i.
func (t *tally) series(i, n int) {
	if t == nil || n == 0 {
		return
	}
	t.opts.series.Add(int64(n))
	t.q.reads.series[t.stretches[i].src].Add(float64(n))
	if t.ex != nil {
		t.ex.Parts[i].Series.Add(int64(n))
	}
}

// samples notes n samples of stretch i.
func (t *tally) samples(i, n int) {
	if t == nil || n == 0 {
		return
	}
	t.opts.samples.Add(int64(n))
	t.q.reads.samples[t.stretches[i].src].Add(float64(n))
	if t.ex != nil {
		t.ex.Parts[i].Samples.Add(int64(n))
	}
}

// blocks are the blocks of a source that overlap a stretch, where it can tell.
func (q *Queryable) blocks(st stretch) []string {
	var src any = q.raw
	if st.src != rawSource {
		src = q.folded[st.src-1]
	}
	if b, ok := src.(interface {
		BlocksIn(from, to int64) []string
	}); ok {
		return b.BlocksIn(st.from, st.to)
	}
	return []string{}
}

func rfc3339(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }

func selectorText(ms []*labels.Matcher) string {
	parts := make([]string, len(ms))
	for i, m := range ms {
		parts[i] = m.String()
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// counted counts the samples that are taken from a raw series of a stretch.
type counted struct {
	chunkenc.Iterator
	t    *tally
	i, n int
}

// countEvery is how many samples are counted at a time where nobody waits for the
// exact number: a counter that is shared costs as much as a sample.
const countEvery = 64

func (t *tally) count(i int, s storage.Series, reuse chunkenc.Iterator) chunkenc.Iterator {
	return &counted{Iterator: s.Iterator(reuse), t: t, i: i}
}

func (c *counted) Next() chunkenc.ValueType { return c.took(c.Iterator.Next()) }

func (c *counted) Seek(t int64) chunkenc.ValueType { return c.took(c.Iterator.Seek(t)) }

func (c *counted) took(vt chunkenc.ValueType) chunkenc.ValueType {
	if vt != chunkenc.ValNone {
		c.n++
	}
	if c.n >= countEvery || vt == chunkenc.ValNone || c.t.ex != nil {
		c.t.samples(c.i, c.n)
		c.n = 0
	}
	return vt
}

// renderStats is the part "stats" of an answer; with explain=1 it says too what was
// read.
func renderStats(ctx context.Context, s *stats.Statistics, param string) stats.QueryStats {
	var builtin stats.QueryStats
	if param != "" {
		builtin = stats.NewQueryStats(s)
	}
	e := optionsFrom(ctx).explain
	if e == nil {
		return builtin
	}
	out := &explainedStats{Explain: e.selectors()}
	if builtin != nil {
		b := builtin.Builtin()
		out.BuiltinStats = &b
	}
	return out
}

// explainedStats adds to the engine's own statistics what was read.
type explainedStats struct {
	*stats.BuiltinStats
	Explain []*explained `json:"explain"`
}

// Builtin implements stats.QueryStats.
func (s *explainedStats) Builtin() stats.BuiltinStats {
	if s.BuiltinStats == nil {
		return stats.BuiltinStats{}
	}
	return *s.BuiltinStats
}
