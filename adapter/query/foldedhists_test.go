package query

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/fold"
	"github.com/ticktier/ticktier/adapter/store"
)

type histSample struct {
	t int64
	h *histogram.FloatHistogram
}

// makeHists makes a native histogram with jitter, gaps, resets, ends and changes of
// resolution, bounds and zero bucket; no sample lies on the edge of a window.
func makeHists(r *rand.Rand, length int64, isCustom, gauge bool) (out []histSample) {
	period := []int64{7 * second, 15 * second, minute}[r.IntN(3)]
	counts, zero, schema, threshold := make([]float64, 6), 0.0, int32(2), 0.001
	bounds := []float64{0.1, 0.5, 1, 5, 10}
	for t := base + r.Int64N(length/4); t < base+length; t += period {
		switch r.IntN(300) {
		case 0:
			counts, zero = make([]float64, 6), 0
		case 1:
			out = append(out, histSample{t + 1, &histogram.FloatHistogram{Sum: stale}})
			t += r.Int64N(90 * minute)
			continue
		case 2:
			schema = r.Int32N(4)
		case 3:
			bounds = [][]float64{{0.1, 0.5, 1, 5, 10}, {0.1, 0.5, 2, 5, 10}, {0.1, 0.5, 1, 5, 10, 20}}[r.IntN(3)]
		case 4:
			threshold = []float64{0.001, 0.002, 0.0005}[r.IntN(3)]
		}
		h := &histogram.FloatHistogram{Schema: schema, ZeroThreshold: threshold, ZeroCount: zero}
		zero++
		for i := range counts {
			if counts[i] += float64(r.IntN(5)); gauge {
				counts[i] = float64(r.IntN(50))
			}
		}
		h.PositiveBuckets = slices.Clone(counts)
		h.PositiveSpans = []histogram.Span{{Offset: 0, Length: 6}}
		if isCustom {
			*h = histogram.FloatHistogram{Schema: histogram.CustomBucketsSchema, CustomValues: bounds,
				PositiveSpans: []histogram.Span{{Offset: 0, Length: uint32(min(len(bounds)+1, 6))}}, PositiveBuckets: h.PositiveBuckets}
		}
		h.Count = h.ZeroCount
		for i, c := range h.PositiveBuckets {
			h.Count += c
			h.Sum += c * float64(i+1) / 4
		}
		if gauge {
			h.CounterResetHint = histogram.GaugeType
		}
		if at := t + r.Int64N(period/2); at%minute != 0 {
			out = append(out, histSample{at, h})
		}
	}
	return out
}

