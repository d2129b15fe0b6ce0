package burst

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ticktier/ticktier/collectors"
)

// Writer encodes a recorder's histograms as requests of remote write: native ones for
// 2.0, classic ones for 1.0, and the lowest and highest tick since the last request
// that the receiver took. One goroutine uses it.
type Writer struct {
	Recorder *Recorder
	// Name tells this writer from the scrapers, of which it is one.
	Name string
	// External labels are put on each series, where it has none of the name.
	External []collectors.Label
	// Now is the Unix time in ms; Start turns the monotonic time at which a histogram
	// began into that, where it is known, and may be nil.
	Now   func() int64
	Start func(mono int64) (ms int64, ok bool)
	// Select says whether a family of such a name with such labels is sent; nil is all.
	Select func(*collectors.Series) bool

	snap    Snapshot
	untaken map[string]extent // ranges that the receiver was not told of
	refs    map[string]uint64
	symbols []byte
	series  []byte
	labels  []collectors.Label
	last    int64
	told    map[string]bool // ranges that the receiver was told of
	ending  bool            // staleness markers are written in place of values
}

// staleNaN is the value of a staleness marker, of a histogram's sum too.
var staleNaN = math.Float64frombits(0x7ff0000000000002)

// End appends a request that ends every series of the last one with a staleness marker.
func (w *Writer) End(dst []byte, v2 bool) (body []byte, samples, histograms int) {
	if w.refs == nil {
		return dst, 0, 0
	}
	w.ending = true
	defer func() { w.ending = false }()
	now := max(w.Now(), w.last+1)
	w.last = now
	return w.encode(dst, v2, now)
}

// Encode appends a request that is not compressed, 2.0 or 1.0, and says how many
// samples and native histograms are in it. It appends nothing where there is nothing to
// send.
func (w *Writer) Encode(dst []byte, v2 bool) (body []byte, samples, histograms int) {
	now := w.Now()
	if now <= w.last { // the clock was stepped back
		return dst, 0, 0
	}
	w.last = now
	if w.refs == nil {
		w.refs, w.untaken, w.told = map[string]uint64{}, map[string]extent{}, map[string]bool{}
	}
	w.Recorder.Snapshot(&w.snap, w.Name)
	return w.encode(dst, v2, now)
}

// encode appends the request for the snapshot.
func (w *Writer) encode(dst []byte, v2 bool, now int64) (body []byte, samples, histograms int) {
	clear(w.refs)
	w.refs[""] = 0
	w.symbols, w.series = appendText(w.symbols[:0], 4, ""), w.series[:0]
	for i := range w.snap.Families {
		f := &w.snap.Families[i]
		for j := range f.Series {
			s := &f.Series[j]
			if !w.selects(f, s) {
				continue
			}
			if v2 {
				w.native(f, s, now)
				histograms++
			} else {
				samples += w.classic(f, s, now)
			}
			samples += w.extremes(f, s, v2, now)
		}
	}
	if samples+histograms == 0 {
		return dst, 0, 0
	}
	if v2 {
		dst = append(dst, w.symbols...)
	}
	return append(dst, w.series...), samples, histograms
}

// Done tells whether the receiver took the last request. If it did not, the next one's
// ranges cover this one's, too.
func (w *Writer) Done(took bool) {
	if took {
		clear(w.untaken)
	}
}

func (w *Writer) selects(f *Family, s *Series) bool {
	if w.Select == nil {
		return true
	}
	return w.Select(&collectors.Series{Metric: &collectors.Metric{Name: f.Name}, Labels: s.Labels})
}

// The types of metadata, and the field of a TimeSeries that they stand in, in 2.0.
const (
	metaGauge     = 2
	metaHistogram = 3
)

func (w *Writer) native(f *Family, s *Series, now int64) {
	at := w.begin(5, f.Name, s, "", true)
	b := appendTag(w.series, 3, 2)
	inner := len(b)
	if w.ending {
		b = binary.AppendVarint(appendTag(appendDouble(b, 3, staleNaN), 4, 0), Schema)
		w.series = closeMessage(appendUint(b, 15, uint64(now)), inner)
		w.metadata(metaHistogram, f.Help, f.Unit)
		w.series = closeMessage(w.series, at)
		return
	}
	b = appendUint(b, 1, s.Count)
	b = appendDouble(b, 3, s.Sum)
	b = binary.AppendVarint(appendTag(b, 4, 0), Schema)
	b = appendDouble(b, 5, ZeroThreshold)
	b = appendUint(b, 6, s.Zero)
	b = s.AppendSpans(b, 11)
	b = s.AppendDeltas(b, 12, true)
	b = appendUint(b, 15, uint64(now))
	if w.Start != nil {
		if start, ok := w.Start(s.Start); ok {
			b = appendUint(b, 17, uint64(start))
		}
	}
	w.series = closeMessage(b, inner)
	w.metadata(metaHistogram, f.Help, f.Unit)
	w.series = closeMessage(w.series, at)
}

