package query

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/teststorage"

	"github.com/ticktier/ticktier/adapter/store"
)

const (
	second = int64(1000)
	minute = 60 * second
	hour   = 60 * minute
)

// seed is TEST_SEED, or one of the clock's.
func seed(t testing.TB) uint64 {
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("TEST_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("TEST_SEED: %v", err)
		}
		s = n
	}
	t.Logf("TEST_SEED=%d", s)
	return s
}

// sample is one float sample.
type sample struct {
	t int64
	v float64
}

// history is raw samples by series.
type history map[string]*hist

type hist struct {
	lset    labels.Labels
	samples []sample
}

func (h history) add(lset labels.Labels, samples ...sample) {
	k := lset.String()
	if h[k] == nil {
		h[k] = &hist{lset: lset}
	}
	h[k].samples = append(h[k].samples, samples...)
}

// between are the samples of a series in [from, to), staleness markers included.
func (h *hist) between(from, to int64) []sample {
	i := sort.Search(len(h.samples), func(k int) bool { return h.samples[k].t >= from })
	j := sort.Search(len(h.samples), func(k int) bool { return h.samples[k].t >= to })
	return h.samples[i:j]
}

// rawStore is a real TSDB as Raw, which may forget what is before expired.
type rawStore struct {
	*teststorage.TestStorage
	expired int64
	first   int64
}

func newRawStore(t testing.TB, h history) *rawStore {
	t.Helper()
	r := &rawStore{TestStorage: teststorage.New(t, func(o *tsdb.Options) {
		o.OutOfOrderTimeWindow = 1000 * hour
		o.EnableExemplarStorage, o.MaxExemplars = true, 100
	}), first: math.MaxInt64, expired: math.MinInt64}
	for _, k := range slices.Sorted(maps.Keys(h)) {
		app := r.Appender(context.Background())
		for _, s := range h[k].samples {
			if _, err := app.Append(0, h[k].lset, s.t, s.v); err != nil {
				t.Fatal(err)
			}
			r.first = min(r.first, s.t)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *rawStore) MinTime() int64 { return max(r.first, r.expired) }

func (r *rawStore) Querier(mint, maxt int64) (storage.Querier, error) {
	return r.TestStorage.Querier(max(mint, r.expired), maxt)
}

func (r *rawStore) ChunkQuerier(mint, maxt int64) (storage.ChunkQuerier, error) {
	return r.TestStorage.ChunkQuerier(max(mint, r.expired), maxt)
}

// fakeTier folds raw samples naively, whenever it is asked.
type fakeTier struct {
	h         history
	res       int64
	from      int64 // start of the oldest window held
	watermark int64
	counters  bool // every series is a counter to Value
	// typed: of a name that ends in _total no sum is kept, of others no counter, as
	// a store does when senders say the type.
	typed bool
}

func (f *fakeTier) Resolution() int64 { return f.res }
func (f *fakeTier) MinTime() int64    { return f.from }
func (f *fakeTier) Watermark() int64  { return f.watermark }

func (f *fakeTier) Querier(mint, maxt int64, agg store.Agg, fill int64) (storage.Querier, error) {
	return &fakeQuerier{f: f, mint: mint, maxt: maxt, agg: agg, fill: fill}, nil
}

type fakeQuerier struct {
	f          *fakeTier
	mint, maxt int64
	agg        store.Agg
	fill       int64
}

func (q *fakeQuerier) Close() error { return nil }

// series are those that have a bucket in the range and match.
func (q *fakeQuerier) series(ms []*labels.Matcher) []*fakeSeries {
	var out []*fakeSeries
	for _, k := range slices.Sorted(maps.Keys(q.f.h)) {
		h := q.f.h[k]
		if !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(h.lset.Get(m.Name)) }) {
			if list := q.samples(h); len(list) > 0 {
				out = append(out, &fakeSeries{h.lset, list})
			}
		}
	}
	slices.SortFunc(out, func(a, b *fakeSeries) int { return labels.Compare(a.lset, b.lset) })
	return out
}

func (q *fakeQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	var list []storage.Series
	for _, s := range q.series(ms) {
		list = append(list, s)
	}
	return &lazySet{list: list, i: -1}
}

func (q *fakeQuerier) LabelNames(_ context.Context, _ *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	set := map[string]bool{}
	for _, s := range q.series(ms) {
		s.lset.Range(func(l labels.Label) { set[l.Name] = true })
	}
	return slices.Sorted(maps.Keys(set)), nil, nil
}

func (q *fakeQuerier) LabelValues(_ context.Context, name string, _ *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	set := map[string]bool{}
	for _, s := range q.series(ms) {
		if v := s.lset.Get(name); v != "" {
			set[v] = true
		}
	}
	return slices.Sorted(maps.Keys(set)), nil, nil
}

