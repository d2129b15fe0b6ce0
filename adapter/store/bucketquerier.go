package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/ticktier/ticktier/adapter/fold"
)

// Querier reads one aggregate of the buckets whose windows overlap [mint, maxt];
// samples outside of it are cut off. With agg Value and a fill, the value is
// repeated every fill milliseconds within a window. Close it: until then the
// blocks it reads stay.
func (b *Buckets) Querier(mint, maxt int64, agg Agg, fill int64) (storage.Querier, error) {
	q := &bucketQuerier{b: b, mint: mint, maxt: maxt, agg: agg, fill: fill, from: math.MinInt64}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if err := q.acquire(); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// openBlock is a block with its readers open.
type openBlock struct {
	blk *tsdb.Block
	ir  tsdb.IndexReader
	cr  tsdb.ChunkReader
}

type bucketQuerier struct {
	b          *Buckets
	mint, maxt int64
	agg        Agg
	fill       int64

	blocks []openBlock
	from   int64 // buckets from here on are in memory
}

// acquire opens the blocks that were cut since the last call. b.mu is held.
func (q *bucketQuerier) acquire() error {
	for _, blk := range q.b.blocks {
		if blk.MinTime() < q.from || blk.MinTime() > q.maxt || blk.MaxTime() <= q.mint {
			continue
		}
		o := openBlock{blk: blk}
		var err error
		if o.ir, err = blk.Index(); err != nil {
			return err
		}
		if o.cr, err = blk.Chunks(); err != nil {
			return errors.Join(err, o.ir.Close())
		}
		q.blocks = append(q.blocks, o)
	}
	q.from = q.b.cut
	return nil
}

// Close releases the blocks.
func (q *bucketQuerier) Close() error {
	var errs []error
	for _, o := range q.blocks {
		errs = append(errs, o.ir.Close(), o.cr.Close())
	}
	q.blocks = nil
	return errors.Join(errs...)
}

// Select gives the matching series, sorted by labels.
func (q *bucketQuerier) Select(ctx context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	mem, err := q.memory(ms)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	from := q.from
	found := map[uint64][]*bucketSeries{}
	get := func(lset labels.Labels) *bucketSeries {
		h := lset.Hash()
		for _, s := range found[h] {
			if labels.Equal(s.lset, lset) {
				return s
			}
		}
		s := &bucketSeries{lset: lset, q: q}
		found[h] = append(found[h], s)
		return s
	}
	for _, o := range q.blocks {
		if err := q.selectBlock(ctx, o, ms, get); err != nil {
			return storage.ErrSeriesSet(err)
		}
	}
	for _, s := range mem {
		bs := get(s.lset)
		bs.mem, bs.memFrom = s.memBuckets, from
	}
	var out []*bucketSeries
	for _, list := range found {
		out = append(out, list...)
	}
	slices.SortFunc(out, func(x, y *bucketSeries) int { return labels.Compare(x.lset, y.lset) })
	return &bucketSet{list: out, i: -1}
}

// memory is what the matchers select there. Blocks cut since the querier was made
// are opened first, so that nothing falls between the two.
func (q *bucketQuerier) memory(ms []*labels.Matcher) ([]memSeries, error) {
	q.b.mu.RLock()
	defer q.b.mu.RUnlock()
	if q.b.cut > q.from {
		if err := q.acquire(); err != nil {
			return nil, err
		}
	}
	var out []memSeries
	q.b.mem.match(ms, func(s *memSeries) {
		if s.has(max(q.from, q.windowFrom()), q.windowTo(), q.b.o.Resolution) {
			out = append(out, *s)
		}
	})
	return out, nil
}

// windowFrom and windowTo bound the starts of the windows that overlap the range.
func (q *bucketQuerier) windowFrom() int64 {
	if q.mint < math.MinInt64/2 {
		return math.MinInt64
	}
	return fold.Window(q.mint, q.b.o.Resolution)
}

func (q *bucketQuerier) windowTo() int64 {
	if q.maxt == math.MaxInt64 {
		return q.maxt
	}
	return q.maxt + 1
}

// selectBlock notes the chunks of the matching series of one block.
func (q *bucketQuerier) selectBlock(ctx context.Context, o openBlock, ms []*labels.Matcher, get func(labels.Labels) *bucketSeries) error {
	p, err := tsdb.PostingsForMatchers(ctx, o.ir, ms...)
	if err != nil {
		return err
	}
	var (
		lb    labels.ScratchBuilder
		metas []chunks.Meta
	)
	for p.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := o.ir.Series(p.At(), &lb, &metas); err != nil {
			return err
		}
		var s *bucketSeries
		for _, m := range metas {
			// A chunk's times are those of its windows' ends.
			if m.MaxTime < q.mint || m.MinTime-q.b.o.Resolution >= q.maxt {
				continue
			}
			if s == nil {
				s = get(lb.Labels())
			}
			s.chks = append(s.chks, blockChunk{o, m})
		}
	}
	return p.Err()
}

