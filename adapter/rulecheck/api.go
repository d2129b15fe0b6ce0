package rulecheck

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// API asks a Prometheus HTTP API.
type API struct {
	api        v1.API
	start, end time.Time
}

// looks is at how many times an expression is evaluated when it has no result now.
const looks = 12

// NewAPI returns an Asker over the API at url that looks back for the range before
// end. Nil means the default transport.
func NewAPI(url string, end time.Time, back time.Duration, rt http.RoundTripper) (*API, error) {
	c, err := api.NewClient(api.Config{Address: url, RoundTripper: rt})
	if err != nil {
		return nil, fmt.Errorf("address of the adapter: %w", err)
	}
	return &API{api: v1.NewAPI(c), start: end.Add(-back), end: end}, nil
}

// Series implements Asker.
func (a *API) Series(ctx context.Context, selector string) (bool, error) {
	found, _, _, err := a.api.Series(ctx, []string{selector}, a.start, a.end, v1.WithLimit(1))
	if err != nil {
		return false, fmt.Errorf("ask for series of %s: %w", selector, err)
	}
	return len(found) > 0, nil
}

// Result implements Asker: at the end of the range, then over all of it.
func (a *API) Result(ctx context.Context, expr string) (bool, error) {
	v, _, _, err := a.api.Query(ctx, expr, a.end)
	if err == nil && empty(v) {
		v, _, _, err = a.api.QueryRange(ctx, expr, v1.Range{Start: a.start, End: a.end, Step: a.end.Sub(a.start) / looks})
	}
	if err != nil {
		return false, fmt.Errorf("ask for %s: %w", expr, err)
	}
	return !empty(v), nil
}

func empty(v model.Value) bool {
	switch v := v.(type) {
	case model.Vector:
		return len(v) == 0
	case model.Matrix:
		return len(v) == 0
	}
	return false // a scalar or a string is always there
}
