package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/fold"
	"github.com/ticktier/ticktier/adapter/store"
)

// scriptTiers are what a script has loaded, as raw samples and as buckets.
type scriptTiers struct{ raw, folded *API }

func newScriptTiers(s *script) *scriptTiers {
	s.t.Helper()
	held := memoryRaw{}
	for _, l := range s.loaded {
		held.load(s, l)
	}
	tier, err := store.OpenBuckets(s.t.TempDir(), store.BucketsOptions{
		Resolution: s.res, BlockRange: 1000 * 24 * hour, Counter: counterName, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = tier.Close() })
	tier.Start(base - s.res)
	end := base
	for _, h := range held {
		if n := len(h.points); n > 0 {
			end = max(end, floorTo(h.points[n-1].t, s.res)+s.res)
		}
	}
	for _, h := range held {
		f := fold.NewFolder(s.res)
		for _, p := range h.points {
			if p.h != nil {
				f.AddHistogram(p.t, p.h)
			} else {
				f.Add(p.t, p.v)
			}
		}
		tier.Put(h.lset, base-s.res, end, f.Buckets())
	}
	tier.Advance(end)
	lookback, step := 5*time.Minute, time.Minute
	if s.unit > 0 {
		// Not less than a window: a script may load by the hour.
		lookback = msToDuration(max(s.res, ms(lookback)/s.unit*s.res))
	}
	return &scriptTiers{
		raw:    scriptAPI(Config{Raw: held, LookbackDelta: lookback, SubqueryStep: step}),
		folded: scriptAPI(Config{Raw: memoryRaw{}, Tiers: []Tier{tier}, LookbackDelta: lookback, SubqueryStep: step}),
	}
}

// scriptAPI is an API without its HTTP part, which takes longer to make than a script
// runs.
func scriptAPI(c Config) *API {
	c.Logger = slog.New(slog.DiscardHandler)
	c.defaults()
	return &API{c: c, queryable: newQueryable(c), engine: newEngine(c, scriptParser())}
}

// evaluated is a query's answer, and what is said about it. A native histogram is many
// numbers: its count, its sum and its buckets.
func evaluated(a *API, expr string, start, end, step int64) (out map[string]map[int64]float64, said string, err error) {
	var q promql.Query
	ctx := context.Background()
	if step == 0 {
		q, err = a.Engine().NewInstantQuery(ctx, a.Queryable(), nil, expr, time.UnixMilli(start))
	} else {
		q, err = a.Engine().NewRangeQuery(ctx, a.Queryable(), nil, expr, time.UnixMilli(start), time.UnixMilli(end), msToDuration(step))
	}
	if err != nil {
		return nil, "", err
	}
	defer q.Close()
	res := q.Exec(ctx)
	warns, infos := res.Warnings.AsStrings("", 0, 0)
	out = map[string]map[int64]float64{}
	switch v := res.Value.(type) {
	case promql.Matrix:
		for _, m := range v {
			for _, p := range m.Floats {
				put(out, m.Metric.String(), p.T, p.F, nil)
			}
			for _, p := range m.Histograms {
				put(out, m.Metric.String(), p.T, 0, p.H)
			}
		}
	case promql.Vector:
		for _, m := range v {
			put(out, m.Metric.String(), m.T, m.F, m.H)
		}
	case promql.Scalar:
		put(out, "scalar", v.T, v.V, nil)
	}
	return out, strings.Join(slices.Concat(warns, infos), "\n"), res.Err
}

func put(out map[string]map[int64]float64, name string, at int64, v float64, h *histogram.FloatHistogram) {
	set := func(name string, v float64) {
		if out[name] == nil {
			out[name] = map[int64]float64{}
		}
		out[name][at] = v
	}
	if h == nil {
		set(name, v)
		return
	}
	set(name+" count", h.Count)
	set(name+" sum", h.Sum)
	for it := h.AllBucketIterator(); it.Next(); {
		if b := it.At(); b.Count != 0 {
			set(fmt.Sprintf("%s from %v to %v", name, b.Lower, b.Upper), b.Count)
		}
	}
}

// without drops the lines of said that are in other too.
func without(said, other string) string {
	have := strings.Split(other, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(said, "\n"), func(s string) bool { return slices.Contains(have, s) }), "\n")
}

// memoryRaw is raw samples in memory, which many small scripts fill faster than TSDBs.
type memoryRaw map[string]*memorySeries

type memorySeries struct {
	lset   labels.Labels
	points []point
}

// load adds what a line of a script loads, stretched and a millisecond earlier.
func (m memoryRaw) load(s *script, l loadedSeries) {
	k := l.lset.String()
	if m[k] == nil {
		m[k] = &memorySeries{lset: l.lset}
	}
	for i, v := range l.values {
		if v.Omitted {
			continue
		}
		at, _ := s.windows(int64(i) * l.step)
		if value.IsStaleNaN(v.Value) {
			s.ends = append(s.ends, base+at-s.res)
		}
		s.huge = s.huge || math.Abs(v.Value) > 1e90 && !math.IsInf(v.Value, 0)
		p := point{t: base + at - 1, v: v.Value, h: v.Histogram}
		if p.v == 0 {
			p.v = 0 // a sum that begins at 0 knows no -0
		}
		m[k].points = append(m[k].points, p)
	}
	slices.SortStableFunc(m[k].points, func(a, b point) int { return int((a.t - b.t) / s.res) })
	m[k].points = slices.CompactFunc(m[k].points, func(a, b point) bool { return a.t == b.t })
}

func (m memoryRaw) MinTime() int64 {
	if len(m) == 0 {
		return math.MaxInt64
	}
	return math.MinInt64
}

func (memoryRaw) ChunkQuerier(int64, int64) (storage.ChunkQuerier, error) {
	return nil, errors.ErrUnsupported
}

func (memoryRaw) ExemplarQuerier(context.Context) (storage.ExemplarQuerier, error) {
	return nil, errors.ErrUnsupported
}

func (m memoryRaw) Querier(mint, maxt int64) (storage.Querier, error) {
	return memoryQuerier{storage.NoopQuerier(), m, mint, maxt}, nil
}

type memoryQuerier struct {
	storage.Querier
	held       memoryRaw
	mint, maxt int64
}

func (q memoryQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	var list []storage.Series
	for _, k := range slices.Sorted(maps.Keys(q.held)) {
		s := q.held[k]
		if slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(s.lset.Get(m.Name)) }) {
			continue
		}
		in := slices.DeleteFunc(slices.Clone(s.points), func(p point) bool { return p.t < q.mint || p.t > q.maxt })
		if len(in) > 0 {
			list = append(list, &memorySeries{s.lset, in})
		}
	}
	slices.SortFunc(list, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &lazySet{list: list, i: -1}
}

func (s *memorySeries) Labels() labels.Labels { return s.lset }

func (s *memorySeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return &listIterator{list: s.points, i: -1}
}

// forget drops what an answer has at a time.
func forget(answer map[string]map[int64]float64, at int64) {
	for name, points := range answer {
		if delete(points, at); len(points) == 0 {
			delete(answer, name)
		}
	}
}
