package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// count is a name and how often it is there, as in Prometheus' TSDB status.
type count struct {
	Name  string `json:"name"`
	Value int    `json:"value"`
}

// cardinality is what a device's series are made of. Lists hold the largest first.
type cardinality struct {
	Instance string    `json:"instance"`
	Since    time.Time `json:"since"`
	Series   int       `json:"series"`
	// MaxSeries is the bound, 0 for none.
	MaxSeries int     `json:"maxSeries"`
	Metrics   []count `json:"seriesCountByMetricName"`
	Labels    []count `json:"labelValueCountByLabelName"`
	Pairs     []count `json:"seriesCountByLabelValuePair"`
}

const (
	// cardinalityBack is how far back series are looked for.
	cardinalityBack = 2 * time.Hour
	// maxCardinality bounds what one request looks at.
	maxCardinality = 2_000_000
)

var errManySeries = errors.New("the device has too many series to count them")

// serveCardinality answers GET /api/v1/devices/{id}/cardinality?limit=N: the raw series
// of the last two hours by metric and by label.
func (a *adapter) serveCardinality(maxSeries int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		limit := 10
		if s := r.URL.Query().Get("limit"); s != "" {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 || n > 10_000 {
				answerError(w, http.StatusBadRequest, fmt.Errorf("limit %q is not between 1 and 10000", s))
				return
			}
			limit = n
		}
		now := time.Now()
		c, err := countSeries(r.Context(), a.raw, r.PathValue("id"), now.Add(-cardinalityBack), now.Add(cardinalityBack), limit)
		switch {
		case errors.Is(err, errManySeries):
			answerError(w, http.StatusUnprocessableEntity, err)
		case err != nil:
			answerError(w, http.StatusInternalServerError, err)
		case c.Series == 0:
			answerError(w, http.StatusNotFound, errors.New("no series of that instance came in the last two hours"))
		default:
			c.MaxSeries = maxSeries
			answerJSON(w, c)
		}
	}
}

// countSeries counts the series of an instance.
func countSeries(ctx context.Context, from storage.Queryable, instance string, start, end time.Time, limit int) (c cardinality, err error) {
	m, err := labels.NewMatcher(labels.MatchEqual, "instance", instance)
	if err != nil {
		return c, err
	}
	q, err := from.Querier(start.UnixMilli(), end.UnixMilli())
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	values := map[string]map[string]int{}
	set := q.Select(ctx, false, &storage.SelectHints{Start: start.UnixMilli(), End: end.UnixMilli(), Func: "series"}, m)
	for set.Next() {
		if c.Series++; c.Series > maxCardinality {
			return c, errManySeries
		}
		set.At().Labels().Range(func(l labels.Label) {
			if values[l.Name] == nil {
				values[l.Name] = map[string]int{}
			}
			values[l.Name][l.Value]++
		})
	}
	c.Instance, c.Since = instance, start.UTC()
	for name, of := range values {
		c.Labels = append(c.Labels, count{name, len(of)})
		for value, n := range of {
			if name == model.MetricNameLabel {
				c.Metrics = append(c.Metrics, count{value, n})
			} else {
				c.Pairs = append(c.Pairs, count{name + "=" + value, n})
			}
		}
	}
	c.Labels, c.Metrics, c.Pairs = largest(c.Labels, limit), largest(c.Metrics, limit), largest(c.Pairs, limit)
	return c, set.Err()
}

func largest(list []count, limit int) []count {
	slices.SortFunc(list, func(a, b count) int { return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Name, b.Name)) })
	return list[:min(len(list), limit)]
}
