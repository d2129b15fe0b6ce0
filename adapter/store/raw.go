package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/compression"
)

// rawBlock is the range of the TSDB's smallest blocks.
const rawBlock = 2 * time.Hour

// stripes is the number of locks and maps that the series of the head are spread
// over, each of which takes 256 bytes at once: the default, 16 times as many, is for millions of series.
const stripes = 1 << 10

// rawSegmentBytes is how large a file with raw chunks may get, and how much room on the
// disk a compaction takes at once.
const rawSegmentBytes = 64 << 20

// maxExemplars is the size of the TSDB's ring of exemplars, which is allocated in
// full at start: a fleet's exporters send few.
const maxExemplars = 10_000

// RawOptions says how raw samples are kept.
type RawOptions struct {
	// Retention is how long, counted back from the newest sample; 0 keeps them for
	// ever. Nothing is deleted before AllowDelete says so.
	Retention time.Duration
	// OutOfOrderWindow is how much older than the newest sample a sample may be.
	OutOfOrderWindow time.Duration
	Logger           *slog.Logger
	Registerer       prometheus.Registerer // may be nil
}

// Raw is the TSDB with the raw samples.
type Raw struct {
	db        *tsdb.DB
	dir       string
	deletable atomic.Int64 // blocks that end at or before it may be deleted
	// roomBefore is where raw samples end that have to make room: blocks that end at or
	// before it go.
	roomBefore atomic.Int64
	dropped    *dropped
	counted    map[ulid.ULID]bool // blocks counted in dropped; the TSDB asks again before they are gone
	late       atomic.Pointer[lateness]
	readyDB    atomic.Pointer[tsdb.DB]
	torn       torn
	hist       histMark
	fills      fills
	rotten     rotten
	oldest     atomic.Int64 // time of the oldest sample that the logs or an appender brought
}

// lateness is who hears of samples that come for windows already folded.
type lateness struct {
	res       int64
	watermark func() int64
	mark      func([]Late) error
}

// OpenRaw opens the TSDB in dir, which it creates. The caller has the data
// directory locked. A block that cannot be read is set aside.
func OpenRaw(dir string, o RawOptions) (*Raw, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("make the directory of raw samples: %w", err)
	}
	r := &Raw{dir: dir, torn: torn{ch: make(chan struct{})}}
	r.deletable.Store(math.MinInt64)
	r.roomBefore.Store(math.MinInt64)
	r.dropped = newDropped("raw", o.Registerer)
	damaged := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ticktier_adapter_store_damaged_blocks_total", Help: "Blocks that could not be read; they are set aside, raw ones at the next start if they cannot be opened.",
		ConstLabels: prometheus.Labels{"tier": "raw"},
	})
	opts := tsdb.DefaultOptions()
	opts.RetentionDuration = o.Retention.Milliseconds()
	opts.MinBlockDuration = rawBlock.Milliseconds()
	opts.MaxBlockDuration = max(rawBlock, min(o.Retention/10, 31*24*time.Hour)).Milliseconds()
	opts.OutOfOrderTimeWindow = o.OutOfOrderWindow.Milliseconds()
	opts.WALCompression = compression.Snappy
	opts.StripeSize = stripes
	opts.MaxBlockChunkSegmentSize = rawSegmentBytes
	opts.EnableExemplarStorage = true
	opts.MaxExemplars = maxExemplars
	opts.BlocksToDelete = r.blocksToDelete
	opts.NoLockfile = true // LockDir locks all of the data directory
	if o.Registerer != nil {
		o.Registerer.MustRegister(damaged)
	}
	var reg prometheus.Registerer = prometheus.NewRegistry()
	if o.Registerer != nil {
		reg = o.Registerer
	}
	aside, err := setAsideRaw(dir, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("open raw samples in %s: %w", dir, err)
	}
	damaged.Add(float64(aside))
	r.rotten.damaged, r.rotten.logger = damaged, o.Logger
	if err := r.rotten.load(quarantineOf(dir)); err != nil {
		return nil, fmt.Errorf("open raw samples in %s: %w", dir, err)
	}
	db, err := tsdb.Open(dir, quieter(o.Logger), logWatch{reg, &r.torn}, opts, nil)
	if err != nil {
		return nil, fmt.Errorf("open raw samples in %s: %w", dir, err)
	}
	if err := r.hist.open(dir, db.Blocks()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	r.db = db
	r.oldest.Store(db.Head().MinOOOTime())
	r.readyDB.Store(db)
	if err := r.loadFills(context.Background()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return r, nil
}

// blocksToDelete is the TSDB's own retention, held back by deletable. Blocks that
// a compaction has replaced go at once.
func (r *Raw) blocksToDelete(blocks []*tsdb.Block) map[ulid.ULID]struct{} {
	out := map[ulid.ULID]struct{}{}
	for _, b := range blocks {
		if b.Meta().Compaction.Deletable {
			out[b.Meta().ULID] = struct{}{}
		}
	}
	db := r.readyDB.Load()
	if db == nil {
		return out
	}
	expired := tsdb.DefaultBlocksToDelete(db)(blocks)
	counted := map[ulid.ULID]bool{}
	for _, b := range blocks {
		id := b.Meta().ULID
		_, old := expired[id]
		if _, replaced := out[id]; replaced || b.MaxTime() > r.deletable.Load() || !old && b.MaxTime() > r.roomBefore.Load() {
			continue
		}
		out[id] = struct{}{}
		if counted[id] = true; r.counted[id] {
			continue
		}
		reason := droppedSize
		if old {
			reason = droppedAge
		}
		r.dropped.add(reason, b.Meta().Stats.NumSamples, b.Size())
	}
	r.counted = counted
	return out
}

// AllowDelete lets blocks that end at or before t be deleted once they are past
// their retention. Until the first call nothing is.
func (r *Raw) AllowDelete(t int64) { r.deletable.Store(t) }

// OnLate has mark called, before a commit returns, with the windows of res milliseconds
// that end at or before the watermark and got a sample; it may keep none of what it got. A
// commit whose windows cannot be marked fails, and may be repeated.
func (r *Raw) OnLate(res int64, watermark func() int64, mark func([]Late) error) {
	r.late.Store(&lateness{res, watermark, mark})
}

// AppenderV2 implements storage.AppendableV2.
func (r *Raw) AppenderV2(ctx context.Context) storage.AppenderV2 {
	if r.torn.isTorn() {
		return tornAppender{r.Cause()}
	}
	app := r.db.AppenderV2(ctx)
	if e, ok := app.(storage.ExemplarAppenderV2); ok {
		return &lateAppender{ExemplarAppenderV2: e, raw: r, late: r.late.Load(), oldest: math.MaxInt64}
	}
	return app
}

// Querier implements storage.Queryable.
func (r *Raw) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := r.db.Querier(mint, maxt)
	if err != nil || !r.fills.has() {
		return q, err
	}
	return filledQuerier{q, &r.fills}, nil
}