func (q *fakeQuerier) samples(h *hist) []sample {
	var out []sample
	from := max(q.f.from, floorTo(max(q.mint, -1000*24*hour), q.f.res))
	for w := from; w < q.f.watermark && w <= q.maxt; w += q.f.res {
		raw := h.between(w, w+q.f.res)
		if len(raw) == 0 {
			if len(h.between(w, math.MaxInt64)) == 0 {
				break
			}
			continue
		}
		for _, s := range q.f.keep(h, q.agg, foldNaively(raw, w, q.f.res, q.agg, q.fill, q.f.counters)) {
			if s.t >= q.mint && s.t <= q.maxt && s.t < q.f.watermark {
				if n := len(out); n > 0 && out[n-1].t == s.t {
					out = out[:n-1] // a marker, and the series is back
				}
				out = append(out, s)
			}
		}
	}
	return out
}

// keep leaves out what a typed tier does not keep.
func (f *fakeTier) keep(h *hist, agg store.Agg, list []sample) []sample {
	counter := strings.HasSuffix(h.lset.Get(model.MetricNameLabel), "_total")
	switch {
	case !f.typed || len(list) == 0:
	case agg == store.Sum && counter, agg == store.Resets && !counter:
		return nil
	case agg == store.Counter && !counter:
		return list[len(list)-1:]
	}
	return list
}

type fakeSeries struct {
	lset labels.Labels
	list []sample
}

func (s *fakeSeries) Labels() labels.Labels { return s.lset }
func (s *fakeSeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	points := make([]point, len(s.list))
	for i, x := range s.list {
		points[i] = point{t: x.t, v: x.v}
	}
	return &listIterator{list: points, i: -1}
}

// foldNaively gives the samples of one aggregate of a window, as store.Agg says.
func foldNaively(raw []sample, w, res int64, agg store.Agg, fill int64, counter bool) []sample {
	var vals []sample
	stale := false
	for _, s := range raw {
		if stale = value.IsStaleNaN(s.v); !stale {
			vals = append(vals, s)
		}
	}
	end := w + res
	if len(vals) == 0 {
		if agg == store.Value {
			return []sample{{w, math.Float64frombits(value.StaleNaN)}}
		}
		return nil
	}
	first, last := vals[0], vals[len(vals)-1]
	sum, lo, hi, resets, corr := 0.0, first.v, first.v, 0.0, 0.0
	for i, s := range vals {
		sum += s.v
		lo, hi = min(lo, s.v), max(hi, s.v)
		if i > 0 && s.v < vals[i-1].v {
			resets++
			corr += vals[i-1].v
		}
	}
	one := func(v float64) []sample { return []sample{{end - 1, v}} }
	switch agg {
	case store.Count:
		return one(float64(len(vals)))
	case store.Sum:
		return one(sum)
	case store.Min:
		return one(lo)
	case store.Max:
		return one(hi)
	case store.Resets:
		return one(resets)
	case store.Last:
		return one(last.v)
	case store.Counter:
		if len(vals) == 1 {
			return vals
		}
		if resets == 0 || last.t-2 <= first.t {
			return []sample{first, last}
		}
		if last.v >= corr { // a zero shows the reset
			return []sample{first, {last.t - 2, corr}, {last.t - 1, 0}, last}
		}
		return []sample{first, {last.t - 1, corr}, last}
	}
	v := sum / float64(len(vals))
	if counter {
		v = last.v
	}
	var out []sample
	if fill > 0 {
		for t := w + fill; t < end; t += fill {
			out = append(out, sample{t - 1, v})
		}
	}
	out = append(out, one(v)...)
	if stale {
		out = append(out, sample{end, math.Float64frombits(value.StaleNaN)})
	}
	return out
}

// newTestAPI is an API over raw samples and tiers.
func newTestAPI(t testing.TB, raw Raw, tiers ...Tier) *API {
	t.Helper()
	a, err := New(Config{Raw: raw, Tiers: tiers, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// testEngine is the engine that Prometheus' own scripts ask for, planned.
func testEngine(t testing.TB, rewriteAll bool) *Engine {
	step := func(int64) int64 { return minute }
	return &Engine{
		inner: promqltest.NewTestEngineWithOpts(t, promql.EngineOpts{
			MaxSamples:               promqltest.DefaultMaxSamplesPerQuery,
			Timeout:                  100 * time.Second,
			NoStepSubqueryIntervalFn: step,
			EnableAtModifier:         true,
			EnableNegativeOffset:     true,
			LookbackDelta:            5 * time.Minute,
			EnableDelayedNameRemoval: true,
			UseStartTimestamps:       true,
			Parser:                   parser.NewParser(promqltest.TestParserOpts),
		}),
		subStep:         step,
		startTimestamps: true,
		rewriteAll:      rewriteAll,
	}
}
