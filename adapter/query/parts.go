package query

import (
	"math"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/store"
)

// rawPart holds the raw samples of one range at a time. Ranges only move forward.
type rawPart struct {
	it     chunkenc.Iterator
	floats []promql.FPoint
	hists  []promql.HPoint
	starts *promql.StartTimestamps // of floats and hists; nil unless the query uses them
	kind   chunkenc.ValueType      // of the sample that it stands on, not yet taken
	begun  bool
}

func newRawPart(s *plannedSeries, it chunkenc.Iterator) *rawPart {
	p := &rawPart{it: it}
	if s.sel.statsOnly {
		p.it = promql.NewHistogramStatsIterator(it)
	}
	switch s.sel.fn {
	case "rate", "irate", "increase", "resets":
		if s.plan.startTimestamps {
			p.starts = &promql.StartTimestamps{}
		}
	}
	return p
}

func (p *rawPart) len() int { return len(p.floats) + len(p.hists) }

// load makes floats and hists those in (lo, hi], and refuses to hold more than room
// of them. Staleness markers are left out.
func (p *rawPart) load(lo, hi int64, room int) error {
	p.drop(lo)
	if !p.begun {
		p.begun = true
		p.kind = p.it.Next() // some iterators cannot seek before
	}
	if p.kind != chunkenc.ValNone && p.it.AtT() <= lo {
		p.kind = p.it.Seek(lo + 1)
	}
	for p.kind != chunkenc.ValNone && p.it.AtT() <= hi {
		if p.len() >= room {
			return promql.ErrTooManySamples("a range over raw samples")
		}
		p.take()
		p.kind = p.it.Next()
	}
	if p.kind == chunkenc.ValNone {
		return p.it.Err()
	}
	return nil
}

// drop forgets the samples up to lo.
func (p *rawPart) drop(lo int64) {
	n := 0
	for n < len(p.floats) && p.floats[n].T <= lo {
		n++
	}
	p.floats = append(p.floats[:0], p.floats[n:]...)
	if p.starts != nil {
		p.starts.Floats = append(p.starts.Floats[:0], p.starts.Floats[n:]...)
	}
	n = 0
	for n < len(p.hists) && p.hists[n].T <= lo {
		n++
	}
	p.hists = append(p.hists[:0], p.hists[n:]...)
	if p.starts != nil {
		p.starts.Histograms = append(p.starts.Histograms[:0], p.starts.Histograms[n:]...)
	}
}

func (p *rawPart) take() {
	if p.kind == chunkenc.ValFloat {
		if t, v := p.it.At(); !value.IsStaleNaN(v) {
			p.floats = append(p.floats, promql.FPoint{T: t, F: v})
			if p.starts != nil {
				p.starts.Floats = append(p.starts.Floats, p.it.AtST())
			}
		}
		return
	}
	if t, h := p.it.AtFloatHistogram(nil); !value.IsStaleNaN(h.Sum) {
		p.hists = append(p.hists, promql.HPoint{T: t, H: h})
		if p.starts != nil {
			p.starts.Histograms = append(p.starts.Histograms, p.it.AtST())
		}
	}
}

// bucket is what the columns that were read say of one window. A store keeps of a
// counter no sum and of a gauge no first sample; what is not known is NaN.
type bucket struct {
	start                        int64
	count, sum, min, max, resets float64
	firstT, lastT                int64
	first, last                  float64
	corrected                    float64 // sum of the counter samples before a fall
	points                       int     // counter samples seen
	hasSum                       bool
	hists                        *buckethists // nil without any
}

func newBucket(start int64) bucket {
	nan := math.NaN()
	return bucket{start: start, count: nan, sum: nan, min: nan, max: nan, resets: nan}
}

// increase is what a counter grew from its first to its last sample.
func (b *bucket) increase() float64 { return b.last - b.first + b.corrected }

// lacksFirst reports whether only the last of several samples is known.
func (b *bucket) lacksFirst() bool { return b.points == 1 && b.count > 1 }