// ChunkQuerier implements storage.ChunkQueryable.
func (r *Raw) ChunkQuerier(mint, maxt int64) (storage.ChunkQuerier, error) {
	q, err := r.db.ChunkQuerier(mint, maxt)
	if err != nil || !r.fills.has() {
		return q, err
	}
	return &filledChunkQuerier{ChunkQuerier: q, fills: &r.fills, samples: func() (storage.Querier, error) { return r.Querier(mint, maxt) }}, nil
}

// ExemplarQuerier implements storage.ExemplarQueryable.
func (r *Raw) ExemplarQuerier(ctx context.Context) (storage.ExemplarQuerier, error) {
	return r.db.ExemplarQuerier(ctx)
}

// NumSeries is how many series are in memory.
func (r *Raw) NumSeries() int { return int(r.db.Head().NumSeries()) }

// MinTime is the time of the oldest sample held, or somewhat before it;
// math.MaxInt64 where there is none.
func (r *Raw) MinTime() int64 {
	t := int64(math.MaxInt64)
	for _, b := range r.db.Blocks() {
		t = min(t, b.MinTime())
	}
	h := r.db.Head()
	t = min(t, h.MinTime())
	// After a compaction the TSDB only knows that late samples are not before the
	// out-of-order window: no sample need be there.
	return min(t, max(h.MinOOOTime(), r.oldest.Load()))
}

// MaxTime is the time of the newest sample held, math.MinInt64 where there is
// none.
func (r *Raw) MaxTime() int64 {
	t := r.db.Head().MaxTime()
	for _, b := range r.db.Blocks() {
		t = max(t, b.MaxTime()-1)
	}
	return t
}

// Stats, BlockMetas and the rest serve the TSDB part of the status API.
func (r *Raw) Stats(label string, limit int) (*tsdb.Stats, error) {
	return r.db.Head().Stats(label, limit), nil
}

// BlockMetas lists the raw blocks.
func (r *Raw) BlockMetas() ([]tsdb.BlockMeta, error) { return r.db.BlockMetas(), nil }

// WALReplayStatus says that the replay is done: Raw exists only after it.
func (r *Raw) WALReplayStatus() (tsdb.WALReplayStatus, error) { return tsdb.WALReplayStatus{}, nil }

// errNoAdmin is the answer to the TSDB's own admin calls: they would change raw
// samples under their buckets.
var errNoAdmin = errors.New("not offered: raw samples and their buckets must stay in step")

// CleanTombstones is not offered.
func (r *Raw) CleanTombstones() error { return errNoAdmin }

// Delete is not offered.
func (r *Raw) Delete(context.Context, int64, int64, ...*labels.Matcher) error { return errNoAdmin }

// Snapshot is not offered.
func (r *Raw) Snapshot(string, bool) error { return errNoAdmin }

// Dir is the directory of the raw samples.
func (r *Raw) Dir() string { return r.dir }

// Close stops the TSDB. Appenders and queriers must be done.
func (r *Raw) Close() error { return r.db.Close() }
