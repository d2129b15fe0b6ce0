package store

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/ticktier/ticktier/adapter/fold"
)

// Cut writes the next block and moves the cut to its end, which is at most limit;
// where nothing is left to cut before limit it only moves the cut there, as far
// as it is aligned. Ranges without a bucket have no block.
func (b *Buckets) Cut(limit int64) error {
	limit = fold.Window(limit, b.o.BlockRange)
	b.mu.Lock()
	oldest, ok := b.mem.minTime()
	if !ok || oldest >= limit {
		b.cut = max(b.cut, limit)
		b.mu.Unlock()
		return nil
	}
	b.cut = max(b.cut, fold.Window(oldest, b.o.BlockRange))
	b.mu.Unlock()

	b.mu.RLock()
	from := b.cut
	to := from + b.o.BlockRange
	list := b.mem.sorted(from, to)
	b.mu.RUnlock()

	blk, err := b.writeBlock(from, from+b.o.BlockRange, nil, memSymbols(list), memFeed(list, from, to, b.o.Resolution))
	if err != nil {
		return fmt.Errorf("cut a block of tier %s: %w", b.Name(), err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.insert(blk)
	b.cut = to
	b.mem.dropBefore(to)
	return nil
}

// Rewrite replaces the block that holds the range which starts at from, which is
// before the cut, by one in which the buckets of the windows of [wfrom, wto) of the
// listed series are these; the list is sorted by labels. The old block goes when
// the new one is on disk and its last reader is done.
func (b *Buckets) Rewrite(from, wfrom, wto int64, list []SeriesBuckets) error {
	for _, s := range list {
		b.drop(s.Labels, s.Buckets)
	}
	old := b.block(from)
	if old == nil {
		blk, err := b.writeBlock(from, from+b.o.BlockRange, nil, symbolsOf(list), feedOf(list))
		if err != nil {
			return fmt.Errorf("write a block of tier %s: %w", b.Name(), err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.insert(blk)
		return nil
	}
	symbols, err := mergedSymbols(old, list)
	if err != nil {
		b.suspect(old)
		return fmt.Errorf("read block %s: %w", old.Meta().ULID, err)
	}
	blk, err := b.writeBlock(old.MinTime(), old.MaxTime(), []*tsdb.Block{old}, symbols, b.mergedFeed(old, wfrom, wto, list))
	if err != nil {
		b.suspect(old)
		return fmt.Errorf("replace block %s of tier %s: %w", old.Meta().ULID, b.Name(), err)
	}
	b.mu.Lock()
	b.blocks = slices.DeleteFunc(b.blocks, func(x *tsdb.Block) bool { return x == old })
	b.insert(blk)
	b.mu.Unlock()
	b.remove(old)
	return nil
}

// Each hands the series of one block range with their buckets in [from, to), by
// labels, to yield; both are valid during the call only. The range must not
// reach over a block's edge.
func (b *Buckets) Each(from, to int64, yield func(labels.Labels, []fold.Bucket) error) error {
	start := fold.Window(from, b.o.BlockRange)
	if start >= b.Durable() {
		b.mu.RLock()
		list := b.mem.sorted(from, to)
		b.mu.RUnlock()
		return memFeed(list, from, to, b.o.Resolution)(yield)
	}
	blk := b.block(start)
	if blk == nil {
		return nil
	}
	err := readBlock(blk, b.o.Resolution, colAll, func(lset labels.Labels, bs []fold.Bucket) error {
		if bs = between(bs, from, to); len(bs) == 0 {
			return nil
		}
		return yield(lset, bs)
	})
	if err != nil {
		b.suspect(blk)
	}
	return err
}

// Holes are the block ranges of [from, to) before the cut that are in no block.
// Either nothing was there, or their block was lost.
func (b *Buckets) Holes(from, to int64) (out []Range) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	to = min(to, b.cut)
	for at := fold.Window(from, b.o.BlockRange); at < to; at += b.o.BlockRange {
		held := slices.ContainsFunc(b.blocks, func(x *tsdb.Block) bool { return x.MinTime() <= at && at < x.MaxTime() })
		if !held {
			out = append(out, Range{at, at + b.o.BlockRange})
		}
	}
	return out
}

// block is the block that holds the range which starts at from, or nil.
func (b *Buckets) block(from int64) *tsdb.Block {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, blk := range b.blocks {
		if blk.MinTime() <= from && from < blk.MaxTime() {
			return blk
		}
	}
	return nil
}

// insert puts a block in its place; nil is no block.
func (b *Buckets) insert(blk *tsdb.Block) {
	if blk == nil {
		return
	}
	i, _ := slices.BinarySearchFunc(b.blocks, blk.MinTime(), func(x *tsdb.Block, t int64) int { return int(min(1, max(-1, x.MinTime()-t))) })
	b.blocks = slices.Insert(b.blocks, i, blk)
}

// remove takes a block's directory out of the tier's, and deletes it once its readers
// are done. The next start must not find it: what replaced it may itself be replaced by
// then.
func (b *Buckets) remove(blk *tsdb.Block) {
	gone := blk.Dir() + goneSuffix
	err := b.o.FS.Rename(blk.Dir(), gone)
	if err != nil {
		b.o.Logger.Warn("replaced block not removed", "tier", b.Name(), "block", blk.Meta().ULID, "err", err)
	}
	b.closing.Go(func() {
		e := blk.Close()
		if err == nil {
			e = errors.Join(e, b.erase(gone))
		}
		if e != nil {
			b.o.Logger.Warn("replaced block not removed", "tier", b.Name(), "block", blk.Meta().ULID, "err", e)
		}
	})
}

// discard removes a block's directory that nobody reads.
func (b *Buckets) discard(dir string) error {
	if err := b.o.FS.Rename(dir, dir+goneSuffix); err != nil {
		return err
	}
	return b.erase(dir + goneSuffix)
}

// erase removes a directory that was renamed to be: only once its new name is durable,
// for half a block under the old one would be taken for a damaged block.
func (b *Buckets) erase(gone string) error {
	if err := b.o.FS.SyncDir(b.dir); err != nil {
		return err
	}
	return b.o.FS.RemoveAll(gone)
}

// writeBlock writes and opens a block of [from, to) that replaces others; nil where
// the feed has no bucket.
func (b *Buckets) writeBlock(from, to int64, replaces []*tsdb.Block, symbols []string, feed seriesFeed) (*tsdb.Block, error) {
	w := blockWriter{fs: b.o.FS, dir: b.dir, mint: from, maxt: to, res: b.o.Resolution, logger: b.o.Logger}
	for _, old := range replaces {
		w.parents = append(w.parents, tsdb.BlockDesc{ULID: old.Meta().ULID, MinTime: old.MinTime(), MaxTime: old.MaxTime()})
	}
	name, err := w.write(symbols, feed)
	if err != nil || name == "" {
		return nil, err
	}
	blk, err := tsdb.OpenBlock(b.o.Logger, filepath.Join(b.dir, name), aggrPool{}, nil)
	if err != nil {
		// Another one will be written in its place.
		err = errors.Join(err, b.discard(filepath.Join(b.dir, name)))
		return nil, fmt.Errorf("open the new block %s: %w", name, err)
	}
	b.written.Add(blk.Size())
	return blk, nil
}

func symbolSet(list []SeriesBuckets) map[string]struct{} {
	set := map[string]struct{}{}
	for _, s := range list {
		addLabels(set, s.Labels)
	}
	return set
}

func addLabels(set map[string]struct{}, lset labels.Labels) {
	lset.Range(func(l labels.Label) { set[l.Name], set[l.Value] = struct{}{}, struct{}{} })
}

func memSymbols(list []memSeries) []string {
	set := map[string]struct{}{}
	for _, s := range list {
		addLabels(set, s.lset)
	}
	return slices.Sorted(maps.Keys(set))
}

func symbolsOf(list []SeriesBuckets) []string {
	return slices.Sorted(maps.Keys(symbolSet(list)))
}

// mergedSymbols are those of a block and of a list.
func mergedSymbols(old *tsdb.Block, list []SeriesBuckets) ([]string, error) {
	set := symbolSet(list)
	if err := addSymbols(set, old); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(set)), nil
}

func feedOf(list []SeriesBuckets) seriesFeed {
	return func(yield func(labels.Labels, []fold.Bucket) error) error {
		for _, s := range list {
			if err := yield(s.Labels, s.Buckets); err != nil {
				return err
			}
		}
		return nil
	}
}

// mergedFeed is a block's series with the listed buckets in their places.
func (b *Buckets) mergedFeed(old *tsdb.Block, wfrom, wto int64, list []SeriesBuckets) seriesFeed {
	return func(yield func(labels.Labels, []fold.Bucket) error) error {
		rest := list
		err := readBlock(old, b.o.Resolution, colAll, func(lset labels.Labels, bs []fold.Bucket) error {
			for len(rest) > 0 {
				c := labels.Compare(rest[0].Labels, lset)
				if c > 0 {
					break
				}
				s := rest[0]
				rest = rest[1:]
				if c == 0 {
					bs = slices.Concat(between(bs, -1<<63, wfrom), fuller(between(bs, wfrom, wto), s.Buckets), between(bs, wto, 1<<63-1))
					break
				}
				if err := yield(s.Labels, s.Buckets); err != nil {
					return err
				}
			}
			return yield(lset, bs)
		})
		if err != nil {
			return err
		}
		return feedOf(rest)(yield)
	}
}
