package query

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// metadata answers /api/v1/metadata, which Prometheus' own API can take from scrape
// targets only.
func (a *API) metadata(w http.ResponseWriter, r *http.Request) {
	limit, err := countParam(r, "limit")
	perMetric, err2 := countParam(r, "limit_per_metric")
	if err == nil {
		err = err2
	}
	if err != nil {
		a.fail(w, r, http.StatusBadRequest, "bad_data", err.Error())
		return
	}
	known := a.c.Metadata(r.Form.Get("metric"))
	out := map[string][]Metadata{}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if limit >= 0 && len(out) >= limit {
			break
		}
		list := known[name]
		if perMetric > 0 && len(list) > perMetric {
			list = list[:perMetric]
		}
		out[name] = list
	}
	a.write(w, r, http.StatusOK, answer{Status: "success", Data: out})
}

// countParam is a number parameter, -1 when it is not given.
func countParam(r *http.Request, name string) (int, error) {
	v := r.Form.Get(name)
	if v == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0, fmt.Errorf("%s must be a number", name)
	}
	return n, nil
}