// classic appends what 1.0 has for a histogram: a series for each bucket, the sum and
// the count.
func (w *Writer) classic(f *Family, s *Series, now int64) (samples int) {
	var all uint64
	for i, n := range s.Classic {
		all += n
		le := "+Inf"
		if i < len(f.Bounds) {
			le = strconv.FormatFloat(f.Bounds[i], 'g', -1, 64)
		}
		w.sample(f.Name+"_bucket", s, le, float64(all), now)
	}
	w.sample(f.Name+"_sum", s, "", s.Sum, now)
	w.sample(f.Name+"_count", s, "", float64(s.Count), now)
	return len(s.Classic) + 2
}

func (w *Writer) sample(name string, s *Series, le string, v float64, now int64) {
	at := w.begin(1, name, s, le, false)
	w.value(v, now)
	w.series = closeMessage(w.series, at)
}

// value appends a Sample, which is alike in both protocols.
func (w *Writer) value(v float64, now int64) {
	if w.ending {
		v = staleNaN
	}
	b := appendTag(w.series, 2, 2)
	inner := len(b)
	b = appendUint(appendDouble(b, 1, v), 2, uint64(now))
	w.series = closeMessage(b, inner)
}

// extremes appends the range since the last request that was taken.
func (w *Writer) extremes(f *Family, s *Series, v2 bool, now int64) (samples int) {
	key := f.Name
	for _, l := range s.Labels {
		key += "\xff" + l.Value
	}
	e := w.untaken[key]
	if w.ending {
		e.any = w.told[key]
	} else {
		e.add(extent{s.Min, s.Max, s.Ranged})
	}
	if !e.any {
		return 0
	}
	w.untaken[key], w.told[key] = e, true
	for _, x := range []struct {
		suffix, help string
		v            float64
	}{{"_min", " Lowest since the last push.", e.min}, {"_max", " Highest since the last push.", e.max}} {
		if !v2 {
			w.sample(f.Name+x.suffix, s, "", x.v, now)
			continue
		}
		at := w.begin(5, f.Name+x.suffix, s, "", true)
		w.value(x.v, now)
		w.metadata(metaGauge, f.Help+x.help, "")
		w.series = closeMessage(w.series, at)
	}
	return 2
}

// begin opens a TimeSeries in a field of a request, with its labels in order of their
// names.
func (w *Writer) begin(field int, name string, s *Series, le string, v2 bool) (at int) {
	w.labels = append(w.labels[:0], collectors.Label{Name: "__name__", Value: name})
	w.labels = append(w.labels, s.Labels...)
	if le != "" {
		w.labels = append(w.labels, collectors.Label{Name: "le", Value: le})
	}
	own := len(w.labels)
	for _, l := range w.External {
		if l.Value != "" && !slices.ContainsFunc(w.labels[:own], func(o collectors.Label) bool { return o.Name == l.Name }) {
			w.labels = append(w.labels, l)
		}
	}
	slices.SortFunc(w.labels, func(a, b collectors.Label) int { return cmp.Compare(a.Name, b.Name) })
	w.series = appendTag(w.series, field, 2)
	at = len(w.series)
	if !v2 {
		for _, l := range w.labels {
			w.series = appendTag(w.series, 1, 2)
			inner := len(w.series)
			w.series = appendText(appendText(w.series, 1, l.Name), 2, valid(l.Value))
			w.series = closeMessage(w.series, inner)
		}
		return at
	}
	w.series = appendTag(w.series, 1, 2)
	inner := len(w.series)
	for _, l := range w.labels {
		w.series = binary.AppendUvarint(w.series, w.ref(l.Name))
		w.series = binary.AppendUvarint(w.series, w.ref(valid(l.Value)))
	}
	w.series = closeMessage(w.series, inner)
	return at
}

// metadata appends that of a 2.0 TimeSeries.
func (w *Writer) metadata(kind uint64, help, unit string) {
	b := appendTag(w.series, 5, 2)
	inner := len(b)
	b = appendUint(appendUint(b, 1, kind), 3, w.ref(help))
	if unit != "" {
		b = appendUint(b, 4, w.ref(unit))
	}
	w.series = closeMessage(b, inner)
}

// ref is the number of a symbol.
func (w *Writer) ref(s string) uint64 {
	n, ok := w.refs[s]
	if !ok {
		n = uint64(len(w.refs))
		w.refs[s] = n
		w.symbols = appendText(w.symbols, 4, s)
	}
	return n
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
