package tier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/ticktier/ticktier/adapter/store"
)

// In the killed history an hour takes six minutes and all else is as much shorter: so
// the TSDB, which is not what is killed, has nothing to compact in it.
const (
	kHour  = hour / 10
	kRes   = five / 10
	kStep  = 2 * kHour // before each cycle
	kSteps = 12
)

// killing is a history with small blocks, so that within hours of it blocks are cut,
// rewritten for late samples, merged, merged again, thinned and dropped.
type killing struct {
	*bench
	keep labels.Labels // has hours that are kept for ever
	sets []labels.Labels
}

func newKilling(t *testing.T) *killing {
	b := makeBench(t)
	b.fineOptions = store.BucketsOptions{Resolution: kRes, BlockRange: kHour, MergeRange: 2 * kHour, LargeRange: 4 * kHour}
	b.options = store.BucketsOptions{Resolution: kHour, BlockRange: 2 * kHour, MergeRange: 4 * kHour}
	keep := labels.FromStrings("__name__", "kept", "i", "0")
	b.config.OutOfOrderWindow = time.Duration(5*kHour) * time.Millisecond
	b.config.RetentionFine, b.config.RetentionCoarse = time.Duration(10*kHour)*time.Millisecond, time.Duration(12*kHour)*time.Millisecond
	b.config.Lag = 3 * time.Second
	b.config.Keeps = []store.Keep{{Matchers: []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "__name__", "kept")}}}
	return &killing{bench: b, keep: keep, sets: []labels.Labels{keep, labels.FromStrings("__name__", "m", "i", "1"), labels.FromStrings("__name__", "m", "i", "2")}}
}

// step is what is pushed before a cycle: new samples, then late ones.
func (k *killing) step(i int) (fresh, late model) {
	r := rand.New(rand.NewPCG(uint64(i), 9))
	fresh, late = model{}, model{}
	from := epoch + int64(i)*kStep
	for n, l := range k.sets {
		for at := from; at < from+kStep; at += kHour/9 + r.Int64N(kHour/12) {
			fresh.add(l, sample{at, float64(r.IntN(1000))})
		}
		for at := from - 5*kHour/2; n != 1 && i > 1 && at < from-kHour/6; at += kHour/2 + r.Int64N(kHour/2) {
			late.add(l, sample{at + 1 + int64(n), float64(r.IntN(1000))}) // at a time that no other has
		}
	}
	return fresh, late
}

