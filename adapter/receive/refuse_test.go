package receive

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage"
)

// TestPartial: the good part is stored, the answer is 400 with the reason, the counts
// are exact.
func TestPartial(t *testing.T) {
	long := strings.Repeat("x", maxValueBytes+1)
	many := []string{"__name__", "m"}
	for i := range maxLabels {
		many = append(many, fmt.Sprintf("l%03d", i), "v")
	}
	badHistogram := intHistogram2(at(0))
	badHistogram.Count = &writev2.Histogram_CountInt{CountInt: 99}
	one := []writev2.Sample{{Timestamp: at(0), Value: 1}}
	for name, tc := range map[string]struct {
		bad    func(b *builder)
		reason reason
		n      int
	}{
		"no metric name":    {func(b *builder) { b.sample(0, 1, "job", "x") }, reasonMetricName, 1},
		"empty metric name": {func(b *builder) { b.sample(0, 1, "__name__", "") }, reasonMetricName, 1},
		"no labels":         {func(b *builder) { b.sample(0, 1) }, reasonMetricName, 1},
		"empty label name":  {func(b *builder) { b.sample(0, 1, "", "x", "__name__", "m") }, reasonEmptyName, 1},
		"reserved label":    {func(b *builder) { b.sample(0, 1, "__filled__", "f", "__name__", "m") }, reasonReservedLabel, 1},
		"duplicate label":   {func(b *builder) { b.sample(0, 1, "__name__", "m", "a", "1", "a", "2") }, reasonDuplicateLabel, 1},
		"duplicate, apart":  {func(b *builder) { b.sample(0, 1, "a", "1", "__name__", "m", "a", "1") }, reasonDuplicateLabel, 1},
		"long value":        {func(b *builder) { b.sample(0, 1, "__name__", "m", "a", long) }, reasonLabelLength, 1},
		"long name":         {func(b *builder) { b.sample(0, 1, "__name__", "m", long[:maxNameBytes+1], "v") }, reasonLabelLength, 1},
		"too many":          {func(b *builder) { b.sample(0, 1, many...) }, reasonTooManyLabels, 1},
		"not UTF-8":         {func(b *builder) { b.sample(0, 1, "__name__", "m", "a", "\xff") }, reasonUTF8, 1},
		"odd references": {func(b *builder) {
			b.req.Timeseries = append(b.req.Timeseries, writev2.TimeSeries{LabelsRefs: []uint32{1}, Samples: one})
		}, reasonReference, 1},
		"reference past the table": {func(b *builder) {
			b.req.Timeseries = append(b.req.Timeseries, writev2.TimeSeries{LabelsRefs: []uint32{1, 999}, Samples: one})
		}, reasonReference, 1},
		"help past the table": {func(b *builder) {
			b.add(writev2.TimeSeries{Samples: one, Metadata: writev2.Metadata{HelpRef: 999}}, "__name__", "m")
		}, reasonReference, 1},
		"nothing":     {func(b *builder) { b.add(writev2.TimeSeries{}, "__name__", "m") }, reasonNoSamples, 1},
		"time 0":      {func(b *builder) { b.sample(-at(0), 1, "__name__", "m") }, reasonTimestamp, 1},
		"before 1970": {func(b *builder) { b.sample(-at(5000), 1, "__name__", "m") }, reasonTimestamp, 1},
		"future":      {func(b *builder) { b.sample(600_001, 1, "__name__", "m") }, reasonFuture, 1},
		"far future":  {func(b *builder) { b.sample(math.MaxInt64-at(0), 1, "__name__", "m") }, reasonFuture, 1},
		"long past":   {func(b *builder) { b.sample(-24*3600_000-1, 1, "__name__", "m") }, reasonPast, 1},
		"bad histogram": {func(b *builder) {
			b.add(writev2.TimeSeries{Histograms: []writev2.Histogram{badHistogram}}, "__name__", "m")
		}, reasonHistogram, 1},
		"future histogram": {func(b *builder) {
			b.add(writev2.TimeSeries{Histograms: []writev2.Histogram{intHistogram2(at(600_001))}}, "__name__", "m")
		}, reasonFuture, 1},
		"contradiction": {func(b *builder) {
			b.add(writev2.TimeSeries{Samples: []writev2.Sample{{Timestamp: at(1), Value: 5}, {Timestamp: at(0), Value: 1}, {Timestamp: at(1), Value: 6}}}, "__name__", "good")
		}, reasonDuplicate, 1},
		"bad labels, many samples": {func(b *builder) {
			b.add(writev2.TimeSeries{Samples: []writev2.Sample{{}, {}}, Exemplars: []writev2.Exemplar{{}}}, "a", "b")
		}, reasonMetricName, 3},
		"exemplar without time": {func(b *builder) {
			b.add(writev2.TimeSeries{Samples: one, Exemplars: []writev2.Exemplar{{Value: 1}}}, "__name__", "good")
		}, reasonTimestamp, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeStore{}
			h := testHandler(t, s, func(c *Config) { c.MaxBehind = 24 * time.Hour })
			b := newBuilder().sample(0, 1, "__name__", "good")
			tc.bad(b)
			b.sample(0, 1, "__name__", "z")
			w := post(h, type2, encode(t, b.request()))
			if w.Code != 400 {
				t.Fatalf("status %d, want 400: %s", w.Code, w.Body)
			}
			if !strings.Contains(w.Body.String(), fmt.Sprintf("%d refused: %s", tc.n, tc.reason.text())) {
				t.Errorf("the answer does not name the reason %q: %s", tc.reason.text(), w.Body)
			}
			if w.Body.Len() > 4<<10 {
				t.Errorf("the answer has %d bytes", w.Body.Len())
			}
			rows := s.take()
			if len(rows) < 2 || rows[0] != row(`{__name__="good"}`, 0, 0, 1) || rows[len(rows)-1] != row(`{__name__="z"}`, 0, 0, 1) {
				t.Errorf("the good part is not stored: %q", rows)
			}
			if !strings.HasPrefix(written(w), fmt.Sprintf("%d/0/0", countSamples(h))) {
				t.Errorf("written %s, metrics count %d", written(w), countSamples(h))
			}
		})
	}
}

