package tier

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/store"
)

// foldRaw folds every series' raw samples in s and hands the buckets to yield, by
// labels; both are valid during the call only. A series that cannot be read is
// counted and left out.
func (d *Driver) foldRaw(ctx context.Context, s span, yield func(store.SeriesBuckets) error) (err error) {
	q, err := d.Raw.Querier(s.from, s.to-1)
	if err != nil {
		return fmt.Errorf("read raw samples: %w", err)
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	all := labels.MustNewMatcher(labels.MatchEqual, "", "")
	set := q.Select(ctx, true, &storage.SelectHints{Start: s.from, End: s.to - 1}, all)
	var it chunkenc.Iterator
	for set.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		series := set.At()
		it = series.Iterator(it)
		if err := d.foldSeries(it); err != nil {
			d.m.skipped.Inc()
			d.Logger.Warn("series left out of a fold", "series", series.Labels().String(), "err", err)
			continue
		}
		bs := d.folder.Buckets()
		if len(bs) == 0 {
			continue
		}
		if err := yield(store.SeriesBuckets{Labels: series.Labels(), Buckets: bs}); err != nil {
			return err
		}
	}
	if err := set.Err(); err != nil {
		return fmt.Errorf("read raw samples: %w", err)
	}
	return nil
}

// foldSeries folds the floats of one series. Native histograms stay raw and are
// counted.
func (d *Driver) foldSeries(it chunkenc.Iterator) error {
	d.folder.Reset()
	n := 0
	for {
		switch it.Next() {
		case chunkenc.ValFloat:
			d.folder.Add(it.At())
			n++
		case chunkenc.ValHistogram, chunkenc.ValFloatHistogram:
			d.m.histograms.Inc()
		case chunkenc.ValNone:
			d.m.samples.Add(float64(n))
			return it.Err()
		}
	}
}
