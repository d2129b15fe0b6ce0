package query

import (
	"math"
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// listIterator iterates over samples. It implements chunkenc.Iterator.
type listIterator struct {
	list []point
	i    int
	err  error
}

func (it *listIterator) Next() chunkenc.ValueType { it.i++; return it.kind() }

func (it *listIterator) kind() chunkenc.ValueType {
	if it.i >= len(it.list) {
		return chunkenc.ValNone
	}
	if it.list[it.i].h != nil {
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

func (it *listIterator) Seek(t int64) chunkenc.ValueType {
	it.i = max(it.i, 0)
	for range 4 { // mostly it is near
		if it.i >= len(it.list) || it.list[it.i].t >= t {
			return it.kind()
		}
		it.i++
	}
	rest := it.list[min(it.i, len(it.list)):]
	it.i += sort.Search(len(rest), func(k int) bool { return rest[k].t >= t })
	return it.kind()
}

func (it *listIterator) At() (int64, float64) { return it.list[it.i].t, it.list[it.i].v }
func (it *listIterator) AtT() int64           { return it.list[it.i].t }
func (it *listIterator) AtST() int64          { return 0 }
func (it *listIterator) Err() error           { return it.err }

// AtHistogram is not for use: there are only float histograms.
func (it *listIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return it.AtT(), nil
}

func (it *listIterator) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	from := it.list[it.i].h
	switch {
	case from == nil:
		return it.AtT(), nil
	case h == nil:
		return it.AtT(), from.Copy()
	}
	from.CopyTo(h)
	return it.AtT(), h
}

// bounded drops the samples of an iterator that lie outside of a stretch.
type bounded struct {
	chunkenc.Iterator
	from, to int64
}

func bound(it chunkenc.Iterator, st stretch) chunkenc.Iterator {
	return &bounded{it, st.from, st.to}
}

func (b *bounded) Next() chunkenc.ValueType {
	vt := b.Iterator.Next()
	for vt != chunkenc.ValNone && b.AtT() < b.from {
		vt = b.Iterator.Next()
	}
	return b.within(vt)
}

func (b *bounded) Seek(t int64) chunkenc.ValueType {
	return b.within(b.Iterator.Seek(max(t, b.from)))
}

func (b *bounded) within(vt chunkenc.ValueType) chunkenc.ValueType {
	if vt != chunkenc.ValNone && b.AtT() >= b.to {
		return chunkenc.ValNone
	}
	return vt
}

// concat puts iterators of ascending stretches one after the other. A sample that
// is not after the one before it is dropped.
type concat struct {
	parts []chunkenc.Iterator
	i     int
	last  int64
	kind  chunkenc.ValueType
}

func newConcat(parts []chunkenc.Iterator) *concat {
	return &concat{parts: parts, last: math.MinInt64}
}

func (c *concat) Next() chunkenc.ValueType {
	return c.step(func(it chunkenc.Iterator) chunkenc.ValueType { return it.Next() })
}

func (c *concat) Seek(t int64) chunkenc.ValueType {
	if c.kind != chunkenc.ValNone && c.last >= t {
		return c.kind
	}
	return c.step(func(it chunkenc.Iterator) chunkenc.ValueType { return it.Seek(t) })
}

func (c *concat) step(advance func(chunkenc.Iterator) chunkenc.ValueType) chunkenc.ValueType {
	for ; c.i < len(c.parts); c.i++ {
		it := c.parts[c.i]
		vt := advance(it)
		for vt != chunkenc.ValNone && it.AtT() <= c.last {
			vt = it.Next()
		}
		if vt != chunkenc.ValNone {
			c.last, c.kind = it.AtT(), vt
			return vt
		}
		if it.Err() != nil {
			break
		}
	}
	c.kind = chunkenc.ValNone
	return c.kind
}

func (c *concat) Err() error {
	if c.i < len(c.parts) {
		return c.parts[c.i].Err()
	}
	return nil
}

func (c *concat) At() (int64, float64) { return c.parts[c.i].At() }
func (c *concat) AtT() int64           { return c.last }
func (c *concat) AtST() int64          { return c.parts[c.i].AtST() }

func (c *concat) AtHistogram(h *histogram.Histogram) (int64, *histogram.Histogram) {
	return c.parts[c.i].AtHistogram(h)
}

func (c *concat) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return c.parts[c.i].AtFloatHistogram(h)
}
