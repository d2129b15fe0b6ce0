package store

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// shown reads series as text with their samples, "end" for a staleness marker.
func shown(t *testing.T, set storage.SeriesSet) map[string]map[int64]string {
	t.Helper()
	out := map[string]map[int64]string{}
	last := labels.EmptyLabels()
	for set.Next() {
		s := set.At()
		if labels.Compare(last, s.Labels()) >= 0 {
			t.Errorf("%s comes after %s", s.Labels(), last)
		}
		last = s.Labels()
		samples := map[int64]string{}
		it := s.Iterator(nil)
		prev := int64(math.MinInt64)
		for it.Next() == chunkenc.ValFloat {
			ts, v := it.At()
			if ts <= prev || ts != it.AtT() {
				t.Errorf("%s has %d after %d", s.Labels(), ts, prev)
			}
			prev = ts
			samples[ts] = fmt.Sprint(v)
			if value.IsStaleNaN(v) {
				samples[ts] = "end"
			}
		}
		if it.Err() != nil {
			t.Error(it.Err())
		}
		out[s.Labels().String()] = samples
	}
	if err := set.Err(); err != nil {
		t.Error(err)
	}
	return out
}

func TestFilled(t *testing.T) {
	rnd := seed(t)
	dir := t.TempDir()
	open := func() *Raw {
		t.Helper()
		raw, err := OpenRaw(dir, RawOptions{Retention: 48 * time.Hour, OutOfOrderWindow: 24 * time.Hour, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	raw := open()
	defer func() { raw.Close() }()
	var marked []int64
	watch := func() {
		raw.OnLate(res, func() int64 { return math.MaxInt64 }, func(ls []Late) error {
			for _, l := range ls {
				marked = append(marked, l.Window)
			}
			return nil
		})
	}
	watch()
	// b is recorded and replaced, c only replaced, a and x never.
	name := func(n string, i int) labels.Labels {
		return labels.FromStrings("__name__", n, "instance", fmt.Sprint("r", i))
	}
	want := map[string]map[int64]string{}
	put := func(app storage.AppenderV2, l labels.Labels, ts int64, v float64) {
		t.Helper()
		if _, err := app.Append(0, l, 0, ts, v, nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
		m := want[l.String()]
		if m == nil {
			m = map[int64]string{}
			want[l.String()] = m
		}
		m[ts] = fmt.Sprint(v)
		if value.IsStaleNaN(v) {
			m[ts] = "end"
		}
	}
	commit := func(app storage.AppenderV2) {
		t.Helper()
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	const base = int64(1_700_000_100_000)
	app := raw.AppenderV2(t.Context())
	for i := range int64(200) {
		for _, l := range []labels.Labels{name("a", 0), name("b", 0), name("b", 1), name("x", 0)} {
			if rnd.IntN(4) > 0 {
				put(app, l, base+i*15_000, float64(rnd.IntN(1000)))
			}
		}
	}
	commit(app)
	marked = nil
	check := func(raw *Raw) {
		t.Helper()
		q, err := raw.Querier(math.MinInt64, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		all := labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+")
		if diff := cmp.Diff(want, shown(t, q.Select(t.Context(), true, nil, all))); diff != "" {
			t.Errorf("samples (-want +got):\n%s", diff)
		}
		every := labels.MustNewMatcher(labels.MatchEqual, "", "") // the fold's own
		if diff := cmp.Diff(want, shown(t, q.Select(t.Context(), true, nil, every))); diff != "" {
			t.Errorf("samples of every series (-want +got):\n%s", diff)
		}
		one := labels.MustNewMatcher(labels.MatchEqual, "instance", "r0")
		b := labels.MustNewMatcher(labels.MatchEqual, "__name__", "b")
		if got := shown(t, q.Select(t.Context(), false, nil, b, one)); len(got) != 1 || !maps.Equal(got[name("b", 0).String()], want[name("b", 0).String()]) {
			t.Errorf("one series: %v", slices.Collect(maps.Keys(got)))
		}
		names, _, err := q.LabelNames(t.Context(), nil)
		if err != nil || !slices.Equal(names, []string{"__name__", "instance"}) {
			t.Errorf("label names %q, %v", names, err)
		}
		cq, err := raw.ChunkQuerier(math.MinInt64, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		defer cq.Close()
		if diff := cmp.Diff(want, shown(t, storage.NewSeriesSetFromChunkSeriesSet(cq.Select(t.Context(), true, nil, all)))); diff != "" {
			t.Errorf("samples of chunks (-want +got):\n%s", diff)
		}
		if names, _, err := cq.LabelNames(t.Context(), nil); err != nil || slices.Contains(names, FillLabel) {
			t.Errorf("label names of chunks %q, %v", names, err)
		}
	}
	check(raw)
	for run := range uint64(12) {
		app := raw.FillAppender(t.Context(), run+1)
		at := base + int64(rnd.IntN(150))*15_000
		for i := range int64(rnd.IntN(50)) {
			for _, l := range []labels.Labels{name("b", 0), name("c", 0), name("b", 1)} {
				v := float64(rnd.IntN(1000))
				if rnd.IntN(10) == 0 {
					v = math.Float64frombits(value.StaleNaN)
				}
				if rnd.IntN(3) > 0 {
					put(app, l, at+i*15_000, v)
				}
			}
		}
		commit(app)
		check(raw)
		if run == 6 {
			if err := raw.Close(); err != nil {
				t.Fatal(err)
			}
			raw = open()
			watch()
			check(raw)
		}
	}
	if len(marked) == 0 {
		t.Error("no window is folded again")
	}
	seeks(t, raw, want[name("b", 0).String()], rnd.Int64N)

	// One that asks for the mark sees what is stored.
	q, err := raw.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, FillLabel, ".+"))
	n := 0
	for ; set.Next(); n++ {
		if set.At().Labels().Get(FillLabel) == "" {
			t.Errorf("%s is not marked", set.At().Labels())
		}
	}
	if n < 12 {
		t.Errorf("%d marked series are seen", n)
	}
}

// seeks compares Seek and Next in random turns with the samples wanted.
func seeks(t *testing.T, raw *Raw, want map[int64]string, random func(int64) int64) {
	t.Helper()
	times := slices.Sorted(maps.Keys(want))
	q, err := raw.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for range 50 {
		set := q.Select(t.Context(), false, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", "b"), labels.MustNewMatcher(labels.MatchEqual, "instance", "r0"))
		if !set.Next() {
			t.Fatal("no series")
		}
		it, i := set.At().Iterator(nil), -1
		for {
			var kind chunkenc.ValueType
			if random(2) == 0 {
				i++
				kind = it.Next()
			} else {
				to := times[0] - 1000 + random(times[len(times)-1]-times[0]+60_000)
				kind = it.Seek(to)
				i = max(i, 0)
				for i < len(times) && times[i] < to {
					i++
				}
			}
			if i >= len(times) {
				if kind != chunkenc.ValNone {
					t.Errorf("after the last sample there is one at %d", it.AtT())
				}
				break
			}
			if kind != chunkenc.ValFloat || it.AtT() != times[i] {
				t.Fatalf("sample %d: kind %v at %d, want %d", i, kind, it.AtT(), times[i])
			}
		}
	}
}