// foldHists makes real tiers of histograms: hours from twelve, everything in blocks
// but the newest.
func foldHists(t *testing.T, series map[string][]histSample, until int64) (fine, coarse *store.Buckets) {
	t.Helper()
	open := func(res, block int64) *store.Buckets {
		b, err := store.OpenBuckets(t.TempDir(), store.BucketsOptions{
			Resolution: res, BlockRange: block, Logger: slog.New(slog.DiscardHandler),
			Counter: func(m string) bool { return strings.HasPrefix(m, "counter") },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		b.Start(base)
		return b
	}
	fine, coarse = open(5*minute, 2*hour), open(hour, 24*hour)
	for name, list := range series {
		lset := labels.FromStrings("__name__", name)
		f, g := fold.NewFolder(5*minute), fold.NewFolder(hour)
		for _, s := range list {
			f.AddHistogram(s.t, s.h)
		}
		for _, b := range f.Buckets() {
			g.AddBucket(b)
		}
		fine.Put(lset, base, until, f.Buckets())
		coarse.Put(lset, base, until, g.Buckets())
	}
	for _, b := range []*store.Buckets{fine, coarse} {
		b.Advance(until)
		for range 4 {
			if err := b.Cut(until - 3*hour); err != nil {
				t.Fatal(err)
			}
		}
	}
	return fine, coarse
}

// readHists reads what a store of raw samples made of histograms: it says of some that
// they follow a reset.
func readHists(t *testing.T, raw Raw, name string) (out []histSample) {
	t.Helper()
	q, err := raw.Querier(0, base+24*hour)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", name))
	for set.Next() {
		it := set.At().Iterator(nil)
		for it.Next() != chunkenc.ValNone {
			at, h := it.AtFloatHistogram(nil)
			out = append(out, histSample{at, h})
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
	}
	if set.Err() != nil || len(out) == 0 {
		t.Fatalf("%d histograms of %s: %v", len(out), name, set.Err())
	}
	return out
}

// Ranges made of whole windows of folded native histograms give what the raw
// histograms give.
func TestFoldedHistograms(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(seed(t), 7))
	for round := range 6 {
		const length = 12 * hour
		series := map[string][]histSample{
			"counter_exp":    makeHists(r, length, false, false),
			"counter_custom": makeHists(r, length, true, false),
			"gauge_exp":      makeHists(r, length, false, true),
			"gauge_custom":   makeHists(r, length, true, true),
		}
		h := history{}
		h.add(labels.FromStrings("__name__", "up"), sample{base, 1})
		raw := newRawStore(t, h)
		app := raw.Appender(context.Background())
		for name, list := range series {
			for _, s := range list {
				if _, err := app.AppendHistogram(0, labels.FromStrings("__name__", name), s.t, nil, s.h.Copy()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
		for name := range series {
			series[name] = readHists(t, raw, name)
		}
		fine, coarse := foldHists(t, series, base+length)
		plain, empty := newTestAPI(t, raw), newRawStore(t, history{})
		for res, tier := range map[int64]Tier{5 * minute: fine, hour: coarse} {
			a := newTestAPI(t, empty, tier)
			for name := range series {
				for _, expr := range histExprs(name, res, r) {
					step := res * (1 + r.Int64N(2))
					want := runRange(t, plain, context.Background(), expr, base+3*hour, base+length, step)
					got := runRange(t, a, context.Background(), expr, base+3*hour, base+length, step)
					if diff := cmp.Diff(want, got, near(1e-6)); diff != "" {
						t.Fatalf("round %d: %s from %d min (-raw +tier):\n%s", round, expr, res/minute, diff)
					}
				}
			}
		}
	}
}

// histExprs are expressions over whole windows of a series.
func histExprs(name string, res int64, r *rand.Rand) (out []string) {
	x := fmt.Sprintf("%s[%dms]", name, res*(1+r.Int64N(3)))
	outer := []string{"histogram_count(%s)", "histogram_sum(%s)", "histogram_quantile(0.9, %s)", "histogram_fraction(0.2, 1, %s)"}
	fns := []string{"rate", "increase", "sum_over_time", "avg_over_time", "last_over_time"}
	if strings.HasPrefix(name, "gauge") {
		fns = []string{"delta", "sum_over_time", "avg_over_time", "last_over_time"}
	} else {
		// rate of a gauge is a mistake, which Prometheus warns of.
		out = append(out, "resets("+x+")", "histogram_count(increase("+x+")) / histogram_count(sum_over_time("+x+"))")
	}
	for _, fn := range fns {
		for i, o := range outer {
			if fn == "delta" && i > 1 {
				break // of what may be negative there is no quantile
			}
			if name == "counter_custom" && i > 1 && (fn == "rate" || fn == "increase") {
				break // where bounds change, a tier may rarely keep one that raw samples lose
			}
			out = append(out, fmt.Sprintf(o, fn+"("+x+")"))
		}
	}
	return append(out, "count_over_time("+x+")", "present_over_time("+x+")")
}

// A query over a seam of buckets and raw histograms, and one over everything there
// is, answer; windows with floats too have none.
func TestFoldedHistogramSeams(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(seed(t), 8))
	const length = 12 * hour
	list := makeHists(r, length, false, false)
	list = slices.DeleteFunc(list, func(s histSample) bool { return value.IsStaleNaN(s.h.Sum) })
	h := history{}
	h.add(labels.FromStrings("__name__", "up"), sample{base + 8*hour, 1})
	raw := newRawStore(t, h)
	app := raw.Appender(context.Background())
	for _, s := range list {
		if s.t < base+8*hour {
			continue // expired
		}
		if _, err := app.AppendHistogram(0, labels.FromStrings("__name__", "counter_exp"), s.t, nil, s.h.Copy()); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	fine, coarse := foldHists(t, map[string][]histSample{"counter_exp": list}, base+10*hour)
	a := newTestAPI(t, raw, fine, coarse)
	for _, expr := range []string{
		"histogram_quantile(0.5, rate(counter_exp[10m]))", "histogram_count(counter_exp)", "rate(counter_exp[7m])",
		"histogram_quantile(0.5, rate(counter_exp[3h]))", "histogram_sum(irate(counter_exp[10m]))", "changes(counter_exp[10m])",
		"histogram_avg(last_over_time(counter_exp[11m]))", "resets(counter_exp[17m])", "max_over_time(counter_exp[1h])",
		"first_over_time(counter_exp[1h])", "deriv(counter_exp[1h])", "counter_exp",
	} {
		for _, step := range []int64{minute, 5 * minute, hour} {
			got := runRange(t, a, context.Background(), expr, base+4*hour, base+length, step)
			if strings.HasPrefix(expr, "histogram_quantile") && len(got) != 1 {
				t.Errorf("%s: %d series", expr, len(got))
			}
		}
	}
	// What grew over everything does not depend on where it is read.
	grown := 0.0
	for i := 1; i < len(list); i++ {
		if list[i].t < base+4*hour || list[i-1].t < base+4*hour || list[i].t >= base+12*hour {
			continue
		}
		if grown += list[i].h.Count - list[i-1].h.Count; list[i].h.DetectReset(list[i-1].h) {
			grown += list[i-1].h.Count
		}
	}
	for _, p := range runRange(t, a, context.Background(), "histogram_count(increase(counter_exp[8h]))", base+12*hour, base+12*hour, hour) {
		for _, v := range p {
			if v < 0.97*grown || v > 1.05*grown {
				t.Errorf("increase %v, want about %v", v, grown)
			}
		}
	}
}
