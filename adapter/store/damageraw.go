package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// rotten are the raw blocks that were found damaged while they were open. The TSDB holds
// on to them: only a start without them gets rid of them.
type rotten struct {
	damaged prometheus.Counter
	logger  *slog.Logger

	mu    sync.Mutex
	known map[ulid.ULID]error // guarded by mu; nil for a block that was read and is good

	holes atomic.Pointer[[]Range] // replaced with mu held
}

// hole notes a stretch of time whose raw samples are missing; mu is held.
func (r *rotten) hole(m *tsdb.BlockMeta) {
	var all []Range
	if old := r.holes.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = append(all, Range{m.MinTime, m.MaxTime})
	r.holes.Store(&all)
}

// load notes the holes that blocks set aside have left, of which there is still a
// description.
func (r *rotten) load(aside string) error {
	paths, err := filepath.Glob(filepath.Join(aside, "*", "meta.json"))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("look at a block set aside: %w", err)
		}
		var m tsdb.BlockMeta
		if json.Unmarshal(b, &m) == nil && m.MinTime < m.MaxTime {
			r.hole(&m)
		}
	}
	return nil
}

// Holes are stretches of time of which raw samples are missing, because a block was set
// aside or is known to be damaged.
func (r *Raw) Holes() []Range {
	if all := r.rotten.holes.Load(); all != nil {
		return *all
	}
	return nil
}

// unreadChunk is how the TSDB's error for a chunk that cannot be read begins; its number
// follows, and a block, which the TSDB does not always know.
const unreadChunk = "cannot populate chunk "

// Damaged names the block that err is about, an error from reading raw samples, and says
// what to do about it. It is nil where err is about something else. The block is counted
// and logged the first time.
func (r *Raw) Damaged(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	_, rest, ok := strings.Cut(err.Error(), unreadChunk)
	number, _, _ := strings.Cut(rest, " ")
	ref, e := strconv.ParseUint(number, 10, 64)
	if !ok || e != nil {
		return nil
	}
	for _, b := range r.db.Blocks() {
		why := chunkError(b, chunks.ChunkRef(ref))
		if why == nil || ours(why) || !strings.Contains(rest, why.Error()) {
			continue // another block has a good chunk there, or none
		}
		if r.rotten.is(ctx, b) {
			at := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
			return fmt.Errorf("the raw block %s with the samples from %s to %s is damaged (%w): queries read buckets there from now on where they are; stop the adapter, see with `ticktier-adapter verify` what else is, and move %s to the quarantine folder of the data directory",
				b.Meta().ULID, at(b.MinTime()), at(b.MaxTime()), why, b.Dir())
		}
	}
	return nil
}

// chunkError is why a block does not give a chunk.
func chunkError(b *tsdb.Block, ref chunks.ChunkRef) (err error) {
	cr, err := b.Chunks()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cr.Close()) }()
	_, _, err = cr.ChunkOrIterable(chunks.Meta{Ref: ref})
	return err
}

// is reads a block, once, and tells whether it is damaged: the place of a good chunk in
// one block may be the middle of one in another.
func (r *rotten) is(ctx context.Context, b *tsdb.Block) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := b.Meta().ULID
	err, ok := r.known[id]
	if ok {
		return err != nil
	}
	if err = verifyRawBlock(ctx, b); ctx.Err() != nil || ours(err) {
		return false
	}
	if r.known == nil {
		r.known = map[ulid.ULID]error{}
	}
	r.known[id] = err
	if err == nil {
		return false
	}
	m := b.Meta()
	r.hole(&m)
	r.damaged.Inc()
	r.logger.Error("raw block is damaged; queries read buckets there", "block", id, "dir", b.Dir(), "err", err)
	return true
}
