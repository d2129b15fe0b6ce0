package tier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/fold"
	"github.com/ticktier/ticktier/adapter/store"
)

// Old is a series with old samples, in the order of time: all that there are of it in
// each window that they touch.
type Old struct {
	Labels labels.Labels
	T      []int64 // Unix milliseconds
	V      []float64
}

// Backfilled says what became of old samples.
type Backfilled struct {
	Samples int64 `json:"samples"` // folded into buckets
	Expired int64 `json:"expired"` // older than everything that is kept
	Recent  int64 `json:"recent"`  // their windows are not in blocks yet, and they are not there raw
	Fine    int   `json:"fine"`    // five-minute buckets
	Coarse  int   `json:"coarse"`  // hours folded from samples, where five minutes are past their retention
}

// Horizon is the time from which on samples are to be pushed; older ones are folded by
// Backfill. It is an edge of windows of all tiers. newest is the time of the newest sample that there
// is to fill in.
func (d *Driver) Horizon(newest int64) int64 {
	const slack = 5 * time.Minute // for what is pushed meanwhile
	have := d.Raw.MaxTime()
	if have == math.MinInt64 {
		// Nothing is there: samples pushed in their order are all taken. The tiers will
		// begin with the block that holds the first of them, and what lies in that block
		// before it could not be filled in.
		return fold.Window(min(newest, d.Now().UnixMilli())-d.RawNeeds.Milliseconds(), d.Coarse.BlockRange())
	}
	return d.ceilHour(have - d.OutOfOrderWindow.Milliseconds() + slack.Milliseconds())
}

func (d *Driver) ceilHour(t int64) int64 {
	hour := d.Coarse.Resolution()
	return fold.Window(t+hour-1, hour)
}

// Paused calls f while no cycle runs, so that no block comes or goes.
func (d *Driver) Paused(f func() error) error {
	d.cycle.Lock()
	defer d.cycle.Unlock()
	return f()
}

// Backfill folds old samples straight into the blocks of the tiers that still keep their
// time. A window that a block holds already keeps whichever bucket has more samples, so
// doing it again changes nothing.
func (d *Driver) Backfill(ctx context.Context, list []Old) (res Backfilled, err error) {
	err = d.Paused(func() error {
		d.startTiers()
		now := d.Now().UnixMilli()
		if t := d.Raw.MaxTime(); t != math.MinInt64 {
			now = min(now, t)
		}
		f := &filling{d: d, res: &res, fine: map[int64][]store.SeriesBuckets{}, coarse: map[int64][]store.SeriesBuckets{}}
		f.fineFrom, f.coarseFrom = keptFrom(now, d.RetentionFine, d.Fine), keptFrom(now, d.longest(), d.Coarse)
		f.recent = d.Fine.Durable()
		if cut := d.Coarse.Durable(); cut < f.fineFrom {
			f.recent = min(f.recent, cut)
		}
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b Old) int { return labels.Compare(a.Labels, b.Labels) })
		for _, s := range list {
			if err := f.add(ctx, s); err != nil {
				return err
			}
		}
		return f.write(ctx)
	})
	return res, err
}

// startTiers gives tiers that are empty a beginning.
func (d *Driver) startTiers() {
	from := d.Raw.MinTime()
	if d.Raw.MaxTime() == math.MinInt64 {
		from = d.Now().UnixMilli()
	}
	d.Fine.Start(from)
	d.Coarse.Start(from)
	d.claimed.Store(max(d.claimed.Load(), d.Fine.Watermark()))
}

// longest is how long hours are kept that are kept longest.
func (d *Driver) longest() time.Duration {
	age := d.RetentionCoarse
	for _, k := range d.Keeps {
		if k.Age == 0 || age == 0 {
			return 0
		}
		age = max(age, time.Duration(k.Age)*time.Millisecond)
	}
	return age
}

// keptFrom is where the oldest block begins that is not past its retention.
func keptFrom(now int64, age time.Duration, b *store.Buckets) int64 {
	if age <= 0 {
		return math.MinInt64
	}
	return fold.Window(now-age.Milliseconds(), b.BlockRange())
}

// filling is a Backfill under way: buckets by the start of their block's range.
type filling struct {
	d                            *Driver
	res                          *Backfilled
	fineFrom, coarseFrom, recent int64
	fine, coarse                 map[int64][]store.SeriesBuckets
}