// bucketPart holds the buckets of one stretch.
type bucketPart struct {
	bs  []bucket
	res int64
	i   int // the first bucket whose window ends after the range's start
	// hists: there are buckets with histograms.
	hists bool
}

// seek moves to the range [lo, hi) and reports whether there is a bucket in it.
// Ranges only move forward.
func (p *bucketPart) seek(lo, hi int64) bool {
	for p.i < len(p.bs) && p.bs[p.i].start+p.res <= lo {
		p.i++
	}
	return p.i < len(p.bs) && p.bs[p.i].start < hi
}

// before is the bucket just before the first one of the range, if there is one in
// the window just before.
func (p *bucketPart) before() *bucket {
	if p.i > 0 && p.i < len(p.bs) && p.bs[p.i-1].start+p.res == p.bs[p.i].start {
		return &p.bs[p.i-1]
	}
	return nil
}

// each gives the buckets that overlap [lo, hi).
func (p *bucketPart) each(hi int64, f func(b *bucket, res int64)) {
	for i := p.i; i < len(p.bs) && p.bs[i].start < hi; i++ {
		f(&p.bs[i], p.res)
	}
}

// readBuckets reads the columns of a stretch, which hold the aggregates aggs, into
// dst, and counts their samples. The first column says which buckets there are.
func (q *Queryable) readBuckets(dst []bucket, aggs []store.Agg, cols []storage.Series, res int64) (out []bucket, n int, err error) {
	out = dst[:0]
	it := q.iterator()
	defer func() {
		if it != nil {
			q.iterators.Put(it)
		}
	}()
	for c, series := range cols {
		if series == nil {
			continue
		}
		i := 0
		it = series.Iterator(it)
		for vt := it.Next(); vt != chunkenc.ValNone; vt = it.Next() {
			n++
			start := floorTo(it.AtT(), res)
			if k := len(out); c == 0 && (k == 0 || out[k-1].start != start) {
				if vt == chunkenc.ValFloat && isStale(it) {
					continue
				}
				out = append(out, newBucket(start))
			}
			for i < len(out) && out[i].start < start {
				i++
			}
			if i < len(out) && out[i].start == start {
				out[i].take(aggs[c], vt, it)
			}
		}
		if it.Err() != nil {
			return nil, n, it.Err()
		}
	}
	return out, n, nil
}

func isStale(it chunkenc.Iterator) bool {
	_, v := it.At()
	return value.IsStaleNaN(v)
}

// take takes the sample that it stands on, one of the column agg.
func (b *bucket) take(agg store.Agg, vt chunkenc.ValueType, it chunkenc.Iterator) {
	ends := agg == store.Counter
	if vt == chunkenc.ValFloatHistogram {
		t, h := it.AtFloatHistogram(nil)
		b.setHist(!ends, t, h)
		b.hists.mixed = b.hists.mixed || ends && b.points > 0 || !ends && b.hasSum
		return
	}
	t, v := it.At()
	if value.IsStaleNaN(v) {
		return
	}
	b.set(agg, t, v)
	if b.hists != nil && (ends || agg == store.Sum) {
		b.hists.mixed = true
	}
}

// set takes one float of the column agg.
func (b *bucket) set(agg store.Agg, t int64, v float64) {
	switch agg {
	case store.Count:
		b.count = v
	case store.Sum:
		b.sum, b.hasSum = v, true
	case store.Min:
		b.min = v
	case store.Max:
		b.max = v
	case store.Resets:
		b.resets = v
	case store.Counter:
		if b.points == 0 {
			b.first, b.firstT = v, t
		} else if v < b.last {
			b.corrected += b.last
		}
		b.last, b.lastT = v, t
		b.points++
	}
}

// counterName reports whether a name is that of a counter, by the engine's rule.
func counterName(name string) bool {
	for _, suffix := range []string{"_total", "_sum", "_count", "_bucket"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

func msToDuration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
