package receive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"sync"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// fakeStore keeps what is committed, in a form that tests can compare.
type fakeStore struct {
	mu        sync.Mutex
	rows      []string
	open      int
	rollbacks int
	refs      map[string]storage.SeriesRef

	// refuse, when set, is asked before each append.
	refuse    func(ls labels.Labels, t int64) error
	commitErr error
	exemplar  func([]exemplar.Exemplar) error
}

func (s *fakeStore) AppenderV2(context.Context) storage.AppenderV2 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	return &fakeAppender{store: s}
}

// take returns what is committed since the last call, sorted.
func (s *fakeStore) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.rows
	s.rows = nil
	sort.Strings(rows)
	return rows
}

type fakeAppender struct {
	store *fakeStore
	rows  []string
}

func (a *fakeAppender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	if a.store.refuse != nil {
		if err := a.store.refuse(ls, t); err != nil {
			return 0, err
		}
	}
	if a.store.refs == nil {
		a.store.refs = map[string]storage.SeriesRef{}
	}
	key := ls.String()
	own, ok := a.store.refs[key]
	if !ok {
		own = storage.SeriesRef(len(a.store.refs) + 1)
		a.store.refs[key] = own
	}
	if ref != 0 && ref != own {
		return 0, fmt.Errorf("BUG: reference %d given for %s, which has %d", ref, key, own)
	}
	value := fmt.Sprintf("%x", math.Float64bits(v))
	switch {
	case h != nil:
		value = h.String()
	case fh != nil:
		value = "float " + fh.String()
	}
	a.rows = append(a.rows, fmt.Sprintf("%s %d/%d %s", key, st, t, value))
	return own, nil
}

func (a *fakeAppender) AppendExemplars(ref storage.SeriesRef, ls labels.Labels, list []exemplar.Exemplar) (storage.SeriesRef, error) {
	if a.store.exemplar != nil {
		if err := a.store.exemplar(list); err != nil {
			return 0, err
		}
	}
	for _, e := range list {
		a.rows = append(a.rows, fmt.Sprintf("%s exemplar %s %v %d", ls, e.Labels, e.Value, e.Ts))
	}
	return ref, nil
}

func (a *fakeAppender) Commit() error {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	a.store.open--
	if a.store.commitErr != nil {
		return a.store.commitErr
	}
	a.store.rows = append(a.store.rows, a.rows...)
	return nil
}

func (a *fakeAppender) Rollback() error {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	a.store.open--
	a.store.rollbacks++
	return nil
}

// nullStore takes everything and keeps nothing, without allocating.
type nullStore struct{ nullAppender }

type nullAppender struct {
	samples int
	refs    storage.SeriesRef
}

func (s *nullStore) AppenderV2(context.Context) storage.AppenderV2 { return &s.nullAppender }

func (a *nullAppender) Append(ref storage.SeriesRef, _ labels.Labels, _, _ int64, _ float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	a.samples++
	if ref == 0 {
		a.refs++
		ref = a.refs
	}
	return ref, nil
}

func (a *nullAppender) Commit() error   { return nil }
func (a *nullAppender) Rollback() error { return nil }

var errDiskFull = errors.New("write wal: no space left on device")
