package tier

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/ticktier/ticktier/adapter/store"
)

// old makes the samples of a series in [from, to), with gaps and counter resets, and
// notes them in a model.
func old(m model, name string, from, to, step int64) Old {
	o := Old{Labels: labels.FromStrings("__name__", name)}
	v := 0.0
	for t := from + 7; t < to; t += step {
		if n := (t - from) / step; n%41 == 0 {
			continue
		} else if n%97 == 0 {
			v = 0
		}
		v += float64(t%13) + 0.5
		o.T, o.V = append(o.T, t), append(o.V, v)
		m.add(o.Labels, sample{t, v})
	}
	return o
}

// Old samples of months become five-minute buckets where those are kept, and hours
// before; doing it again, and in pieces of series, changes nothing; what raw samples of
// other series gave stays as it was.
func TestBackfill(t *testing.T) {
	b := newBench(t)
	b.now = epoch + 100*day
	live := labels.FromStrings("__name__", "live")
	want := model{}
	for at := b.now - 30*hour; at < b.now; at += 5 * minute {
		b.push(live, sample{at, float64(at % 1000)})
		want.add(live, sample{at, float64(at % 1000)})
	}
	b.cycle()
	horizon := b.d.Horizon(b.now)
	if horizon > b.now-23*hour || horizon%hour != 0 {
		t.Fatalf("the horizon is %d hours back", (b.now-horizon)/hour)
	}
	from := b.now - 92*day
	a, c := old(want, "a", from, from+3*day, 2*minute), old(want, "c", b.now-15*day, b.now-13*day, 7*minute)
	recently := old(want, "a", horizon-day, horizon-3*hour, 2*minute)
	a.T, a.V = append(a.T, recently.T...), append(a.V, recently.V...)
	fill := func(list ...Old) (all Backfilled) {
		t.Helper()
		for at := from - from%day; at < horizon; at += day {
			var part []Old
			n := 0
			for _, o := range list {
				i, _ := slices.BinarySearch(o.T, at)
				j, _ := slices.BinarySearch(o.T, min(at+day, horizon))
				part, n = append(part, Old{o.Labels, o.T[i:j], o.V[i:j]}), n+j-i
			}
			if n == 0 {
				continue
			}
			res, err := b.d.Backfill(t.Context(), part)
			if err != nil {
				t.Fatal(err)
			}
			all.Samples, all.Expired, all.Recent = all.Samples+res.Samples, all.Expired+res.Expired, all.Recent+res.Recent
		}
		return all
	}
	check := func(when string) {
		t.Helper()
		for _, tier := range []struct {
			b    *store.Buckets
			keep int64
		}{{b.fine, 14 * day}, {b.coarse, 90 * day}} {
			res := tier.b.Resolution()
			for _, agg := range []store.Agg{store.Count, store.Sum, store.Min, store.Max, store.Last} {
				got, all := read(t, tier.b, agg), want.want(res, tier.b.Watermark(), agg)
				for k, ws := range all {
					for w := range ws {
						if w < b.now-tier.keep-tier.b.BlockRange() || w < b.now-tier.keep && got[k][w] == 0 {
							delete(ws, w) // past its retention, or going to be
						}
					}
				}
				for k, ws := range got {
					for w := range ws {
						if w < b.now-tier.keep {
							if _, ok := all[k][w]; !ok {
								delete(ws, w)
							}
						}
					}
				}
				if d := cmp.Diff(all, got, cmpopts.EquateApprox(1e-9, 0)); d != "" {
					t.Fatalf("%s, tier %s, %v: %s", when, tier.b.Name(), agg, d)
				}
			}
		}
	}
	res := fill(a, c)
	if n := int64(len(a.T) + len(c.T)); res.Samples+res.Expired != n || res.Expired == 0 || res.Recent != 0 {
		t.Errorf("%+v of %d samples", res, n)
	}
	check("after the first time")
	fill(a)
	fill(c)
	check("after the second time")
	if _, err := b.d.Backfill(t.Context(), []Old{{a.Labels, a.T[len(a.T)-1:], []float64{-1}}}); err != nil {
		t.Fatal(err)
	}
	check("after a sample of a window without the others") // the fuller bucket stays
	b.cycle()
	b.reopen()
	b.cycle()
	check("after a start")

	recent, err := b.d.Backfill(t.Context(), []Old{{a.Labels, []int64{b.now - minute}, []float64{1}}})
	if err != nil || recent.Recent != 1 {
		t.Errorf("a recent sample: %+v, %v", recent, err)
	}
	if _, err := b.d.Backfill(t.Context(), []Old{{a.Labels, []int64{2, 1}, []float64{1, 2}}}); err == nil {
		t.Error("samples out of order are taken")
	}
}

