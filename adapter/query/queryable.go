package query

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/ticktier/ticktier/adapter/store"
)

// Queryable is all tiers as one storage. Engine plans queries over it; other
// readers get raw samples and, where those have expired, what the tiers hold. It
// is safe for concurrent use.
type Queryable struct {
	raw        Raw
	folded     []Tier
	names      []string // of the sources, raw first
	lookback   int64    // ms
	maxSamples int
	maxSeries  int
	maxBytes   int64
	reads      readMetrics
	iterators  sync.Pool // of chunkenc.Iterator, whose room the next series uses
}

// iterator takes an iterator to use again, nil where there is none.
func (q *Queryable) iterator() chunkenc.Iterator {
	it, _ := q.iterators.Get().(chunkenc.Iterator)
	return it
}

var _ storage.SampleAndChunkQueryable = &Queryable{}

func newQueryable(c Config) *Queryable {
	q := &Queryable{raw: c.Raw, folded: c.Tiers, lookback: ms(c.LookbackDelta), maxSamples: c.MaxSamples, maxSeries: c.MaxSeries, maxBytes: c.MaxResponseBytes}
	for _, s := range q.sources() {
		q.names = append(q.names, sourceName(s))
	}
	q.reads = newReadMetrics(q.names, c.Registerer)
	return q
}

func (q *Queryable) tiers() *Queryable { return q }

// histograms reports whether there may be native histograms.
func (q *Queryable) histograms() bool {
	h, ok := q.raw.(interface{ NativeHistograms() bool })
	return !ok || h.NativeHistograms()
}

// sources looks at what each source holds now.
func (q *Queryable) sources() []source {
	out := []source{{res: 1, from: q.raw.MinTime(), to: math.MaxInt64}}
	for _, t := range q.folded {
		res := t.Resolution()
		s := source{res: res, from: math.MaxInt64, to: math.MaxInt64}
		if from := t.MinTime(); from != math.MaxInt64 {
			s.from, s.to = floorTo(from, res), floorTo(t.Watermark(), res)
		}
		out = append(out, s)
	}
	return out
}

// Querier implements storage.Queryable.
func (q *Queryable) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{q: q, mint: mint, maxt: maxt, srcs: q.sources()}, nil
}

// ChunkQuerier implements storage.ChunkQueryable.
func (q *Queryable) ChunkQuerier(mint, maxt int64) (storage.ChunkQuerier, error) {
	return &chunkQuerier{querier{q: q, mint: mint, maxt: maxt, srcs: q.sources()}}, nil
}

// open opens the reader of one aggregate of a source. agg does not matter to raw.
func (q *Queryable) open(src int, mint, maxt int64, agg store.Agg, fill int64) (storage.Querier, error) {
	var (
		sub storage.Querier
		err error
	)
	if src == rawSource {
		sub, err = q.raw.Querier(mint, maxt)
	} else {
		sub, err = q.folded[src-1].Querier(mint, maxt, agg, fill)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s samples: %w", q.names[src], err)
	}
	return sub, nil
}

// planned is the Queryable of one query.
type planned struct {
	q    *Queryable
	opts *options
	srcs []source
	// startTimestamps: functions on raw samples heed their start timestamps.
	startTimestamps bool
	// selectors is filled before the query runs.
	selectors []*selector
	selected  atomic.Int64 // series, over all selectors

	mu     sync.Mutex
	annots annotations.Annotations
	used   map[int]bool
}

// Querier implements storage.Queryable.
func (p *planned) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{q: p.q, mint: mint, maxt: maxt, srcs: p.srcs, plan: p}, nil
}

// add merges annotations that come up while the query runs.
func (p *planned) add(a annotations.Annotations) {
	if len(a) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.annots.Merge(a)
}

// warn adds one annotation.
func (p *planned) warn(err error) {
	var a annotations.Annotations
	p.add(a.Add(err))
}

