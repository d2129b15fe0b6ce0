package scrape

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

const (
	// maxLabels and maxLabelBytes bound the labels of one series, labelBytes those of
	// all by their number.
	maxLabels     = 64
	maxLabelBytes = 8 << 10
	labelBytes    = 512
	// maxHelp is how much of a help text is kept.
	maxHelp = 512

	// restFor is how long the slots of a series that ended are left alone: what was
	// delivered must be known to have been, on disk too.
	restFor = 10 * time.Minute
	// sweepEvery is how often it is looked which may be used again.
	sweepEvery = time.Minute
	fewEnded   = 64
)

var errTooMany = errors.New("there are more series than --scrape.max-series lets be")

// table has the series of all targets and the row that holds their newest values. It
// is guarded by the scraper's lock.
type table struct {
	schema    *collectors.Schema
	append    func(seq uint64, mono int64, read uint64, values []int64, present []uint64)
	seal      func()
	delivered func() uint64
	max       int // series

	row    collectors.Row
	seq    uint64
	last   int64 // time of the last row
	index  map[uint64]*series
	size   int   // bytes of all names and values
	alive  []int // series by target, without its up and scrape_ series
	hash   hasher
	ended  []*series
	swept  int64
	free   [4][]int // slots by shape
	change map[int]*collectors.Series

	dropped *dropped
}

func newTable(c *Config) *table {
	return &table{schema: c.Schema, append: c.Append, seal: c.Seal, delivered: c.Delivered, max: c.MaxSeries,
		index: map[uint64]*series{}, alive: make([]int, len(c.Targets)), change: map[int]*collectors.Series{}}
}

// room reports whether target may have so many series.
func (t *table) room(target, n int) bool {
	for i, a := range t.alive {
		if i != target {
			n += a
		}
	}
	return n <= t.max
}

// series finds or adds a series. labels are not kept.
func (t *table) series(target int, m *collectors.Metric, labels []collectors.Label, sh shape, now int64) (*series, error) {
	h := t.hash.of(m.Name, labels)
	for s := t.index[h]; s != nil; s = s.next {
		if s.target == target && s.shape&timed == sh&timed && s.metric.Name == m.Name && slices.Equal(s.labels, labels) {
			return s, nil
		}
	}
	s := &series{metric: m, labels: slices.Clone(labels), target: target, hash: h, shape: sh, size: len(m.Name)}
	for _, l := range labels {
		s.size += len(l.Name) + len(l.Value)
	}
	switch {
	case len(labels) > maxLabels || s.size > maxLabelBytes:
		return nil, fmt.Errorf("series %.100s has %d labels and %d bytes of them: at most %d and %d may be", m.Name, len(labels), s.size, maxLabels, maxLabelBytes)
	case t.size+s.size > t.max*labelBytes:
		return nil, fmt.Errorf("%w: their labels take more than %d bytes on average", errTooMany, labelBytes)
	}
	if !t.place(s, now) {
		return nil, errTooMany
	}
	t.size += s.size
	s.next = t.index[h]
	t.index[h] = s
	// It has not lived yet: until it does it is as one that ended.
	t.end(s, t.seq, now)
	return s, nil
}

// place gives a series its slots: new ones, or those of a series that ended.
func (t *table) place(s *series, now int64) bool {
	if len(t.ended) >= fewEnded && now-t.swept >= int64(sweepEvery) {
		t.sweep(now)
	}
	if t.reuse(s) {
		return true
	}
	// Three slots for each series, and as many that rest.
	if t.schema.Len()+s.shape.size() > 6*t.max+5*len(t.alive) {
		t.sweep(now)
		return t.reuse(s)
	}
	s.slot = t.schema.Add(uint8(s.target), s.metric, s.labels...)
	if s.shape&started != 0 {
		t.schema.Add(uint8(s.target), &startMetric)
	}
	if s.shape&timed != 0 {
		t.schema.Add(uint8(s.target), &timeMetric)
	}
	t.row.Grow(t.schema.Len())
	return true
}

// reuse gives a series slots that are free.
func (t *table) reuse(s *series) bool {
	for _, sh := range []shape{s.shape, s.shape | started} {
		n := len(t.free[sh])
		if n == 0 {
			continue
		}
		s.slot, s.shape = t.free[sh][n-1], sh
		t.free[sh] = t.free[sh][:n-1]
		t.change[s.slot] = &collectors.Series{Metric: s.metric, Labels: s.labels, Source: uint8(s.target)}
		return true
	}
	return false
}

// end notes that a series ended with row seq.
func (t *table) end(s *series, seq uint64, now int64) {
	s.alive, s.endSeq, s.endMono = false, seq, now
	if !s.listed {
		s.listed = true
		t.ended = append(t.ended, s)
	}
}

// sweep frees the slots of series that ended long ago and whose end every receiver
// has.
func (t *table) sweep(now int64) {
	t.swept = now
	delivered := t.delivered()
	t.ended = slices.DeleteFunc(t.ended, func(s *series) bool {
		if s.alive {
			s.listed = false
			return true
		}
		if s.endSeq >= delivered || now-s.endMono < int64(restFor) {
			return false
		}
		t.forget(s)
		return true
	})
}

// forget frees the slots of a series.
func (t *table) forget(s *series) {
	if t.index[s.hash] == s {
		if t.index[s.hash] = s.next; s.next == nil {
			delete(t.index, s.hash)
		}
	} else {
		p := t.index[s.hash]
		for p.next != s {
			p = p.next
		}
		p.next = s.next
	}
	t.size -= s.size
	t.free[s.shape] = append(t.free[s.shape], s.slot)
	for i := range s.shape.size() {
		t.row.Clear(s.slot + i)
		t.row.Values[s.slot+i] = 0
	}
	s.slot, s.next, s.listed = -1, nil, false
}

// commit appends the row.
func (t *table) commit(target int, mono int64) {
	if len(t.change) > 0 {
		// No frame holds ticks of both.
		t.seal()
		t.schema.Replace(func(slot int) *collectors.Series { return t.change[slot] })
		clear(t.change)
	}
	t.append(t.seq, mono, 1<<target, t.row.Values, t.row.Present)
	t.seq++
}
