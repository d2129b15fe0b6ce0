package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
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
			return fmt.Errorf("the raw block %s with the samples from %s to %s is damaged (%w): ask for another time or for a tier (tier=5m), or stop the adapter, see with `ticktier-adapter verify` what else is, and move %s away",
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
	r.damaged.Inc()
	r.logger.Error("raw block is damaged; queries over it fail until it is moved away", "block", id, "dir", b.Dir(), "err", err)
	return true
}
