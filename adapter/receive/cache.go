package receive

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// resolved is a label set that was found good, with the store's reference for it.
// Safe for concurrent use.
type resolved struct {
	hash uint64
	ls   labels.Labels
	size int

	ref  atomic.Uint64 // storage.SeriesRef, 0 until the store gave one
	meta atomic.Uint64 // fingerprint of the last metadata seen
	// admitted is the epoch of the account that it was counted for last.
	admitted atomic.Uint64
	used     atomic.Uint32 // cache period in which it was last used
}

func (r *resolved) seriesRef() storage.SeriesRef { return storage.SeriesRef(r.ref.Load()) }

func (r *resolved) setRef(ref storage.SeriesRef) {
	if ref != 0 && uint64(ref) != r.ref.Load() {
		r.ref.Store(uint64(ref))
	}
}

// cache maps hashes of label sets to resolved ones. Readers take no lock; a hit is
// always verified by comparison. When it is full, what was not used in the current
// and the last period is dropped; if that is less than half, everything is.
type cache struct {
	maxEntries, maxBytes int

	slots  atomic.Pointer[[]atomic.Pointer[resolved]]
	period atomic.Uint32

	mu      sync.Mutex
	entries int // guarded by mu
	bytes   int // guarded by mu
	swept   int // guarded by mu: how often entries were dropped
}

func newCache(maxEntries, maxBytes int) *cache {
	c := &cache{maxEntries: maxEntries, maxBytes: maxBytes}
	c.empty(1024)
	return c
}

func (c *cache) empty(size int) {
	s := make([]atomic.Pointer[resolved], size)
	c.slots.Store(&s)
}

// mix adds the hash of one more string to that of a label set.
func mix(h, s uint64) uint64 {
	return (bits.RotateLeft64(h, 27) ^ s) * 0x9e3779b97f4a7c15
}

// get returns the label set of that hash which equals pairs, nil if there is none.
// The pairs must be in the order of their names.
func (c *cache) get(hash uint64, pairs []pair) *resolved {
	slots := *c.slots.Load()
	mask := uint64(len(slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		r := slots[i].Load()
		if r == nil {
			return nil
		}
		if r.hash == hash && equal(r.ls, pairs) {
			if p := c.period.Load(); r.used.Load() != p {
				r.used.Store(p)
			}
			return r
		}
	}
}

// equal tells whether ls has exactly these labels in this order.
func equal(ls labels.Labels, pairs []pair) bool {
	i, same := 0, true
	ls.Range(func(l labels.Label) {
		if same = same && i < len(pairs) && l.Name == string(pairs[i].name) && l.Value == string(pairs[i].value); same {
			i++
		}
	})
	return same && i == len(pairs)
}

// put keeps r and returns it, or what another request put first. Label sets that are
// too large are returned and not kept.
func (c *cache) put(r *resolved, pairs []pair) *resolved {
	if r.size > maxCachedLabelSetBytes || c.maxEntries == 0 {
		return r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.get(r.hash, pairs); old != nil {
		return old
	}
	if c.entries >= c.maxEntries || c.bytes+r.size > c.maxBytes {
		c.sweep()
	}
	slots := *c.slots.Load()
	if (c.entries+1)*3 > len(slots)*2 {
		slots = c.rebuild(len(slots)*2, func(*resolved) bool { return true })
	}
	r.used.Store(c.period.Load())
	insert(slots, r)
	c.entries++
	c.bytes += r.size
	return r
}

// sweep makes room. Callers hold mu.
func (c *cache) sweep() {
	c.swept++
	p := c.period.Add(1)
	c.rebuild(len(*c.slots.Load()), func(r *resolved) bool { return r.used.Load()+1 >= p })
	if c.entries > c.maxEntries/2 || c.bytes > c.maxBytes/2 {
		c.entries, c.bytes = 0, 0
		c.empty(1024)
	}
}

// rebuild moves what is kept to a new table. Callers hold mu.
func (c *cache) rebuild(size int, keep func(*resolved) bool) []atomic.Pointer[resolved] {
	old := *c.slots.Load()
	slots := make([]atomic.Pointer[resolved], size)
	c.entries, c.bytes = 0, 0
	for i := range old {
		if r := old[i].Load(); r != nil && keep(r) {
			insert(slots, r)
			c.entries++
			c.bytes += r.size
		}
	}
	c.slots.Store(&slots)
	return slots
}

func insert(slots []atomic.Pointer[resolved], r *resolved) {
	mask := uint64(len(slots) - 1)
	i := r.hash & mask
	for slots[i].Load() != nil {
		i = (i + 1) & mask
	}
	slots[i].Store(r)
}

// len returns how many label sets are held.
func (c *cache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries
}