func TestStoreRefuses(t *testing.T) {
	for _, tc := range []struct {
		err  error
		says string
	}{
		{storage.ErrOutOfOrderSample, "out of order"},
		{fmt.Errorf("wrapped: %w", storage.ErrTooOldSample), "too old"},
		{storage.ErrOutOfBounds, "out of bounds"},
		{storage.NewDuplicateFloatErr(1, 2, 3), "another value"},
	} {
		s := &fakeStore{refuse: func(ls labels.Labels, _ int64) error {
			if ls.Get("__name__") == "bad" {
				return tc.err
			}
			return nil
		}}
		b := newBuilder().sample(0, 1, "__name__", "bad").sample(0, 1, "__name__", "good").sample(1, 1, "__name__", "bad")
		b.add(writev2.TimeSeries{Histograms: []writev2.Histogram{intHistogram2(at(0))}}, "__name__", "bad")
		w := post(testHandler(t, s), type2, encode(t, b.request()))
		if w.Code != 400 || written(w) != "1/0/0" || !strings.Contains(w.Body.String(), "3 refused: ") || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%v: status %d, written %s, body %q", tc.err, w.Code, written(w), w.Body)
		}
		if rows := s.take(); len(rows) != 1 {
			t.Errorf("%v: stored %q", tc.err, rows)
		}
	}
}

// TestStoreFails: everything is rolled back, the sender is told to come back, and what
// it then sends again is stored.
func TestStoreFails(t *testing.T) {
	body := encode(t, newBuilder().sample(0, 1, "__name__", "a").sample(0, 1, "__name__", "b").request())
	for name, fail := range map[string]func(*fakeStore){
		"append": func(s *fakeStore) {
			s.refuse = func(ls labels.Labels, _ int64) error {
				if ls.Get("__name__") == "b" {
					return errDiskFull
				}
				return nil
			}
		},
		"commit": func(s *fakeStore) { s.commitErr = errDiskFull },
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeStore{}
			h := testHandler(t, s)
			fail(s)
			w := post(h, type2, body)
			if w.Code != 503 || w.Header().Get("Retry-After") == "" || written(w) != "0/0/0" {
				t.Errorf("status %d, Retry-After %q, written %s", w.Code, w.Header().Get("Retry-After"), written(w))
			}
			if rows := s.take(); len(rows) > 0 {
				t.Errorf("stored %q", rows)
			}
			s.refuse, s.commitErr = nil, nil
			if w := post(h, type2, body); w.Code != 204 || len(s.take()) != 2 {
				t.Errorf("the second attempt is answered with %d: %s", w.Code, w.Body)
			}
		})
	}
}

func TestExemplarErrors(t *testing.T) {
	s := &fakeStore{exemplar: func(list []exemplar.Exemplar) error {
		if list[0].Value == 9 {
			return storage.ErrNotFound
		}
		return &storage.AppendPartialError{ExemplarErrors: []storage.ExemplarError{
			{Index: 1, Err: storage.ErrOutOfOrderExemplar}, {Index: 1, Err: errors.New("again")},
		}}
	}}
	b := newBuilder()
	b.add(writev2.TimeSeries{
		Samples:   []writev2.Sample{{Timestamp: at(0)}},
		Exemplars: []writev2.Exemplar{{Timestamp: at(1)}, {Timestamp: at(2)}, {Timestamp: at(3)}},
	}, "__name__", "a")
	b.add(writev2.TimeSeries{Exemplars: []writev2.Exemplar{{Timestamp: at(1), Value: 9}}}, "__name__", "alone")
	w := post(testHandler(t, s), type2, encode(t, b.request()))
	if w.Code != 400 || written(w) != "1/0/2" || !strings.Contains(w.Body.String(), "2 refused") {
		t.Errorf("status %d, written %s, body %q", w.Code, written(w), w.Body)
	}
}
