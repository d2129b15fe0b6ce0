package store

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/ticktier/ticktier/adapter/fold"
)

// BucketsOptions says what a tier is.
type BucketsOptions struct {
	// Resolution is the width of a window, BlockRange the aligned stretch of time
	// that one new block covers, MergeRange that of a merged one (0: none is); all
	// in milliseconds, each a multiple of the one before.
	Resolution, BlockRange, MergeRange int64
	// LargeRange is what one block covers that merged blocks are merged into again, a
	// multiple of MergeRange; 0: none are. A block goes as a whole, so it should be
	// small beside how long the tier is kept.
	LargeRange int64
	// Counter says whether a metric is a counter: a bare selector on one means a
	// bucket's last value, not its average.
	Counter func(metric string) bool
	// Lacks says which parts of a bucket have no meaning for a metric and need not
	// be kept. May be nil: all are kept.
	Lacks func(metric string) fold.Parts
	// ReadOnly leaves the directory as it is: nothing is removed or set aside, and
	// Unreadable names the blocks that could not be opened.
	ReadOnly bool
	// FS is what the tier writes to; nil: the operating system's.
	FS         FS
	Logger     *slog.Logger
	Registerer prometheus.Registerer // may be nil
}

// Buckets is one folded tier. Its buckets are in memory from the cut on and in
// blocks before it; every block covers one aligned range. One goroutine writes
// (Put, Advance, Cut, Rewrite, Retain); any number read.
type Buckets struct {
	dir       string
	o         BucketsOptions
	watermark atomic.Int64
	written   atomic.Int64   // bytes of blocks
	closing   sync.WaitGroup // blocks that wait for their readers

	mu     sync.RWMutex
	blocks []*tsdb.Block // by time
	mem    *memory
	cut    int64 // everything before it is in blocks, or was never there
	// cutLess says that there was no block at start, so there is no cut yet.
	cutLess bool

	suspectsMu sync.Mutex
	suspects   map[*tsdb.Block]bool // blocks that somebody could not read

	// thinned are blocks with the parts of a Retention that they hold nothing of; the
	// writing goroutine's own.
	thinned map[ulid.ULID]uint64

	unreadable []error // blocks, where the tier is read only

	damaged prometheus.Counter
	dropped *dropped
}

// OpenBuckets opens the tier in dir, which it creates. A block that cannot be
// read is set aside under "quarantine", counted and logged.
func OpenBuckets(dir string, o BucketsOptions) (*Buckets, error) {
	if o.FS == nil {
		o.FS = OS{}
	}
	b := &Buckets{dir: dir, o: o, mem: newMemory(o.Resolution), cut: math.MinInt64, cutLess: true}
	b.damaged = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ticktier_adapter_store_damaged_blocks_total", Help: "Blocks that could not be read; they are set aside, raw ones at the next start if they cannot be opened.",
		ConstLabels: prometheus.Labels{"tier": b.Name()},
	})
	b.dropped = newDropped(b.Name(), o.Registerer)
	if !o.ReadOnly {
		if err := o.FS.MkdirAll(dir); err != nil {
			return nil, fmt.Errorf("make the directory of tier %s: %w", b.Name(), err)
		}
	}
	if err := b.load(); err != nil {
		return nil, fmt.Errorf("open tier %s: %w", b.Name(), err)
	}
	if n := len(b.blocks); n > 0 {
		b.cut, b.cutLess = b.blocks[n-1].MaxTime(), false
	}
	b.watermark.Store(b.cut)
	if o.Registerer != nil {
		o.Registerer.MustRegister(b.damaged, b.gauges())
	}
	return b, nil
}

// load opens the blocks of the directory, oldest first.
func (b *Buckets) load() error {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	replaced := map[ulid.ULID]bool{}
	for _, e := range entries {
		path := filepath.Join(b.dir, e.Name())
		if (strings.HasSuffix(e.Name(), tmpSuffix) || strings.HasSuffix(e.Name(), goneSuffix)) && !b.o.ReadOnly {
			if err := b.o.FS.RemoveAll(path); err != nil {
				return fmt.Errorf("remove what is left of a block: %w", err)
			}
			continue
		}
		if _, err := ulid.ParseStrict(e.Name()); err != nil || !e.IsDir() {
			continue
		}
		blk, err := tsdb.OpenBlock(b.o.Logger, path, aggrPool{}, nil)
		if err == nil && (blk.MinTime()%b.o.BlockRange != 0 || blk.MaxTime()%b.o.BlockRange != 0) {
			err = errors.Join(fmt.Errorf("range [%d, %d) is not one of this tier's", blk.MinTime(), blk.MaxTime()), blk.Close())
		}
		if err != nil && b.o.ReadOnly {
			b.unreadable = append(b.unreadable, fmt.Errorf("tier %s, block %s: %w", b.Name(), e.Name(), err))
			continue
		}
		if err != nil && ours(err) {
			return fmt.Errorf("block %s: %w", e.Name(), err)
		}
		if err != nil {
			if err := b.quarantine(e.Name(), err); err != nil {
				return err
			}
			continue
		}
		for _, p := range blk.Meta().Compaction.Parents {
			replaced[p.ULID] = true
		}
		b.blocks = append(b.blocks, blk)
	}
	return b.settle(replaced)
}