// A tier that never held anything is filled too, and goes on from there.
func TestBackfillEmpty(t *testing.T) {
	b := newBench(t)
	b.now = epoch + 30*day + 3*hour
	m := model{}
	newest := b.now - day
	horizon := b.d.Horizon(newest)
	o := old(m, "a", b.now-20*day, horizon, 10*minute)
	if _, err := b.d.Backfill(t.Context(), []Old{o}); err != nil {
		t.Fatal(err)
	}
	l := labels.FromStrings("__name__", "a")
	for at := horizon + 1; at <= b.now; at += 10 * minute {
		b.push(l, sample{at, 1})
		m.add(l, sample{at, 1})
	}
	b.cycle()
	b.now += time.Minute.Milliseconds()
	b.cycle()
	got, want := read(t, b.coarse, store.Count)[l.String()], m.want(hour, b.coarse.Watermark(), store.Count)[l.String()]
	if d := cmp.Diff(want, got); d != "" {
		t.Error(fmt.Sprintln("hours:", d))
	}
}

// TestBackfillBeforeFirst fills an adapter that holds nothing with what is days old, the
// recent part of it pushed first; then its first own sample comes. Nothing may fall
// between, at whatever hour.
func TestBackfillBeforeFirst(t *testing.T) {
	for _, h := range []int64{0, 18} {
		b := newBench(t)
		b.now = epoch + 30*day + h*hour + 7*minute
		b.d.RawNeeds = 28 * time.Hour
		m := model{}
		newest := b.now - 13*day
		horizon := b.d.Horizon(newest)
		o := old(m, "a", b.now-16*day, newest, 10*minute)
		i, _ := slices.BinarySearch(o.T, horizon)
		for j := i; j < len(o.T); j++ {
			b.push(o.Labels, sample{o.T[j], o.V[j]})
		}
		res, err := b.d.Backfill(t.Context(), []Old{{o.Labels, o.T[:i], o.V[:i]}})
		if err != nil {
			t.Fatal(err)
		}
		if res.Recent != 0 || res.Samples != int64(i) {
			t.Errorf("hour %d: of %d samples %d are folded and %d are said to be recent", h, i, res.Samples, res.Recent)
		}
		live := labels.FromStrings("__name__", "live")
		b.push(live, sample{b.now, 1})
		m.add(live, sample{b.now, 1})
		for range 3 {
			b.cycle()
			b.now += hour
		}
		l := o.Labels.String()
		got, want := read(t, b.coarse, store.Count)[l], m.want(hour, b.coarse.Watermark(), store.Count)[l]
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("hour %d, hours (-want +got):\n%s", h, d)
		}
	}
}

// Samples of windows that are not in blocks yet are missing only where they are not
// there raw.
func TestBackfillOfWhatIsThere(t *testing.T) {
	b := newBench(t)
	b.now = epoch + 100*day
	live := labels.FromStrings("__name__", "live")
	for at := b.now - 3*hour; at < b.now; at += minute {
		b.push(live, sample{at, 1})
	}
	b.push(labels.FromStrings("__name__", "live", "a", "b"), sample{b.now - minute - 1, 1})
	b.cycle()
	o := Old{Labels: live}
	for _, at := range []int64{b.now - 3*minute, b.now - 2*minute, b.now - minute - 1, b.now - minute} {
		o.T, o.V = append(o.T, at), append(o.V, 1)
	}
	res, err := b.d.Backfill(t.Context(), []Old{o})
	if err != nil || res.Recent != 1 || res.Samples != 0 {
		t.Errorf("%+v, %v; want one sample missing", res, err)
	}
}