// LabelNames lists the label names of the overlapping blocks and of memory.
func (q *bucketQuerier) LabelNames(ctx context.Context, _ *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	set := map[string]struct{}{}
	mem, err := q.memory(ms)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range mem {
		s.lset.Range(func(l labels.Label) { set[l.Name] = struct{}{} })
	}
	for _, o := range q.blocks {
		names, err := o.ir.LabelNames(ctx, ms...)
		if err != nil {
			return nil, nil, err
		}
		for _, n := range names {
			set[n] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(set)), nil, nil
}

// LabelValues lists the values of a label in the overlapping blocks and memory.
func (q *bucketQuerier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	set := map[string]struct{}{}
	mem, err := q.memory(ms)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range mem {
		if v := s.lset.Get(name); v != "" {
			set[v] = struct{}{}
		}
	}
	for _, o := range q.blocks {
		values, err := o.ir.LabelValues(ctx, name, hints, ms...)
		if err != nil {
			return nil, nil, err
		}
		for _, v := range values {
			set[string([]byte(v))] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(set)), nil, nil
}

type blockChunk struct {
	openBlock
	meta chunks.Meta
}

// bucketSeries is one series: chunks of blocks, in time order, then memory.
type bucketSeries struct {
	lset labels.Labels
	q    *bucketQuerier
	chks []blockChunk
	mem  memBuckets
	// memFrom is where the blocks end that chks are of.
	memFrom int64
}

func (s *bucketSeries) Labels() labels.Labels { return s.lset }

// Iterator decodes the buckets and gives the samples of the wanted aggregate.
func (s *bucketSeries) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	si, ok := it.(*sampleIterator)
	if !ok {
		si = &sampleIterator{}
	}
	si.reset(s.samples(si))
	return si
}

// samples reads the series, in the room that si has for it.
func (s *bucketSeries) samples(si *sampleIterator) (_ samples, err error) {
	o := s.q.b.o
	sm := sampler{agg: s.q.agg, res: o.Resolution, fill: s.q.fill}
	if sm.agg == Value && o.Counter != nil {
		sm.counter = o.Counter(s.lset.Get(model.MetricNameLabel))
	}
	out := samples{si.room.ts[:0], si.room.vs[:0], si.room.hs[:0]}
	defer func() { si.room = out }()
	for _, c := range s.chks {
		quick, err := si.dec.quickValues(&out, c, &sm, s.q.windowFrom(), s.q.windowTo())
		if quick {
			continue
		}
		if err != nil {
			return s.damaged(c, err)
		}
		if si.bs, err = decodeMeta(&si.dec, c.cr, c.meta, si.bs[:0], o.Resolution, sm.columns()); err != nil {
			return s.damaged(c, err)
		}
		bs := between(si.bs, s.q.windowFrom(), s.q.windowTo())
		for i := range bs {
			sm.add(&out, &bs[i])
		}
	}
	si.bs = s.mem.appendTo(si.bs[:0], max(s.memFrom, s.q.windowFrom()), s.q.windowTo(), o.Resolution)
	for i := range si.bs {
		sm.add(&out, &si.bs[i])
	}
	if sm.agg == Value {
		out.settle()
	}
	clipped := out
	clipped.clip(s.q.mint, s.q.maxt)
	return clipped, nil
}

// damaged notes that a chunk could not be read.
func (s *bucketSeries) damaged(c blockChunk, err error) (samples, error) {
	s.q.b.suspect(c.blk)
	return samples{}, fmt.Errorf("block %s of tier %s: %w", c.blk.Meta().ULID, s.q.b.Name(), err)
}

// bucketSet implements storage.SeriesSet.
type bucketSet struct {
	list []*bucketSeries
	i    int
}

func (s *bucketSet) Next() bool                        { s.i++; return s.i < len(s.list) }
func (s *bucketSet) At() storage.Series                { return s.list[s.i] }
func (s *bucketSet) Err() error                        { return nil }
func (s *bucketSet) Warnings() annotations.Annotations { return nil }
