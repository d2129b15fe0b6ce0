package store

import (
	"fmt"
	"maps"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/ticktier/ticktier/adapter/fold"
)

// Keep is how long the series that all of its matchers match are kept.
type Keep struct {
	Matchers []*labels.Matcher
	Age      int64 // in milliseconds; 0 for ever
}

// Retention is what a tier keeps.
type Retention struct {
	Age    int64  // in milliseconds, of everything that no Keep matches; 0 for ever
	Keeps  []Keep // the first that matches a series counts
	Before int64  // nothing at or after it is dropped
}

// Why something was dropped, as metrics have it.
const (
	droppedAge   = "age"
	droppedMatch = "match"
	droppedSize  = "size"
)

// dropped counts what retention drops from a tier.
type dropped struct{ blocks, samples, bytes *prometheus.CounterVec }

func newDropped(tier string, reg prometheus.Registerer) *dropped {
	vec := func(name, help string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "ticktier", Subsystem: "adapter_retention", Name: name, Help: help, ConstLabels: prometheus.Labels{"tier": tier},
		}, []string{"reason"})
		for _, reason := range []string{droppedAge, droppedMatch, droppedSize} {
			v.WithLabelValues(reason)
		}
		return v
	}
	d := &dropped{
		blocks:  vec("dropped_blocks_total", "Blocks that went because of their age, for room, or that were written anew without series whose time was over."),
		samples: vec("dropped_samples_total", "Raw samples, or buckets, that went with them."),
		bytes:   vec("dropped_bytes_total", "Bytes on disk that were freed by it."),
	}
	if reg != nil {
		reg.MustRegister(d.blocks, d.samples, d.bytes)
	}
	return d
}

func (d *dropped) add(reason string, samples uint64, bytes int64) {
	d.blocks.WithLabelValues(reason).Inc()
	d.samples.WithLabelValues(reason).Add(float64(samples))
	d.bytes.WithLabelValues(reason).Add(float64(max(0, bytes)))
}

// Retain drops the blocks whose time is over, and writes at most one block anew that
// holds series whose time is over beside others. It says how many blocks it dropped
// whole, and whether a block was written.
func (b *Buckets) Retain(now int64, r Retention) (blocks int, rewrote bool, err error) {
	for _, blk := range b.snapshot() {
		over := r.over(blk.MaxTime(), now)
		switch {
		case over == 0:
			continue
		case over == r.all():
			b.dropBlock(blk, droppedAge)
			blocks++
		case !rewrote && b.thinned[blk.Meta().ULID] != over:
			if rewrote, err = b.thin(blk, r, over); err != nil {
				return blocks, rewrote, err
			}
		}
	}
	return blocks, rewrote, nil
}

// over are the Keeps, one bit each and the last for all other series, whose time is
// over at a block's end.
func (r Retention) over(end, now int64) (set uint64) {
	if end > r.Before {
		return 0
	}
	for i, k := range r.Keeps {
		if k.Age > 0 && end <= now-k.Age {
			set |= 1 << i
		}
	}
	if r.Age > 0 && end <= now-r.Age {
		set |= 1 << len(r.Keeps)
	}
	return set
}

func (r Retention) all() uint64 { return 1<<(len(r.Keeps)+1) - 1 }

// isOver reports whether a series is one of those.
func (r Retention) isOver(lset labels.Labels, over uint64) bool {
	for i, k := range r.Keeps {
		all := true
		for _, m := range k.Matchers {
			all = all && m.Matches(lset.Get(m.Name))
		}
		if all {
			return over&(1<<i) != 0
		}
	}
	return over&(1<<len(r.Keeps)) != 0
}

