package receive

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/storage"
)

// reason is why a part of a request is not stored. Its label is a value of
// ticktier_adapter_receive_rejected_total, its text goes to the sender.
type reason uint8

const (
	reasonNone reason = iota
	reasonReference
	reasonTooManyLabels
	reasonEmptyName
	reasonDuplicateLabel
	reasonReservedLabel
	reasonLabelLength
	reasonUTF8
	reasonMetricName
	reasonNoSamples
	reasonTimestamp
	reasonFuture
	reasonPast
	reasonOutOfOrder
	reasonTooOld
	reasonOutOfBounds
	reasonDuplicate
	reasonHistogram
	reasonExemplar
	reasonMetadata
	reasonSeriesLimit
	reasonTotalSeries
	numReasons
)

func (r reason) label() string {
	return [numReasons]string{
		"none", "reference", "too_many_labels", "empty_label_name", "duplicate_label", "reserved_label", "label_length",
		"invalid_utf8", "metric_name", "no_samples", "timestamp", "future", "past", "out_of_order", "too_old",
		"out_of_bounds", "duplicate_timestamp", "histogram", "exemplar", "metadata",
		"series_limit", "series_limit_of_all",
	}[r]
}

func (r reason) text() string {
	switch r {
	case reasonReference:
		return "a reference points past the symbol table, or references do not come in pairs"
	case reasonTooManyLabels:
		return fmt.Sprintf("more than %d labels", maxLabels)
	case reasonEmptyName:
		return "a label has an empty name"
	case reasonDuplicateLabel:
		return "a label name occurs twice"
	case reasonReservedLabel:
		return "the label __filled__ is the adapter's own"
	case reasonLabelLength:
		return fmt.Sprintf("labels are too long: names may have %d bytes, values %d, all of a series %d",
			maxNameBytes, maxValueBytes, maxLabelSetBytes)
	case reasonUTF8:
		return "a label is not valid UTF-8"
	case reasonMetricName:
		return fmt.Sprintf("the metric name is missing, empty or longer than %d bytes", maxNameBytes)
	case reasonNoSamples:
		return "the series has neither samples nor histograms, exemplars or metadata"
	case reasonTimestamp:
		return "the timestamp is not after 1970-01-01"
	case reasonFuture:
		return "the timestamp is too far in the future: is the sender's clock right?"
	case reasonPast:
		return "the timestamp is older than anything that is kept: is the sender's clock right?"
	case reasonOutOfOrder:
		return storage.ErrOutOfOrderSample.Error()
	case reasonTooOld:
		return storage.ErrTooOldSample.Error() + ": it is before the out-of-order window"
	case reasonOutOfBounds:
		return storage.ErrOutOfBounds.Error()
	case reasonDuplicate:
		return "another value is stored for this timestamp"
	case reasonHistogram:
		return "the native histogram is not valid"
	case reasonExemplar:
		return "the exemplar is not valid or not in order"
	case reasonMetadata:
		return "the metadata is not valid"
	}
	switch r {
	case reasonSeriesLimit:
		return "the device has as many series as it may have; new ones are not stored, those it has are"
	case reasonTotalSeries:
		return "the adapter holds as many series as it may; new ones are not stored now"
	}
	return "no reason"
}

// refusalOf classifies an error of the store; ok is false for an error that is not
// the sample's fault.
func refusalOf(err error) (why reason, ok bool) {
	var invalid histogram.Error
	switch {
	case errors.Is(err, storage.ErrOutOfOrderSample):
		return reasonOutOfOrder, true
	case errors.Is(err, storage.ErrTooOldSample):
		return reasonTooOld, true
	case errors.Is(err, storage.ErrOutOfBounds):
		return reasonOutOfBounds, true
	case errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		return reasonDuplicate, true
	case errors.As(err, &invalid), errors.Is(err, storage.ErrNativeHistogramsDisabled):
		return reasonHistogram, true
	}
	return reasonNone, false
}

// refusals counts what a request's parts were refused for, with the first example of
// each reason. It is reused.
type refusals struct {
	count   [numReasons]int
	example [numReasons]string
	total   int
}

func (f *refusals) reset() {
	if f.total > 0 {
		*f = refusals{}
	}
}

// add counts n refused elements. where is called for the first of each reason only.
func (f *refusals) add(why reason, n int, where func() string) {
	if f.count[why] == 0 {
		f.example[why] = where()
	}
	f.count[why] += n
	f.total += n
}

// maxExampleBytes bounds what of a client's own words goes back to it and to the log.
const maxExampleBytes = 240

// String is the body of a 400: one line for each reason, at most numReasons of them.
func (f *refusals) String() string {
	var b strings.Builder
	for why, n := range f.count {
		if n == 0 {
			continue
		}
		fmt.Fprintf(&b, "%d refused: %s; first: %s\n", n, reason(why).text(), f.example[why])
	}
	return b.String()
}

// place describes an element for a refusal: escaped and cut.
func place(index int, pairs []pair, t int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "timeseries %d {", index)
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte(',')
		}
		if b.Len() > maxExampleBytes {
			break
		}
		b.WriteString(quote(p.name) + "=" + quote(p.value))
	}
	s := clip(b.String(), maxExampleBytes) + "}"
	if t != 0 {
		s += " at " + strconv.FormatInt(t, 10)
	}
	return s
}

func quote(b []byte) string {
	return strconv.Quote(string(b[:min(len(b), maxExampleBytes)]))
}

// clip cuts s to at most n bytes, at a rune's beginning.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
