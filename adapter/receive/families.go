package receive

import (
	"strings"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/metadata"
)

// families is the metadata of metric families, as the newest sender told it. Safe for
// concurrent use.
type families struct {
	max int

	mu  sync.RWMutex
	all map[string]metadata.Metadata // guarded by mu
}

func newFamilies(limit int) *families {
	return &families{max: limit, all: make(map[string]metadata.Metadata)}
}

// metricTypes are the types of both protocols by their number: they agree.
func metricType(n int32) model.MetricType {
	switch n {
	case 1:
		return model.MetricTypeCounter
	case 2:
		return model.MetricTypeGauge
	case 3:
		return model.MetricTypeHistogram
	case 4:
		return model.MetricTypeGaugeHistogram
	case 5:
		return model.MetricTypeSummary
	case 6:
		return model.MetricTypeInfo
	case 7:
		return model.MetricTypeStateset
	}
	return model.MetricTypeUnknown
}

// set1 takes a 1.0 metadata message.
func (f *families) set1(m *family) {
	if len(m.name) == 0 || len(m.name) > maxNameBytes {
		return
	}
	f.set(view(m.name), m.typ, m.help, m.unit)
}

// set keeps what is known of a family. When the map is full, new families are left out.
func (f *families) set(name string, typ int32, help, unit []byte) {
	h, u := help[:min(len(help), maxHelpBytes)], unit[:min(len(unit), maxUnitBytes)]
	kind := metricType(typ)
	f.mu.RLock()
	old, ok := f.all[name]
	f.mu.RUnlock()
	if kind == model.MetricTypeUnknown && ok {
		kind = old.Type // a sender that knows less takes nothing away
	}
	if ok && old.Type == kind && old.Help == valid(h) && old.Unit == valid(u) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ok && len(f.all) >= f.max {
		return
	}
	f.all[strings.Clone(strings.ToValidUTF8(name, "\uFFFD"))] = metadata.Metadata{
		Type: kind, Help: strings.Clone(valid(h)), Unit: strings.Clone(valid(u)),
	}
}

// valid is b as text; it is b's own memory where b is valid.
func valid(b []byte) string { return strings.ToValidUTF8(view(b), "\uFFFD") }

// get returns a copy of everything known.
func (f *families) get() map[string]metadata.Metadata {
	f.mu.RLock()
	defer f.mu.RUnlock()
	all := make(map[string]metadata.Metadata, len(f.all))
	for name, m := range f.all {
		all[name] = m
	}
	return all
}

func (f *families) len() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.all)
}

// typeOf returns the type of the family itself, "" where it is not known or is said
// to be unknown.
func (f *families) typeOf(name string) model.MetricType {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if t := f.all[name].Type; t != model.MetricTypeUnknown {
		return t
	}
	return ""
}

// suffixes of series that a family of another name may own.
const (
	suffixTotal  = "_total"
	suffixBucket = "_bucket"
	suffixCount  = "_count"
	suffixSum    = "_sum"
)

// isCounter tells whether a series of that metric name only grows until it is reset.
func (f *families) isCounter(name string) bool {
	switch f.typeOf(name) {
	case model.MetricTypeCounter, model.MetricTypeHistogram:
		return true // a histogram's own name is that of its native histogram
	case "":
	default:
		return false
	}
	for _, suffix := range [...]string{suffixTotal, suffixBucket, suffixCount, suffixSum} {
		base, ok := strings.CutSuffix(name, suffix)
		if !ok || base == "" {
			continue
		}
		return f.typeOf(base) != model.MetricTypeGaugeHistogram
	}
	return false
}

// seriesType returns the type of series of that metric name, as far as it was told.
func (f *families) seriesType(name string) model.MetricType {
	if t := f.typeOf(name); t != "" {
		return t
	}
	for _, suffix := range [...]string{suffixTotal, suffixBucket, suffixCount} {
		base, ok := strings.CutSuffix(name, suffix)
		if !ok || base == "" {
			continue
		}
		switch t := f.typeOf(base); {
		case t == model.MetricTypeCounter && suffix == suffixTotal,
			t == model.MetricTypeHistogram && suffix != suffixTotal,
			t == model.MetricTypeSummary && suffix == suffixCount:
			return model.MetricTypeCounter
		}
	}
	return model.MetricTypeUnknown
}

// familyOf returns the family a series belongs to, given its type.
func familyOf(name string, typ int32) string {
	switch metricType(typ) {
	case model.MetricTypeHistogram, model.MetricTypeSummary, model.MetricTypeGaugeHistogram:
		for _, suffix := range [...]string{suffixBucket, suffixCount, suffixSum} {
			if base, ok := strings.CutSuffix(name, suffix); ok && base != "" {
				return base
			}
		}
	}
	return name
}

// metadata notes what a 2.0 series says about itself; false means that it refers to
// symbols that do not exist. Nothing is done where it says what it said before.
func (b *batch) metadata(q *request, r *resolved) bool {
	m := &b.series.meta
	help, hh, ok1 := q.symbol(b.seed, m.help)
	unit, uh, ok2 := q.symbol(b.seed, m.unit)
	if !ok1 || !ok2 {
		return false
	}
	print := mix(mix(uint64(m.typ)+1, hh), uh)
	if r.meta.Load() == print {
		return true
	}
	b.families.set(familyOf(r.ls.Get(model.MetricNameLabel), m.typ), m.typ, help, unit)
	r.meta.Store(print)
	return true
}