// read notes that s got series from a stretch, and what has to be said about that.
func (p *planned) read(s *selector, st stretch) {
	p.opts.use(st.src)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used == nil {
		p.used = map[int]bool{}
	}
	p.used[st.src] = true
	if s == nil || st.src == rawSource {
		return
	}
	res, name := p.srcs[st.src].res, p.q.names[st.src]
	switch {
	case s.inexact:
		p.annots.Add(inexactWarning(s, name))
	case s.rng == 0:
		p.annots.Add(instantInfo(name))
	case !s.cuts(st, res):
	case s.rng < s.minBuckets*res:
		p.annots.Add(shortRangeWarning(s, name, res))
	default:
		p.annots.Add(cutInfo(s, name))
	}
}

// readPlain notes that a selector which is not planned got series from stretches: one
// that is anchored or smoothed, or what info() looks up.
func (p *planned) readPlain(list []stretch, fn string) {
	for _, st := range list {
		switch {
		case st.src == rawSource:
		case fn == "info":
			p.read(&selector{}, st)
		default:
			p.read(nil, st)
			p.warn(plainWarning())
		}
	}
}

// exactAt reports whether every range of s is made of whole windows of res ms.
func (s *selector) exactAt(res int64) bool {
	return s.rng%res == 0 && s.grid.first%res == 0 && s.grid.step%res == 0
}

// cuts reports whether a range of s begins or ends within a window of res ms that
// is read in st.
func (s *selector) cuts(st stretch, res int64) bool {
	if s.exactAt(res) {
		return false
	}
	for i := range s.grid.n() {
		for _, edge := range [...]int64{s.grid.at(i) - s.rng, s.grid.at(i)} {
			if st.from < edge && edge < st.to && edge%res != 0 {
				return true
			}
		}
	}
	return false
}

// annotations is what there is to say about the answer.
func (p *planned) annotations() annotations.Annotations {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := annotations.Annotations{}
	out.Merge(p.annots)
	for src := range p.used {
		if src != rawSource {
			out.Add(tiersInfo(p.opts.names(p.q)))
			break
		}
	}
	return out
}

func inexactWarning(s *selector, tier string) error {
	what := s.fn + "()"
	if s.fn == "" {
		what = "a range without a function"
	}
	return fmt.Errorf("%w: %s cannot be answered exactly from %s buckets and is an estimate", annotations.PromQLWarning, what, tier)
}

// plainWarning is for selectors that are not planned: anchored and smoothed ones.
func plainWarning() error {
	return fmt.Errorf("%w: a selector that is anchored or smoothed reads averages of buckets where raw samples are gone: the answer is an estimate", annotations.PromQLWarning)
}

func lackWarning(fn, tier string) error {
	return fmt.Errorf("%w: %s() asks for what %s buckets do not keep of a series of this type: the answer is an estimate", annotations.PromQLWarning, fn, tier)
}

// shortRangeWarning is for ranges of less than two buckets that are cut.
func shortRangeWarning(s *selector, tier string, res int64) error {
	if s.rng < res {
		return fmt.Errorf("%w: the range of %s() is shorter than a %s bucket, and nothing finer exists for all of the time asked for: the answer is spread over whole buckets", annotations.PromQLWarning, s.fn, tier)
	}
	return fmt.Errorf("%w: the range of %s() spans less than two whole %s buckets, and nothing finer exists for all of the time asked for: of the buckets that it cuts it takes a share", annotations.PromQLWarning, s.fn, tier)
}

func instantInfo(tier string) error {
	return fmt.Errorf("%w: a selector without a range reads the average of each %s bucket, of a counter the last value, and a series that ended ends with its last bucket", annotations.PromQLInfo, tier)
}

func cutInfo(s *selector, tier string) error {
	return fmt.Errorf("%w: ranges of %s() begin or end within %s buckets, of which they take a share: the answer is close, not exact", annotations.PromQLInfo, s.fn, tier)
}

func tiersInfo(names string) error {
	return fmt.Errorf("%w: answered from tiers %s", annotations.PromQLInfo, names)
}
