package backfill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Series is a series with samples in the order of time. The slices are the receiver's.
type Series struct {
	Labels labels.Labels
	T      []int64 // Unix milliseconds
	V      []float64
}

// Sink takes samples. Both may be called again with the same samples.
type Sink interface {
	// Horizon is the time from which on Push takes samples, an edge of an hour; newest
	// is the newest there is to come.
	Horizon(ctx context.Context, newest int64) (int64, error)
	// Push takes recent samples; they come in the order of time, a stretch after the
	// other. Samples that it refuses are no error.
	Push(ctx context.Context, list []Series) (Pushed, error)
	// Fold takes all the samples that series have in a stretch of hours before the
	// horizon.
	Fold(ctx context.Context, list []Series) (Folded, error)
}

// Pushed says what became of recent samples.
type Pushed struct {
	Stored  int64
	Refused int64
	Why     string // those were refused, "" where none was
}

// Folded says what became of old samples.
type Folded struct {
	Samples int64 `json:"samples"`
	Expired int64 `json:"expired"` // older than all that is kept
	Recent  int64 `json:"recent"`  // refused: their windows are not in blocks yet, and they are not there raw
	Fine    int   `json:"fine"`    // five-minute buckets
	Coarse  int   `json:"coarse"`  // hours, where five-minute buckets are not kept any more
}

// Source is where samples come from.
type Source interface {
	storage.Queryable
	Times() (from, to int64)
}

// Config says how.
type Config struct {
	Batch    int           // samples handed on at a time, about
	Rate     float64       // samples a second at most; 0 for as many as go
	Progress func(float64) // from 0 to 1
}

// Result is what was done.
type Result struct {
	Folded
	Pushed           // Why is that of the first refusal
	Histograms int64 // native ones, which were left out
}

// steps of time that are handed on at once: raw samples in the order of time, old ones
// by the day, as hourly blocks hold them.
const (
	rawStep = int64(time.Hour / time.Millisecond)
	oldStep = 24 * rawStep
)

// ErrNothing says that there are no samples.
var ErrNothing = errors.New("there are no samples")

// Run moves all samples: recent ones first, for the adapter keeps time by its newest
// sample.
func Run(ctx context.Context, c Config, src Source, sink Sink) (res Result, err error) {
	from, to := src.Times()
	if from > to {
		return res, ErrNothing
	}
	horizon, err := sink.Horizon(ctx, to)
	if err != nil {
		return res, err
	}
	r := &runner{Config: c, src: src, began: time.Now(), res: &res, span: to + 1 - from}
	for at := max(horizon, floor(from, rawStep)); at <= to; at += rawStep {
		err := r.step(ctx, at, at+rawStep, func(list []Series, _ int64) error {
			p, err := sink.Push(ctx, list)
			res.Stored += p.Stored
			res.Refused += p.Refused
			if res.Why == "" {
				res.Why = p.Why
			}
			return err
		})
		if err != nil {
			return res, err
		}
	}
	for at := floor(from, oldStep); at <= to && at < horizon; at += oldStep {
		err := r.step(ctx, at, min(at+oldStep, horizon), func(list []Series, _ int64) error {
			f, err := sink.Fold(ctx, list)
			res.Samples += f.Samples
			res.Expired += f.Expired
			res.Recent += f.Recent
			res.Fine += f.Fine
			res.Coarse += f.Coarse
			return err
		})
		if err != nil {
			return res, err
		}
	}
	return res, nil
}

// floor is the last multiple of step not after t.
func floor(t, step int64) int64 { return t - ((t%step)+step)%step }

// runner is a Run under way.
type runner struct {
	Config
	src        Source
	began      time.Time
	res        *Result
	sent       int64 // samples
	span, done int64 // ms
}

// step hands on the samples of [from, to) in batches of whole series.
func (r *runner) step(ctx context.Context, from, to int64, send func([]Series, int64) error) (err error) {
	q, err := r.src.Querier(from, to-1)
	if err != nil {
		return fmt.Errorf("read samples: %w", err)
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	set := q.Select(ctx, true, &storage.SelectHints{Start: from, End: to - 1}, labels.MustNewMatcher(labels.MatchEqual, "", ""))
	var (
		batch []Series
		n     int64
		it    chunkenc.Iterator
	)
	flush := func() error {
		if n == 0 {
			return nil
		}
		if err := send(batch, n); err != nil {
			return err
		}
		r.sent += n
		batch, n = nil, 0
		return r.throttle(ctx)
	}
	for set.Next() {
		s := Series{Labels: set.At().Labels().Copy()}
		if it, err = r.read(set.At().Iterator(it), from, to, &s); err != nil {
			return fmt.Errorf("read %s: %w", s.Labels, err)
		}
		if len(s.T) == 0 {
			continue
		}
		batch, n = append(batch, s), n+int64(len(s.T))
		if n >= int64(r.Batch) {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := set.Err(); err != nil {
		return fmt.Errorf("read samples: %w", err)
	}
	if err := flush(); err != nil {
		return err
	}
	r.done += to - from
	r.Progress(min(1, float64(r.done)/float64(r.span)))
	return ctx.Err()
}

func (r *runner) read(it chunkenc.Iterator, from, to int64, s *Series) (chunkenc.Iterator, error) {
	for {
		switch it.Next() {
		case chunkenc.ValNone:
			s.T, s.V = slices.Clip(s.T), slices.Clip(s.V)
			return it, it.Err()
		case chunkenc.ValFloat:
			if t, v := it.At(); t >= from && t < to {
				s.T, s.V = append(s.T, t), append(s.V, v)
			}
		default:
			r.res.Histograms++
		}
	}
}

// throttle waits as long as it was too fast.
func (r *runner) throttle(ctx context.Context) error {
	if r.Rate <= 0 {
		return ctx.Err()
	}
	wait := time.Duration(float64(r.sent)/r.Rate*float64(time.Second)) - time.Since(r.began)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}
