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
func (d *Driver) foldRaw(ctx context.Context, s redo, yield func(store.SeriesBuckets) error) (err error) {
	q, err := d.Raw.Querier(s.from, s.to-1)
	if err != nil {
		return fmt.Errorf("read raw samples: %w", err)
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	all := labels.MustNewMatcher(labels.MatchEqual, "", "")
	// Without trimming the samples come straight from the chunks, and foldSeries
	// leaves out those around the span: it costs half as much.
	set := q.Select(ctx, true, &storage.SelectHints{Start: s.from, End: s.to - 1, DisableTrimming: true}, all)
	var it chunkenc.Iterator
	for set.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		series := set.At()
		if !s.series.has(series.Labels()) {
			continue
		}
		it = series.Iterator(it)
		if err := d.foldSeries(it, s.span); err != nil {
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

// foldSeries folds one series in s. What a histogram of a sender's making breaks
// costs the series, not the program.
func (d *Driver) foldSeries(it chunkenc.Iterator, s span) (err error) {
	d.folder.Reset()
	n, hists := 0, 0
	defer func() {
		d.m.samples.Add(float64(n))
		d.m.histograms.Add(float64(hists))
		if r := recover(); r != nil {
			err = fmt.Errorf("fold a sample: %v", r)
		}
	}()
	for {
		kind := it.Next()
		if kind == chunkenc.ValNone {
			return it.Err()
		}
		if kind != chunkenc.ValFloat {
			t := it.AtT()
			if t >= s.to {
				return nil
			}
			if t >= s.from {
				_, d.hist = it.AtFloatHistogram(d.hist)
				d.folder.AddHistogram(t, d.hist)
				hists++
			}
			continue
		}
		t, v := it.At()
		if t >= s.to {
			return nil
		}
		if t >= s.from {
			d.folder.Add(t, v)
			n++
		}
	}
}
