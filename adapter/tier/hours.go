package tier

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/ticktier/ticktier/adapter/fold"
	"github.com/ticktier/ticktier/adapter/store"
)

// mergeHours merges the hours that are complete and new, and again those that the
// changed spans touch.
func (d *Driver) mergeHours(ctx context.Context, changed []redo) error {
	if d.Fine.Watermark() == math.MinInt64 || d.Fine.MinTime() == math.MaxInt64 {
		return nil
	}
	d.Coarse.Start(d.Fine.MinTime())
	hour := d.Coarse.Resolution()
	done, to := d.Coarse.Watermark(), fold.Window(d.Fine.Watermark(), hour)
	days := map[int64]redo{}
	for _, c := range changed {
		h := span{fold.Window(c.from, hour), fold.Window(c.to+hour-1, hour)}
		h.to = min(h.to, max(done, to))
		for _, s := range split(h, d.Coarse.BlockRange()) {
			day, r := fold.Window(s.from, d.Coarse.BlockRange()), redo{s, c.series}
			if old, ok := days[day]; ok {
				r = redo{span{min(s.from, old.from), max(s.to, old.to)}, c.series.union(old.series)}
			}
			days[day] = r
		}
	}
	for _, day := range slices.Sorted(maps.Keys(days)) {
		if err := d.mergeDay(ctx, days[day]); err != nil {
			return err
		}
	}
	from := max(done, fold.Window(d.Fine.MinTime(), hour))
	for _, s := range split(span{from, to}, d.Coarse.BlockRange()) {
		if err := d.mergeDay(ctx, redo{span: s}); err != nil {
			return err
		}
		d.Coarse.Advance(s.to)
	}
	return nil
}

// mergeDay merges the hours of a span within one block range of Coarse.
func (d *Driver) mergeDay(ctx context.Context, s redo) error {
	day := fold.Window(s.from, d.Coarse.BlockRange())
	inMemory := day >= d.Coarse.Durable()
	cut := map[string]*store.SeriesBuckets{}
	for _, p := range split(s.span, d.Fine.BlockRange()) {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := d.Fine.Each(p.from, p.to, func(lset labels.Labels, bs []fold.Bucket) error {
			if !s.series.has(lset) {
				return nil
			}
			d.merger.Reset()
			for _, b := range bs {
				d.merger.AddBucket(b)
			}
			hours := d.merger.Buckets()
			if inMemory {
				d.Coarse.Put(lset, p.from, p.to, hours)
				return nil
			}
			key := string(lset.Bytes(nil))
			sb := cut[key]
			if sb == nil {
				sb = &store.SeriesBuckets{Labels: lset.Copy()}
				cut[key] = sb
			}
			sb.Buckets = append(sb.Buckets, hours...)
			return nil
		})
		if err != nil {
			return fmt.Errorf("merge hours: %w", err)
		}
	}
	if len(cut) == 0 {
		return nil
	}
	list := make([]store.SeriesBuckets, 0, len(cut))
	for _, sb := range cut {
		list = append(list, *sb)
	}
	slices.SortFunc(list, func(a, b store.SeriesBuckets) int { return labels.Compare(a.Labels, b.Labels) })
	return d.Coarse.Rewrite(day, s.from, s.to, list)
}
