package receive

import (
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// resolver turns labels as sent into resolved label sets. It is used by one request
// at a time; the cache behind it is shared.
type resolver struct {
	cache   *cache
	seed    maphash.Seed
	pairs   []pair
	builder labels.ScratchBuilder
	// maxLabels is how many a series may have; at most the constant of that name.
	maxLabels int

	// renamed is the value for instance labels that are rename; rename is nil where
	// none is.
	rename, renamed []byte
	// forced are the labels that every series of the request gets whatever it says,
	// ordered by name; their strings are not this request's own.
	forced []forced
}

// resolve returns the label set of s, or why it is refused.
//
// Labels that are not sorted are sorted, as Prometheus does for what vmagent and
// others send; a label without a value is the same as no label and is left out.
func (v *resolver) resolve(q *request, s *series) (*resolved, reason) {
	hash, why := v.collect(q, s.refs, s.pairs)
	if why != reasonNone {
		return nil, why
	}
	if r := v.cache.get(hash, v.pairs); r != nil {
		return r, reasonNone
	}
	if v.canonical() {
		hash = 0
		for _, p := range v.pairs {
			hash = mix(mix(hash, v.hash(p.name)), v.hash(p.value))
		}
		if r := v.cache.get(hash, v.pairs); r != nil {
			return r, reasonNone
		}
	}
	size, why := checkLabels(v.pairs)
	if why == reasonNone {
		why = checkMetricName(v.pairs)
	}
	if why != reasonNone {
		return nil, why
	}
	return v.cache.put(&resolved{hash: hash, ls: v.build(), size: size}, v.pairs), reasonNone
}

func (v *resolver) hash(b []byte) uint64 { return maphash.Bytes(v.seed, b) | 1 }

// collect fills v.pairs from either list and returns the hash of the label set.
func (v *resolver) collect(q *request, refs []uint32, sent []pair) (hash uint64, why reason) {
	v.pairs = v.pairs[:0]
	if len(refs)/2 > v.maxLabels || len(sent) > v.maxLabels {
		return 0, reasonTooManyLabels
	}
	if len(refs)%2 != 0 {
		return 0, reasonReference
	}
	next := 0 // of v.forced
	for i := 0; i < len(refs); i += 2 {
		name, nh, ok1 := q.symbol(v.seed, refs[i])
		value, vh, ok2 := q.symbol(v.seed, refs[i+1])
		if !ok1 || !ok2 {
			return 0, reasonReference
		}
		if len(v.forced) > 0 {
			if v.isForced(name) {
				continue
			}
			hash, next = v.force(hash, next, name)
		}
		if other, ok := v.instance(name, value); ok {
			value, vh = other, v.hash(other)
		}
		hash = mix(mix(hash, nh), vh)
		v.pairs = append(v.pairs, pair{name, value})
	}
	for _, p := range sent {
		if len(v.forced) > 0 {
			if v.isForced(p.name) {
				continue
			}
			hash, next = v.force(hash, next, p.name)
		}
		p.value, _ = v.instance(p.name, p.value)
		hash = mix(mix(hash, v.hash(p.name)), v.hash(p.value))
		v.pairs = append(v.pairs, p)
	}
	hash, _ = v.force(hash, next, nil)
	if len(v.pairs) > v.maxLabels {
		return 0, reasonTooManyLabels
	}
	return hash, reasonNone
}

// canonical leaves out labels without a value, sorts the rest by name, and tells
// whether anything changed. The empty metric name stays, so that it is refused as such.
func (v *resolver) canonical() bool {
	n := len(v.pairs)
	v.pairs = slices.DeleteFunc(v.pairs, func(p pair) bool {
		return len(p.value) == 0 && len(p.name) != 0 && string(p.name) != model.MetricNameLabel
	})
	byName := func(a, b pair) int { return strings.Compare(view(a.name), view(b.name)) }
	if slices.IsSortedFunc(v.pairs, byName) {
		return len(v.pairs) != n
	}
	slices.SortStableFunc(v.pairs, byName)
	return true
}

// build copies v.pairs into labels of their own.
func (v *resolver) build() labels.Labels {
	v.builder.Reset()
	v.builder.SetUnsafeAdd(true)
	for _, p := range v.pairs {
		v.builder.Add(view(p.name), view(p.value))
	}
	ls := v.builder.Labels()
	v.builder.Reset()
	return ls
}

// view is b as a string without a copy: valid, and not to be kept, while b is.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf is s as bytes without a copy: they must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// reservedLabel is store.FillLabel: it marks samples that replace others.
const reservedLabel = "__filled__"

// checkLabels judges sorted labels and returns the size of their names and values.
func checkLabels(pairs []pair) (size int, why reason) {
	for i, p := range pairs {
		switch {
		case len(p.name) == 0:
			return 0, reasonEmptyName
		case i > 0 && string(p.name) == string(pairs[i-1].name):
			return 0, reasonDuplicateLabel
		case string(p.name) == reservedLabel:
			return 0, reasonReservedLabel
		case len(p.name) > maxNameBytes, len(p.value) > maxValueBytes:
			return 0, reasonLabelLength
		case !utf8.Valid(p.name), !utf8.Valid(p.value):
			return 0, reasonUTF8
		}
		size += len(p.name) + len(p.value)
	}
	if size > maxLabelSetBytes {
		return 0, reasonLabelLength
	}
	return size, reasonNone
}

func checkMetricName(pairs []pair) reason {
	for _, p := range pairs {
		if string(p.name) != model.MetricNameLabel {
			continue
		}
		if len(p.value) == 0 || len(p.value) > maxNameBytes {
			return reasonMetricName
		}
		return reasonNone
	}
	return reasonMetricName
}