// settle removes the blocks that a newer one replaces: a crash came between the
// writing of the one and the removal of the other. Of two others that cover the same
// time, which a failed write may leave, the older one is set aside.
func (b *Buckets) settle(replaced map[ulid.ULID]bool) error {
	slices.SortFunc(b.blocks, func(x, y *tsdb.Block) int {
		return cmp.Or(cmp.Compare(x.MinTime(), y.MinTime()), x.Meta().ULID.Compare(y.Meta().ULID))
	})
	var kept []*tsdb.Block
	for _, blk := range b.blocks {
		if replaced[blk.Meta().ULID] {
			if err := b.takeOut(blk, nil); err != nil {
				return fmt.Errorf("remove the replaced block %s: %w", blk.Meta().ULID, err)
			}
			continue
		}
		if n := len(kept); n > 0 && kept[n-1].MaxTime() > blk.MinTime() {
			older := kept[n-1]
			if older.Meta().ULID.Compare(blk.Meta().ULID) > 0 {
				older, blk = blk, older
			}
			if err := b.takeOut(older, fmt.Errorf("block %s covers the same time", blk.Meta().ULID)); err != nil {
				return fmt.Errorf("set block %s aside: %w", older.Meta().ULID, err)
			}
			kept = kept[:n-1]
		}
		kept = append(kept, blk)
	}
	b.blocks = kept
	return nil
}

// takeOut closes a block that is not to be read and removes it, or sets it aside where
// there is a reason to.
func (b *Buckets) takeOut(blk *tsdb.Block, why error) error {
	err := blk.Close()
	switch {
	case b.o.ReadOnly:
		return err
	case why == nil:
		return errors.Join(err, b.discard(blk.Dir()))
	}
	return errors.Join(err, b.quarantine(filepath.Base(blk.Dir()), why))
}

// quarantine sets a block aside.
func (b *Buckets) quarantine(name string, why error) error {
	dir := filepath.Join(b.dir, "quarantine")
	if err := b.o.FS.MkdirAll(dir); err != nil {
		return err
	}
	if err := b.o.FS.Rename(filepath.Join(b.dir, name), filepath.Join(dir, name)); err != nil {
		return err
	}
	b.damaged.Inc()
	b.o.Logger.Warn("block set aside", "tier", b.Name(), "block", name, "moved_to", dir, "err", why)
	return nil
}

// Name is "5m" or "1h".
func (b *Buckets) Name() string {
	if b.o.Resolution%3600_000 == 0 {
		return fmt.Sprintf("%dh", b.o.Resolution/3600_000)
	}
	return fmt.Sprintf("%dm", b.o.Resolution/60_000)
}

// Resolution is the width of a window in milliseconds.
func (b *Buckets) Resolution() int64 { return b.o.Resolution }

// BlockRange is the stretch of time that one block covers, in milliseconds.
func (b *Buckets) BlockRange() int64 { return b.o.BlockRange }

// Watermark is the time before which every window is folded, as far as the
// samples had come; math.MinInt64 where nothing is folded yet.
func (b *Buckets) Watermark() int64 { return b.watermark.Load() }

// Advance moves the watermark forward to t.
func (b *Buckets) Advance(t int64) {
	if t > b.watermark.Load() {
		b.watermark.Store(t)
	}
}

// Durable is the time before which every bucket is in a block; math.MinInt64
// where there is no block yet.
func (b *Buckets) Durable() int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.cut
}

// MinTime is the start of the oldest window held, math.MaxInt64 where none is.
func (b *Buckets) MinTime() int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.blocks) > 0 {
		return b.blocks[0].MinTime()
	}
	if t, ok := b.mem.minTime(); ok {
		return t
	}
	return math.MaxInt64
}

// Start sets the first cut of an empty tier: buckets before it go straight to
// blocks, later ones are kept in memory until theirs is cut. It does nothing
// where there is a cut already.
func (b *Buckets) Start(t int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cutLess {
		b.cut, b.cutLess = fold.Window(t, b.o.BlockRange), false
		b.watermark.Store(b.cut)
	}
}

// Put replaces the buckets of a series in the windows of [from, to), which is not
// before the cut. It copies what it keeps; what the metric lacks is dropped from
// bs itself.
func (b *Buckets) Put(lset labels.Labels, from, to int64, bs []fold.Bucket) {
	b.drop(lset, bs)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mem.put(lset, from, to, bs)
}

// drop forgets what has no meaning for the series.
func (b *Buckets) drop(lset labels.Labels, bs []fold.Bucket) {
	if b.o.Lacks == nil {
		return
	}
	lacks := b.o.Lacks(lset.Get(model.MetricNameLabel))
	if lacks == 0 {
		return
	}
	for i := range bs {
		bs[i].Drop(lacks)
	}
}

// Close waits for the readers and closes the blocks. What is in memory is gone:
// it is folded again from raw samples at the next start.
func (b *Buckets) Close() error {
	b.closing.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, blk := range b.blocks {
		errs = append(errs, blk.Close())
	}
	b.blocks = nil
	return errors.Join(errs...)
}
