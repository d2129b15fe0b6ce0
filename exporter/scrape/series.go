package scrape

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/ticktier/ticktier/collectors"
)

// series is one series of a target, which has a slot of the schema, and behind it
// those that tell when it started and when its sample was taken.
type series struct {
	metric *collectors.Metric
	labels []collectors.Label
	target int
	hash   uint64
	next   *series // of the same hash
	size   int     // bytes of its names and values

	slot  int // -1 once it was given to another series
	shape shape
	base  uint64 // tells its metric from others of the family: labels without bounds

	seen  uint64 // the target's scrape that it was in last
	alive bool   // it was in the last one that came to something
	last  int64  // time of its newest sample, where it tells that itself

	// When it ended, while it is in the table's list of those.
	listed  bool
	endSeq  uint64
	endMono int64
}

// shape says what the slots of a series are.
type shape uint8

const (
	started shape = 1 << iota // one tells when it started
	timed                     // one tells when its sample was taken
)

// size is the number of slots.
func (s shape) size() int { return 1 + int(s&1) + int(s>>1&1) }

// startAt and timeAt are the slots that tell more.
func (s *series) startAt() int { return s.slot + 1 }
func (s *series) timeAt() int  { return s.slot + s.shape.size() - 1 }

var (
	startMetric = collectors.Metric{Type: collectors.StartTime, Kind: collectors.Signed}
	timeMetric  = collectors.Metric{Type: collectors.SampleTime, Kind: collectors.Signed}
)

// exported are the labels of a series as a Prometheus would store it: those of the
// target and its own, which get exported_ before their names where both have one.
// Labels are sorted; target's must have no empty values.
func exported(own, target []collectors.Label) []collectors.Label {
	out := slices.Clone(target)
	has := func(name string) bool {
		return slices.ContainsFunc(out, func(l collectors.Label) bool { return l.Name == name })
	}
	var clash []collectors.Label
	for _, l := range own {
		if has(l.Name) {
			clash = append(clash, l)
		} else {
			out = append(out, l)
		}
	}
	slices.SortFunc(clash, func(a, b collectors.Label) int {
		if n := len(a.Name) - len(b.Name); n != 0 {
			return n
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, l := range clash {
		for has(l.Name) {
			l.Name = "exported_" + l.Name
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b collectors.Label) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// hasher hashes names and labels.
type hasher struct{ h maphash.Hash }

func (h *hasher) of(name string, labels []collectors.Label) uint64 {
	h.h.Reset()
	_, _ = h.h.WriteString(name)
	for _, l := range labels {
		_ = h.h.WriteByte(0xff)
		_, _ = h.h.WriteString(l.Name)
		_ = h.h.WriteByte(0xff)
		_, _ = h.h.WriteString(l.Value)
	}
	return h.h.Sum64()
}

// baseOf hashes the labels that a metric's buckets or quantiles share.
func (h *hasher) baseOf(t collectors.Type, labels []collectors.Label) uint64 {
	h.h.Reset()
	for _, l := range labels {
		if l.Name == "le" && (t == collectors.Histogram || t == collectors.GaugeHistogram) || l.Name == "quantile" && t == collectors.Summary {
			continue
		}
		_ = h.h.WriteByte(0xff)
		_, _ = h.h.WriteString(l.Name)
		_ = h.h.WriteByte(0xff)
		_, _ = h.h.WriteString(l.Value)
	}
	return h.h.Sum64()
}