// add folds a series.
func (f *filling) add(ctx context.Context, s Old) error {
	if len(s.T) != len(s.V) || !slices.IsSorted(s.T) {
		return fmt.Errorf("%s: samples are not in the order of time", s.Labels)
	}
	from, _ := slices.BinarySearch(s.T, f.coarseFrom)
	to, _ := slices.BinarySearch(s.T, f.recent)
	to = max(from, to)
	f.res.Expired += int64(from)
	there, err := f.d.haveRaw(ctx, s.Labels, s.T[to:])
	if err != nil {
		return err
	}
	f.res.Recent += int64(len(s.T) - to - there)
	f.res.Samples += int64(to - from)
	f.d.folder.Reset()
	for i := from; i < to; i++ {
		f.d.folder.Add(s.T[i], s.V[i])
	}
	bs := f.d.folder.Buckets()
	cut, _ := slices.BinarySearchFunc(bs, f.fineFrom, func(b fold.Bucket, t int64) int { return int(min(1, max(-1, b.Start-t))) })
	f.d.merger.Reset()
	for _, b := range bs[:cut] {
		f.d.merger.AddBucket(b)
	}
	f.res.Coarse += group(f.coarse, s.Labels, f.d.merger.Buckets(), f.d.Coarse.BlockRange())
	f.res.Fine += group(f.fine, s.Labels, bs[cut:], f.d.Fine.BlockRange())
	return nil
}

// haveRaw is at how many of some times, in order, a series has a raw sample.
func (d *Driver) haveRaw(ctx context.Context, lset labels.Labels, times []int64) (n int, err error) {
	if len(times) == 0 {
		return 0, nil
	}
	from, to := times[0], times[len(times)-1]
	q, err := d.Raw.Querier(from, to)
	if err != nil {
		return 0, fmt.Errorf("look for raw samples: %w", err)
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	var matchers []*labels.Matcher
	lset.Range(func(l labels.Label) {
		matchers = append(matchers, labels.MustNewMatcher(labels.MatchEqual, l.Name, l.Value))
	})
	set := q.Select(ctx, false, &storage.SelectHints{Start: from, End: to}, matchers...)
	for set.Next() {
		if !labels.Equal(set.At().Labels(), lset) {
			continue
		}
		it := set.At().Iterator(nil)
		for v := it.Next(); v != chunkenc.ValNone && len(times) > 0; v = it.Next() {
			t := it.AtT()
			for len(times) > 0 && times[0] < t {
				times = times[1:]
			}
			for len(times) > 0 && times[0] == t {
				n, times = n+1, times[1:]
			}
		}
		if err := it.Err(); err != nil {
			return n, fmt.Errorf("look for raw samples of %s: %w", lset, err)
		}
	}
	return n, set.Err()
}

// group puts a series' buckets with those of others in the same block, and counts them.
func group(to map[int64][]store.SeriesBuckets, lset labels.Labels, bs []fold.Bucket, size int64) int {
	n := len(bs)
	for len(bs) > 0 {
		block := fold.Window(bs[0].Start, size)
		end := slices.IndexFunc(bs, func(b fold.Bucket) bool { return b.Start >= block+size })
		if end < 0 {
			end = len(bs)
		}
		to[block] = append(to[block], store.SeriesBuckets{Labels: lset, Buckets: slices.Clone(bs[:end])})
		bs = bs[end:]
	}
	return n
}

// write writes the blocks anew, and merges the hours of five-minute buckets.
func (f *filling) write(ctx context.Context) error {
	var changed []redo
	for _, block := range slices.Sorted(maps.Keys(f.fine)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := block + f.d.Fine.BlockRange()
		if err := f.d.Fine.Rewrite(block, block, to, f.fine[block]); err != nil {
			return err
		}
		changed = append(changed, redo{span: span{block, to}})
	}
	for _, block := range slices.Sorted(maps.Keys(f.coarse)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.d.Coarse.Rewrite(block, block, block+f.d.Coarse.BlockRange(), f.coarse[block]); err != nil {
			return err
		}
	}
	f.d.m.windows.Add(float64(len(f.fine)) * float64(f.d.Fine.BlockRange()/f.d.Fine.Resolution()))
	return f.d.mergeHours(ctx, changed)
}

// Close closes the journal of a driver that is not run.
func (d *Driver) Close() error { return d.journal.close() }
