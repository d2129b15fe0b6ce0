package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// ErrTorn says that a write to a log of the TSDB failed, with a full disk for
// instance. Half a record is in the log then, and what is written behind it would
// be cut off at the next start: nothing more is taken until the store was closed
// and opened again, which mends the log.
var ErrTorn = errors.New("the log of raw samples has to be opened again after a failed write")

// torn is the state after a failed write.
type torn struct {
	once sync.Once
	ch   chan struct{} // closed when torn
	mu   sync.Mutex
	err  error
	// commits is held for reading by a commit, and by who needs that none is under way.
	commits sync.RWMutex

	// The TSDB returns an error of its write-ahead log, but only counts those of its
	// log of late samples.
	failures []prometheus.Collector
}

// tear refuses everything from here on.
func (t *torn) tear(err error) {
	t.once.Do(func() {
		t.mu.Lock()
		t.err = err
		t.mu.Unlock()
		close(t.ch)
	})
}

// Torn is closed when a write to a log failed; Cause says why.
func (r *Raw) Torn() <-chan struct{} { return r.torn.ch }

// Cause is why the store takes nothing more, nil where it does.
func (r *Raw) Cause() error {
	r.torn.mu.Lock()
	defer r.torn.mu.Unlock()
	return r.torn.err
}

// Refuse has the store take nothing more and write no blocks: what it is to write to is
// gone or full.
func (r *Raw) Refuse(why error) {
	r.torn.tear(why)
	r.db.DisableCompactions()
}

// Refuses reports whether the store takes nothing more.
func (r *Raw) Refuses() bool { return r.torn.isTorn() }

func (t *torn) isTorn() bool {
	select {
	case <-t.ch:
		return true
	default:
		return false
	}
}

// failed is how many writes to the TSDB's logs have failed.
func (t *torn) failed() (n float64) {
	ch := make(chan prometheus.Metric, 1)
	for _, c := range t.failures {
		c.Collect(ch)
		var m dto.Metric
		if (<-ch).Write(&m) == nil {
			n += m.GetCounter().GetValue()
		}
	}
	return n
}

// logWatch is a Registerer that notes the TSDB's counters of failed writes.
type logWatch struct {
	prometheus.Registerer
	t *torn
}

// note looks at a collector's descriptions: the TSDB wraps its counters to give
// them a prefix.
func (w logWatch) note(c prometheus.Collector) {
	ch := make(chan *prometheus.Desc, 64)
	go func() { c.Describe(ch); close(ch) }()
	found, n := false, 0
	for d := range ch {
		n++
		found = found || strings.Contains(d.String(), `_writes_failed_total"`)
	}
	if found && n == 1 {
		w.t.failures = append(w.t.failures, c)
	}
}

func (w logWatch) Register(c prometheus.Collector) error {
	w.note(c)
	return w.Registerer.Register(c)
}

func (w logWatch) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		w.note(c)
	}
	w.Registerer.MustRegister(cs...)
}

// tornAppender takes nothing.
type tornAppender struct{ err error }

var _ storage.ExemplarAppenderV2 = tornAppender{}

func (a tornAppender) Append(storage.SeriesRef, labels.Labels, int64, int64, float64, *histogram.Histogram, *histogram.FloatHistogram, storage.AppendV2Options) (storage.SeriesRef, error) {
	return 0, a.error()
}

func (a tornAppender) AppendExemplars(storage.SeriesRef, labels.Labels, []exemplar.Exemplar) (storage.SeriesRef, error) {
	return 0, a.error()
}

func (a tornAppender) Commit() error   { return a.error() }
func (a tornAppender) Rollback() error { return nil }

func (a tornAppender) error() error { return fmt.Errorf("%w: %w", ErrTorn, a.err) }