// send pushes samples one series at a time; a sample that is there already is one that
// was sent before.
func (k *killing) send(m model) error {
	for _, l := range k.sets {
		app := k.raw.AppenderV2(context.Background())
		for _, s := range m[l.String()] {
			_, err := app.Append(0, l, 0, s.t, s.v, nil, nil, storage.AOptions{})
			if err != nil && !errors.Is(err, storage.ErrDuplicateSampleForTimestamp) {
				return errors.Join(err, app.Rollback())
			}
		}
		if err := app.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// run is one step: from the opening to the end of a cycle, then the closing.
func (k *killing) run(i int, fs store.FS, then func()) error {
	if err := k.start(fs); err != nil {
		return err
	}
	defer func() {
		// What is in memory is lost; the TSDB writes nothing that it had not before.
		for _, f := range []func() error{k.d.journal.close, k.coarse.Close, k.fine.Close, k.raw.Close} {
			if err := f(); err != nil {
				k.t.Error(err)
			}
		}
	}()
	fresh, late := k.step(i)
	k.now = epoch + int64(i+1)*kStep + kHour/60
	if err := errors.Join(k.send(fresh), k.send(late)); err != nil {
		return err
	}
	for range 2 { // a cycle merges one range at most
		if err := k.d.Cycle(k.t.Context()); err != nil {
			return err
		}
	}
	if then != nil {
		then()
	}
	return nil
}

// Everything that folds, cuts, merges, drops, thins and journals is killed at each of
// its operations on the file system in turn, and what was not synced is lost in part.
// What comes after has every bucket that raw samples or the blocks before had to give,
// once; raw samples were never let go before their buckets were durable; nothing is
// damaged. The TSDB's writers of index, chunks and tombstones do not go through the
// seam: a block is killed before the first and after the last of them, and what they
// wrote is lost in part where its directory was not synced.
//
// TEST_KILL=all kills at every operation, which takes minutes; otherwise it is every
// fortieth, from a random one on.
func TestKilledAtEveryOperation(t *testing.T) {
	seed := testSeed()
	t.Logf("TEST_SEED=%d", seed)
	k := newKilling(t)
	home, snap := k.dir, filepath.Join(t.TempDir(), "snap")
	acked := model{}
	total, operations, first, stride := 0, 0, 1, 1
	if os.Getenv("TEST_KILL") != "all" {
		stride = 40
		first += int(seed % uint64(stride))
	}
	for i := range kSteps {
		must(t, os.RemoveAll(snap))
		must(t, os.CopyFS(snap, os.DirFS(home)))
		before := acked.clone()
		for _, m := range pair(k.step(i)) {
			acked.merge(m)
		}
		k.dir = home
		count := newCrashFS(t, rand.New(rand.NewPCG(seed, 0)), 0)
		must(t, k.run(i, count, func() { k.verify(acked, i, "not killed") }))
		for n := first; n <= count.n; n += stride {
			total++
			k.dir = filepath.Join(t.TempDir(), "run")
			must(t, os.CopyFS(k.dir, os.DirFS(snap)))
			k.kill(i, n, rand.New(rand.NewPCG(seed, uint64(n))), before, acked)
			must(t, os.RemoveAll(k.dir))
		}
		operations += count.n
	}
	t.Logf("killed %d times in %d operations", total, operations)
}

func pair(a, b model) []model { return []model{a, b} }

// kill runs a step, stops it at an operation, and looks at what a start finds then.
func (k *killing) kill(i, n int, r *rand.Rand, before, acked model) {
	when := fmt.Sprintf("step %d stopped at operation %d", i, n)
	fs := newCrashFS(k.t, r, n)
	k.gate = nil
	err := k.run(i, fs, nil)
	if !fs.stopped() {
		must(k.t, err) // removals run beside the rest: one operation less than before
		return
	}
	must(k.t, fs.crash())
	allowed := int64(math.MinInt64)
	if k.gate != nil {
		allowed = k.gate.most
	}
	must(k.t, k.start(store.OS{}))
	if d := k.fine.Durable(); d < allowed {
		k.t.Errorf("%s: raw samples might go before %d s, buckets are durable only before %d", when, (allowed-epoch)/1000, (d-epoch)/1000)
	}
	if i > 0 {
		k.contains(k.fine, before, acked, when)
		k.contains(k.coarse, before, acked, when)
	}
	k.close()
	must(k.t, k.run(i, store.OS{}, func() { k.verify(acked, i, when) }))
	if k.t.Failed() {
		k.t.FailNow()
	}
}

// oldest is where the windows begin that retention may not have dropped.
func (k *killing) oldest(tier *store.Buckets, series string) int64 {
	if tier == k.fine {
		return k.now - k.config.RetentionFine.Milliseconds()
	}
	if series == k.keep.String() {
		return epoch
	}
	return k.now - k.config.RetentionCoarse.Milliseconds()
}

// contains checks what is durable of a tier at a start: every window has all samples
// that were folded before, and none that were never sent.
func (k *killing) contains(tier *store.Buckets, before, acked model, when string) {
	got := read(k.t, tier, store.Count)
	least, most := before.want(tier.Resolution(), tier.Durable(), store.Count), acked.want(tier.Resolution(), math.MaxInt64, store.Count)
	for s, ws := range least {
		for w, n := range ws {
			if g, ok := got[s][w]; w >= k.oldest(tier, s) && (!ok || g < n || g > most[s][w]) {
				k.t.Errorf("%s: tier %s: %s at %d s: %v samples, want %v to %v", when, tier.Name(), s, (w-epoch)/1000, g, n, most[s][w])
			}
		}
	}
}

// verify compares the tiers with all that was sent.
func (k *killing) verify(m model, i int, when string) {
	k.t.Helper()
	for _, tier := range []*store.Buckets{k.fine, k.coarse} {
		if w := epoch + int64(i+1)*kStep; tier.Watermark() < w-kHour {
			k.t.Errorf("%s: tier %s is folded up to %d s, want %d", when, tier.Name(), (tier.Watermark()-epoch)/1000, (w-epoch)/1000)
		}
		for _, agg := range []store.Agg{store.Count, store.Sum, store.Min, store.Last} {
			want, got := m.want(tier.Resolution(), tier.Watermark(), agg), read(k.t, tier, agg)
			for s, ws := range want {
				for w, v := range ws {
					if g, ok := got[s][w]; g != v && (ok || w >= k.oldest(tier, s)) {
						k.t.Errorf("%s: tier %s: aggregate %d of %s at %d s is %v (%v), want %v", when, tier.Name(), agg, s, (w-epoch)/1000, g, ok, v)
					}
					delete(got[s], w)
				}
				if len(got[s]) > 0 {
					k.t.Errorf("%s: tier %s: aggregate %d of %s has %v too", when, tier.Name(), agg, s, got[s])
				}
			}
		}
		k.tidy(tier, when)
	}
}

// tidy checks that nothing was set aside and that no two blocks cover the same time.
func (k *killing) tidy(tier *store.Buckets, when string) {
	k.t.Helper()
	if aside, _ := os.ReadDir(filepath.Join(k.dir, tier.Name(), "quarantine")); len(aside) > 0 {
		k.t.Errorf("%s: tier %s: %d blocks set aside", when, tier.Name(), len(aside))
	}
	blocks := tier.Blocks()
	for i := 1; i < len(blocks); i++ {
		if blocks[i].MinTime < blocks[i-1].MaxTime {
			k.t.Errorf("%s: tier %s: two blocks hold %d s", when, tier.Name(), (blocks[i].MinTime-epoch)/1000)
		}
	}
}
