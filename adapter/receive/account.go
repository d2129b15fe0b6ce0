package receive

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/storage"
)

// Quota bounds what devices may send. Zero is no bound.
type Quota struct {
	// DeviceSamples and Samples are the samples a second of one device and of all, on
	// average over about ten seconds; a histogram counts for eight. Who is over it is
	// answered 429. Of all, the devices that send more than their share wait.
	DeviceSamples, Samples float64
	// DeviceSeries is how many series a device may have had in the last hour or two,
	// Series how many the store may hold. New ones beyond are refused, those that are
	// there go on.
	DeviceSeries, Series int
	// Held is how many series the store holds; nil where Series is 0.
	Held func() int
}

const (
	// saveSeconds is how many seconds' worth of samples may come at once.
	saveSeconds = 10
	// seriesWindow is how long a series is remembered, once or twice.
	seriesWindow = time.Hour
	// maxAccounts bounds the devices that are kept account of; those beyond share one.
	maxAccounts = 100_000
	// idleAccount is how long one that sends nothing is kept where room is needed, and
	// activeFor how long it has its share of what all may send.
	idleAccount = 10 * time.Minute
	activeFor   = time.Minute
	// countEvery is how often the active ones are counted, longestWait the most that
	// anyone is asked to wait.
	countEvery  = 10 * time.Second
	longestWait = 5 * time.Minute
)

// bucket holds samples that may still come; it may be overdrawn by one request, and
// fills again with time.
type bucket struct {
	rate, left float64
	at         time.Time
}

func newBucket(rate float64, now time.Time) bucket { return bucket{rate, rate * saveSeconds, now} }

// wait is how long the bucket is overdrawn; 0: it is not.
func (b *bucket) wait(now time.Time) time.Duration {
	if b.rate <= 0 {
		return 0
	}
	if d := now.Sub(b.at).Seconds(); d > 0 {
		b.left = min(b.left+d*b.rate, b.rate*saveSeconds)
		b.at = now
	}
	if b.left > 0 {
		return 0
	}
	return min(time.Duration((-b.left/b.rate+1)*float64(time.Second)), longestWait)
}

// accounts keeps account of what devices send. It is safe for concurrent use.
type accounts struct {
	quota Quota
	epoch atomic.Uint64 // the last that was given to an account

	mu      sync.Mutex
	all     bucket
	byName  map[string]*account
	active  int       // accounts that sent something lately
	counted time.Time // when they were counted
}

// account is what one device sent.
type account struct {
	// epoch marks label sets that were counted: it changes with each window.
	epoch atomic.Uint64

	mu       sync.Mutex
	own      bucket
	recent   float64 // samples, those longer ago counting less
	seen     time.Time
	turned   time.Time // when cur began
	cur, old map[uint64]struct{}
}

// newAccounts returns nil where nothing is bounded.
func newAccounts(q Quota) *accounts {
	if q.DeviceSamples <= 0 && q.Samples <= 0 && q.DeviceSeries <= 0 && q.Series <= 0 {
		return nil
	}
	return &accounts{quota: q, byName: map[string]*account{}}
}

// of returns the account of a device, which it opens. a.mu must be held.
func (a *accounts) of(device string, now time.Time) *account {
	acc := a.byName[device]
	if acc != nil {
		return acc
	}
	if len(a.byName) >= maxAccounts {
		for name, old := range a.byName {
			if old.idle(now) > idleAccount {
				delete(a.byName, name)
			}
		}
	}
	if len(a.byName) >= maxAccounts {
		device = "\xff" // no device can have that name
		if acc = a.byName[device]; acc != nil {
			return acc
		}
	}
	acc = &account{own: newBucket(a.quota.DeviceSamples, now), turned: now}
	acc.epoch.Store(a.epoch.Add(1))
	a.byName[string([]byte(device))] = acc
	return acc
}

func (acc *account) idle(now time.Time) time.Duration {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	return now.Sub(acc.seen)
}

// enter opens a request of a device: how long it has to wait instead, and for which
// bound.
func (a *accounts) enter(device string, now time.Time) (acc *account, wait time.Duration, bound string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counted.IsZero() {
		a.all = newBucket(a.quota.Samples, now)
	}
	acc = a.of(device, now)
	a.count(now)
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.fade(now)
	if wait = acc.own.wait(now); wait > 0 {
		return nil, wait, "device"
	}
	if wait = a.all.wait(now); wait > 0 && acc.recent/saveSeconds > a.quota.Samples/float64(max(1, a.active)) {
		return nil, wait, "all"
	}
	if now.Sub(acc.turned) >= seriesWindow {
		acc.old, acc.cur, acc.turned = acc.cur, nil, now
		acc.epoch.Store(a.epoch.Add(1))
	}
	return acc, 0, ""
}

// count counts the active accounts now and then. a.mu must be held.
func (a *accounts) count(now time.Time) {
	if a.quota.Samples <= 0 || now.Sub(a.counted) < countEvery {
		if a.counted.IsZero() {
			a.counted = now
		}
		return
	}
	a.active, a.counted = 0, now
	for _, acc := range a.byName {
		if acc.idle(now) <= activeFor {
			a.active++
		}
	}
}

// fade lets what was sent count less with time. acc.mu must be held.
func (acc *account) fade(now time.Time) {
	if d := now.Sub(acc.seen).Seconds(); d > 0 {
		acc.recent *= math.Exp(-d / saveSeconds)
		acc.seen = now
	}
}

// spend takes what a request had from the buckets.
func (a *accounts) spend(acc *account, samples int) {
	a.mu.Lock()
	a.all.left -= float64(samples)
	a.mu.Unlock()
	acc.mu.Lock()
	acc.own.left -= float64(samples)
	acc.recent += float64(samples)
	acc.mu.Unlock()
}

// admitSeries tells whether a series of the request's device may be stored: it is known,
// or there is room for it.
func (b *batch) admitSeries(r *resolved) reason {
	acc := b.account
	if acc == nil {
		return reasonNone
	}
	epoch := acc.epoch.Load()
	if r.admitted.Load() == epoch {
		return reasonNone
	}
	q := &b.accounts.quota
	acc.mu.Lock()
	defer acc.mu.Unlock()
	_, known := acc.cur[r.hash]
	if !known {
		if q.DeviceSeries > 0 && len(acc.cur)+len(acc.old) >= q.DeviceSeries {
			if _, was := acc.old[r.hash]; !was && !b.stores(r) {
				return reasonSeriesLimit
			}
		}
		if q.Series > 0 && q.Held() >= q.Series && !b.stores(r) {
			return reasonTotalSeries
		}
		if q.DeviceSeries > 0 {
			if acc.cur == nil {
				acc.cur = map[uint64]struct{}{}
			}
			acc.cur[r.hash] = struct{}{}
			delete(acc.old, r.hash)
		}
	}
	r.admitted.Store(epoch)
	return reasonNone
}

// stores tells whether the store has the series already, from before a restart or a
// lower bound.
func (b *batch) stores(r *resolved) bool {
	g, ok := b.app.(storage.GetRef)
	if !ok {
		return false
	}
	ref, _ := g.GetRef(r.ls, r.ls.Hash())
	return ref != 0
}