// thin writes a block anew without the series whose time is over. Readers of the old
// one go on with it.
func (b *Buckets) thin(old *tsdb.Block, r Retention, over uint64) (rewrote bool, err error) {
	symbols, gone := map[string]struct{}{}, uint64(0)
	err = readBlock(old, b.o.Resolution, colAll, func(lset labels.Labels, bs []fold.Bucket) error {
		if r.isOver(lset, over) {
			gone += uint64(len(bs))
			return nil
		}
		lset.Range(func(l labels.Label) {
			symbols[string([]byte(l.Name))], symbols[string([]byte(l.Value))] = struct{}{}, struct{}{}
		})
		return nil
	})
	if err != nil {
		b.suspect(old)
		return false, fmt.Errorf("read block %s: %w", old.Meta().ULID, err)
	}
	if gone == 0 {
		b.noteThinned(old.Meta().ULID, over)
		return false, nil
	}
	blk, err := b.writeBlock(old.MinTime(), old.MaxTime(), []*tsdb.Block{old}, slices.Sorted(maps.Keys(symbols)),
		func(yield func(labels.Labels, []fold.Bucket) error) error {
			return readBlock(old, b.o.Resolution, colAll, func(lset labels.Labels, bs []fold.Bucket) error {
				if r.isOver(lset, over) {
					return nil
				}
				return yield(lset, bs)
			})
		})
	if err != nil {
		return false, fmt.Errorf("write block %s of tier %s anew: %w", old.Meta().ULID, b.Name(), err)
	}
	freed := old.Size()
	b.mu.Lock()
	b.blocks = slices.DeleteFunc(b.blocks, func(x *tsdb.Block) bool { return x == old })
	b.insert(blk)
	b.mu.Unlock()
	if blk != nil {
		freed -= blk.Size()
		b.noteThinned(blk.Meta().ULID, over)
	}
	b.dropped.add(droppedMatch, gone, freed)
	b.remove(old)
	return true, nil
}

// noteThinned remembers that a block has no series left whose time is over, and
// forgets blocks that are gone.
func (b *Buckets) noteThinned(id ulid.ULID, over uint64) {
	kept := map[ulid.ULID]uint64{id: over}
	for _, blk := range b.snapshot() {
		if s, ok := b.thinned[blk.Meta().ULID]; ok && blk.Meta().ULID != id {
			kept[blk.Meta().ULID] = s
		}
	}
	b.thinned = kept
}

// dropBlock takes a block out of the tier.
func (b *Buckets) dropBlock(blk *tsdb.Block, reason string) {
	b.mu.Lock()
	b.blocks = slices.DeleteFunc(b.blocks, func(x *tsdb.Block) bool { return x == blk })
	b.mu.Unlock()
	b.dropped.add(reason, blk.Meta().Stats.NumSamples, blk.Size())
	b.remove(blk)
}

// Size is what the tier's blocks take on disk, in bytes.
func (b *Buckets) Size() (n int64) {
	for _, blk := range b.snapshot() {
		n += blk.Size()
	}
	return n
}

// DropOver drops the oldest blocks that end at or before t, until so many bytes are
// freed, and says how many it freed.
func (b *Buckets) DropOver(bytes, t int64) (freed int64) {
	for _, blk := range b.snapshot() {
		if freed >= bytes || blk.MaxTime() > t {
			break
		}
		freed += blk.Size()
		b.dropBlock(blk, droppedSize)
	}
	return freed
}

// Size is what raw samples take on disk, in bytes: blocks, log and what is in no
// block yet. Blocks that are about to go do not count.
func (r *Raw) Size() int64 {
	n := r.db.Head().Size()
	for _, blk := range r.db.Blocks() {
		if blk.MaxTime() > r.roomBefore.Load() {
			n += blk.Size()
		}
	}
	return n
}

// DropOver has the oldest blocks that end at or before t go, until so many bytes are
// freed, and says how many that will be: the TSDB removes them within a minute, and
// only what AllowDelete lets go.
func (r *Raw) DropOver(bytes, t int64) (freed int64) {
	t = min(t, r.deletable.Load())
	blocks := r.db.Blocks()
	slices.SortFunc(blocks, func(x, y *tsdb.Block) int { return int(min(1, max(-1, x.MaxTime()-y.MaxTime()))) })
	for _, blk := range blocks {
		if freed >= bytes || blk.MaxTime() > t {
			break
		}
		if blk.MaxTime() > r.roomBefore.Load() {
			freed += blk.Size()
			r.roomBefore.Store(blk.MaxTime())
		}
	}
	return freed
}
