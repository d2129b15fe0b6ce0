package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/ticktier/ticktier/adapter/fold"
)

// Range is a stretch of time, [From, To), in Unix milliseconds.
type Range struct{ From, To int64 }

// suspect notes that a block could not be read. Whoever noticed goes on without
// it or fails; SetAside decides.
func (b *Buckets) suspect(blk *tsdb.Block) {
	b.suspectsMu.Lock()
	defer b.suspectsMu.Unlock()
	if b.suspects == nil {
		b.suspects = map[*tsdb.Block]bool{}
	}
	b.suspects[blk] = true
}

// SetAside reads the blocks that somebody could not read and moves those that are
// damaged into quarantine. It returns their ranges, which have no buckets until
// they are folded again.
func (b *Buckets) SetAside() ([]Range, error) {
	b.suspectsMu.Lock()
	suspects := b.suspects
	b.suspects = nil
	b.suspectsMu.Unlock()
	var ranges []Range
	for blk := range suspects {
		err := readBlock(blk, b.o.Resolution, colAll, func(labels.Labels, []fold.Bucket) error { return nil })
		if ours(err) {
			return ranges, fmt.Errorf("read block %s: %w", blk.Meta().ULID, err)
		}
		b.mu.Lock()
		held := slices.Contains(b.blocks, blk)
		if err != nil && held {
			b.blocks = slices.DeleteFunc(b.blocks, func(x *tsdb.Block) bool { return x == blk })
		}
		b.mu.Unlock()
		if err == nil || !held {
			continue
		}
		ranges = append(ranges, Range{blk.MinTime(), blk.MaxTime()})
		if e := b.quarantine(filepath.Base(blk.Dir()), err); e != nil {
			return ranges, e
		}
		b.closing.Go(func() {
			if err := blk.Close(); err != nil {
				b.o.Logger.Warn("damaged block not closed", "tier", b.Name(), "block", blk.Meta().ULID, "err", err)
			}
		})
	}
	return ranges, nil
}

// quarantineOf is where damaged blocks of the raw samples in dir are moved to.
func quarantineOf(dir string) string { return filepath.Join(filepath.Dir(dir), "quarantine") }

// setAsideRaw moves raw blocks that cannot be opened into quarantine: the TSDB
// would refuse to start with them. What it leaves of a block that a crash
// interrupted is its own business.
func setAsideRaw(dir string, logger *slog.Logger) (n int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if _, err := ulid.ParseStrict(e.Name()); err != nil || !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		blk, err := tsdb.OpenBlock(logger, path, nil, nil)
		if err == nil {
			if err := blk.Close(); err != nil {
				return n, err
			}
			continue
		}
		if ours(err) {
			return n, fmt.Errorf("open block %s: %w", path, err)
		}
		aside := quarantineOf(dir)
		if e := os.MkdirAll(aside, 0o777); e != nil {
			return n, errors.Join(err, e)
		}
		if e := os.Rename(path, filepath.Join(aside, e.Name())); e != nil {
			return n, fmt.Errorf("set block %s aside: %w", path, errors.Join(err, e))
		}
		logger.Warn("block set aside", "tier", "raw", "block", e.Name(), "moved_to", aside, "err", err)
		n++
	}
	return n, nil
}
