package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// Engine evaluates PromQL over all tiers: Prometheus' engine, with every query
// planned and rewritten first. Over any other Queryable than this package's it is
// Prometheus' engine unchanged. It is safe for concurrent use.
type Engine struct {
	inner   *promql.Engine
	subStep func(rangeMillis int64) int64
	// startTimestamps is whether the inner engine uses start timestamps unless a
	// query says otherwise.
	startTimestamps bool
	// rewriteAll rewrites selectors that read raw samples only too, so that tests
	// can compare both ways.
	rewriteAll bool
}

var _ promql.QueryEngine = &Engine{}

// NewInstantQuery implements promql.QueryEngine.
func (e *Engine) NewInstantQuery(ctx context.Context, q storage.Queryable, opts promql.QueryOpts, qs string, ts time.Time) (promql.Query, error) {
	p, ok := e.planned(ctx, q, opts)
	if !ok {
		return e.inner.NewInstantQuery(ctx, q, opts, qs, ts)
	}
	qry, err := e.inner.NewInstantQuery(ctx, p, opts, qs, ts)
	if err != nil {
		return nil, err
	}
	return e.plan(p, qry)
}

// NewRangeQuery implements promql.QueryEngine.
func (e *Engine) NewRangeQuery(ctx context.Context, q storage.Queryable, opts promql.QueryOpts, qs string, start, end time.Time, interval time.Duration) (promql.Query, error) {
	p, ok := e.planned(ctx, q, opts)
	if !ok {
		return e.inner.NewRangeQuery(ctx, q, opts, qs, start, end, interval)
	}
	qry, err := e.inner.NewRangeQuery(ctx, p, opts, qs, start, end, interval)
	if err != nil {
		return nil, err
	}
	return e.plan(p, qry)
}

// planned makes the Queryable of one query over q, where q has tiers.
func (e *Engine) planned(ctx context.Context, q storage.Queryable, opts promql.QueryOpts) (*planned, bool) {
	t, ok := q.(interface{ tiers() *Queryable })
	if !ok {
		return nil, false
	}
	tq := t.tiers()
	p := &planned{q: tq, opts: optionsFrom(ctx), srcs: tq.sources(), startTimestamps: e.startTimestamps}
	if opts != nil && opts.UseStartTimestamps() != nil {
		p.startTimestamps = *opts.UseStartTimestamps()
	}
	return p, true
}

// plan chooses what the selectors of qry read, and rewrites it.
func (e *Engine) plan(p *planned, qry promql.Query) (promql.Query, error) {
	stmt, ok := qry.Statement().(*parser.EvalStmt)
	if !ok {
		qry.Close()
		return nil, fmt.Errorf("plan the query: unexpected statement %T", qry.Statement())
	}
	if err := refuseReserved(stmt.Expr); err != nil {
		qry.Close()
		return nil, err
	}
	if err := e.refuseSteps(stmt); err != nil {
		qry.Close()
		return nil, err
	}
	e.rewrite(p, stmt)
	return &query{Query: qry, p: p}, nil
}

// damaged is a Raw that can say which of its blocks an error is about; nil: none.
type damaged interface {
	Damaged(ctx context.Context, err error) error
}

// query is a planned query.
type query struct {
	promql.Query
	p *planned
}

// Exec adds to the engine's answer what the plan has to say about it.
func (q *query) Exec(ctx context.Context) *promql.Result {
	res := q.Query.Exec(ctx)
	var (
		late    promql.ErrQueryTimeout
		tooMany promql.ErrTooManySamples
	)
	// A store that stopped because the query had to is no failure of the store.
	switch {
	case res.Err == nil:
		if size := sizeOf(res.Value); size > q.p.q.maxBytes {
			res.Err = errors.New(tooLarge(size, q.p.q.maxBytes))
			res.Value = nil
		}
	case errors.Is(res.Err, context.Canceled):
		res.Err = promql.ErrQueryCanceled("expression evaluation")
	case errors.Is(res.Err, context.DeadlineExceeded), errors.As(res.Err, &late):
		res.Err = promql.ErrQueryTimeout("expression evaluation: ask for fewer series, less time or a longer step, or raise --query.timeout")
	case errors.As(res.Err, &tooMany):
		res.Err = fmt.Errorf("%w: ask for fewer series, less time or a longer step, or raise --query.max-samples (now %d)", res.Err, q.p.q.maxSamples)
	default:
		if d, ok := q.p.q.raw.(damaged); ok {
			if err := d.Damaged(ctx, res.Err); err != nil {
				res.Err = err
			}
		}
	}
	res.Warnings.Merge(q.p.annotations())
	return res
}

// sizeOf is about how many bytes a value takes as JSON.
func sizeOf(v parser.Value) (n int64) {
	const float, hist, series = 32, 512, 16
	switch v := v.(type) {
	case promql.Matrix:
		for _, s := range v {
			n += series + int64(s.Metric.ByteSize()) + float*int64(len(s.Floats)) + hist*int64(len(s.Histograms))
		}
	case promql.Vector:
		for _, s := range v {
			if n += series + int64(s.Metric.ByteSize()) + float; s.H != nil {
				n += hist
			}
		}
	}
	return n
}

// slots bounds how many queries run at once. It implements promql.QueryTracker.
type slots chan struct{}

func (s slots) GetMaxConcurrent() int { return cap(s) }
func (s slots) Delete(int)            { <-s }
func (s slots) Close() error          { return nil }

func (s slots) Insert(ctx context.Context, _ string) (int, error) {
	select {
	case s <- struct{}{}:
		return 0, nil
	case <-ctx.Done():
	}
	// The engine's own words for either, which the API tells apart by type.
	const where = "query queue"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return 0, promql.ErrQueryTimeout(where)
	}
	return 0, promql.ErrQueryCanceled(where)
}
