package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"

	"github.com/ticktier/ticktier/adapter/fold"
)

// BlockInfo describes one block of a folded tier.
type BlockInfo struct {
	ULID    string `json:"ulid"`
	MinTime int64  `json:"minTime"` // Unix milliseconds
	MaxTime int64  `json:"maxTime"` // exclusive
	Series  uint64 `json:"series"`
	Buckets uint64 `json:"buckets"`
	Bytes   int64  `json:"bytes"` // index, chunks and the rest
}

// Blocks lists the tier's blocks, oldest first.
func (b *Buckets) Blocks() []BlockInfo {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := make([]BlockInfo, 0, len(b.blocks))
	for _, blk := range b.blocks {
		m := blk.Meta()
		out = append(out, BlockInfo{m.ULID.String(), m.MinTime, m.MaxTime, m.Stats.NumSeries, m.Stats.NumSamples, blk.Size()})
	}
	return out
}

// Size is what a set of series takes in the blocks of a tier.
type Size struct {
	Series  int   `json:"series"` // counted once per block
	Buckets int64 `json:"buckets"`
	Bytes   int64 `json:"bytes"` // of chunks
}

// SizeBy adds up what series take in blocks, by the value of a label.
func (b *Buckets) SizeBy(ctx context.Context, label string) (map[string]Size, error) {
	out := map[string]Size{}
	for _, blk := range b.snapshot() {
		if err := sizeBy(ctx, blk, label, out); err != nil {
			return nil, fmt.Errorf("block %s: %w", blk.Meta().ULID, err)
		}
	}
	return out, nil
}

// Unreadable says which blocks of a tier that is read only could not be opened.
func (b *Buckets) Unreadable() error { return errors.Join(b.unreadable...) }

// snapshot is the list of blocks now. A block may be replaced while it is read; its
// readers keep it until then.
func (b *Buckets) snapshot() []*tsdb.Block {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return append([]*tsdb.Block(nil), b.blocks...)
}

// sizeBy adds up what a block's series take, by the value of a label.
func sizeBy(ctx context.Context, blk *tsdb.Block, label string, out map[string]Size) error {
	return eachSeries(ctx, blk, func(lset labels.Labels, list []chunkenc.Chunk) error {
		key := lset.Get(label)
		s := out[key]
		s.Series++
		for _, c := range list {
			s.Buckets += int64(c.NumSamples())
			s.Bytes += int64(len(c.Bytes()))
		}
		// The label's text is the index reader's own.
		out[string([]byte(key))] = s
		return nil
	})
}

// eachSeries hands every series of a block with its chunks to yield, by labels; both are
// valid during the call only. Chunks are read with their checksums.
func eachSeries(ctx context.Context, blk *tsdb.Block, yield func(labels.Labels, []chunkenc.Chunk) error) (err error) {
	ir, err := blk.Index()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ir.Close()) }()
	cr, err := blk.Chunks()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cr.Close()) }()
	var (
		lb    labels.ScratchBuilder
		metas []chunks.Meta
		list  []chunkenc.Chunk
	)
	p := tsdb.AllSortedPostings(ctx, ir)
	for p.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := ir.Series(p.At(), &lb, &metas); err != nil {
			return err
		}
		list = list[:0]
		for _, m := range metas {
			c, _, err := cr.ChunkOrIterable(m)
			if err != nil {
				return fmt.Errorf("%s: %w", lb.Labels(), err)
			}
			list = append(list, c)
		}
		if err := yield(lb.Labels(), list); err != nil {
			return err
		}
	}
	return errors.Join(p.Err(), ctx.Err())
}

// EachMatching hands the blocks' buckets of the series that all matchers match to yield, block by
// block; both are valid during the call only.
func (b *Buckets) EachMatching(ctx context.Context, ms []*labels.Matcher, yield func(labels.Labels, []fold.Bucket) error) error {
	for _, blk := range b.snapshot() {
		err := readBlock(blk, b.o.Resolution, colAll, func(lset labels.Labels, bs []fold.Bucket) error {
			for _, m := range ms {
				if !m.Matches(lset.Get(m.Name)) {
					return ctx.Err()
				}
			}
			return yield(lset, bs)
		})
		if err != nil {
			return fmt.Errorf("block %s: %w", blk.Meta().ULID, err)
		}
	}
	return nil
}

// Verify reads every block of the tier, checksums included, and returns an error
// per block that cannot be read; progress is told of each block done.
func (b *Buckets) Verify(ctx context.Context, progress func(done, of int)) error {
	errs := slices.Clone(b.unreadable)
	blocks := b.snapshot()
	for i, blk := range blocks {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		var series, buckets uint64
		err := readBlock(blk, b.o.Resolution, colAll, func(lset labels.Labels, bs []fold.Bucket) error {
			series++
			buckets += uint64(len(bs))
			for j := range bs {
				if j > 0 && bs[j].Start <= bs[j-1].Start || bs[j].Start < blk.MinTime() || bs[j].Start >= blk.MaxTime() {
					return fmt.Errorf("%s: bucket at %d is out of its place", lset, bs[j].Start)
				}
			}
			return nil
		})
		if st := blk.Meta().Stats; err == nil && (series != st.NumSeries || buckets != st.NumSamples) {
			err = fmt.Errorf("%d series with %d buckets; its meta.json says %d with %d", series, buckets, st.NumSeries, st.NumSamples)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tier %s, block %s: %w", b.Name(), blk.Meta().ULID, err))
		}
		progress(i+1, len(blocks))
	}
	return errors.Join(errs...)
}
