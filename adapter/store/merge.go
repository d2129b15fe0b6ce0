package store

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/ticktier/ticktier/adapter/fold"
)

// Merge merges the blocks of the oldest aligned merge range that ends at or before
// limit into one, from the first of them to the end of the range, or where there is none
// those of the oldest large range, and says whether there was one to merge. It reads and
// writes one range at a time, so a caller may pause between two.
func (b *Buckets) Merge(limit int64) (merged bool, err error) {
	for _, size := range [...]int64{b.o.MergeRange, b.o.LargeRange} {
		if group := b.mergeable(limit, size); group != nil {
			return true, b.mergeGroup(group, size)
		}
	}
	return false, nil
}

// mergeGroup merges blocks that lie in one aligned range of size.
func (b *Buckets) mergeGroup(group []*tsdb.Block, size int64) error {
	set := map[string]struct{}{}
	for _, blk := range group {
		if err := addSymbols(set, blk); err != nil {
			return fmt.Errorf("read block %s: %w", blk.Meta().ULID, err)
		}
	}
	// Not from the start of the merge range on: what is older may have been dropped,
	// and a block must not claim time that it has no buckets of.
	from := group[0].MinTime()
	to := fold.Window(from, size) + size
	feed := func(yield func(labels.Labels, []fold.Bucket) error) error {
		return b.joinBlocks(group, yield)
	}
	blk, err := b.writeBlock(from, to, group, slices.Sorted(maps.Keys(set)), feed)
	if err != nil {
		for _, blk := range group {
			b.suspect(blk)
		}
		return fmt.Errorf("merge %d blocks of tier %s: %w", len(group), b.Name(), err)
	}
	b.mu.Lock()
	b.blocks = slices.DeleteFunc(b.blocks, func(x *tsdb.Block) bool { return slices.Contains(group, x) })
	b.insert(blk)
	b.mu.Unlock()
	for _, old := range group {
		b.remove(old)
	}
	return nil
}

// mergeable is the oldest group of two or more blocks in one aligned range of size that
// are not merged yet.
func (b *Buckets) mergeable(limit, size int64) []*tsdb.Block {
	if size <= b.o.BlockRange {
		return nil
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	limit = min(limit, b.cut)
	var group []*tsdb.Block
	for _, blk := range b.blocks {
		from := fold.Window(blk.MinTime(), size)
		if from+size > limit {
			break
		}
		if blk.MaxTime()-blk.MinTime() >= size {
			continue
		}
		if len(group) > 0 && fold.Window(group[0].MinTime(), size) != from {
			if len(group) > 1 {
				break
			}
			group = group[:0]
		}
		group = append(group, blk)
	}
	if len(group) < 2 {
		return nil
	}
	return group
}

// addSymbols adds a block's symbols to a set.
func addSymbols(set map[string]struct{}, blk *tsdb.Block) (err error) {
	ir, err := blk.Index()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ir.Close()) }()
	it := ir.Symbols()
	for it.Next() {
		set[string([]byte(it.At()))] = struct{}{}
	}
	return it.Err()
}

// joinBlocks hands the series of blocks that follow each other in time to yield,
// by labels, each with all its buckets.
func (b *Buckets) joinBlocks(group []*tsdb.Block, yield func(labels.Labels, []fold.Bucket) error) error {
	type head struct {
		next func() (labels.Labels, []fold.Bucket, bool)
		lset labels.Labels
		bs   []fold.Bucket
		ok   bool
	}
	heads := make([]*head, len(group))
	errs := make([]error, len(group))
	for i, blk := range group {
		next, stop := iter.Pull2(b.blockSeries(blk, &errs[i]))
		defer stop()
		h := &head{next: next}
		h.lset, h.bs, h.ok = next()
		heads[i] = h
	}
	var joined []fold.Bucket
	for {
		var first *head
		for _, h := range heads {
			if h.ok && (first == nil || labels.Compare(h.lset, first.lset) < 0) {
				first = h
			}
		}
		if first == nil {
			return errors.Join(errs...)
		}
		// A head's labels and buckets are gone once it moves on.
		lset := first.lset.Copy()
		joined = joined[:0]
		for _, h := range heads {
			if h.ok && labels.Equal(h.lset, lset) {
				joined = append(joined, h.bs...)
				h.lset, h.bs, h.ok = h.next()
			}
		}
		if err := yield(lset, joined); err != nil {
			return err
		}
	}
}

// errStop ends the reading of a block early.
var errStop = errors.New("stop")

// blockSeries iterates over a block's series; what went wrong is in err when it
// ends.
func (b *Buckets) blockSeries(blk *tsdb.Block, err *error) iter.Seq2[labels.Labels, []fold.Bucket] {
	return func(yield func(labels.Labels, []fold.Bucket) bool) {
		e := readBlock(blk, b.o.Resolution, colAll, func(lset labels.Labels, bs []fold.Bucket) error {
			if !yield(lset, bs) {
				return errStop
			}
			return nil
		})
		if e != nil && !errors.Is(e, errStop) {
			*err = fmt.Errorf("block %s: %w", blk.Meta().ULID, e)
		}
	}
}
