package query

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
)

// optionsKey is the context key of *options.
type optionsKey struct{}

// options are what a request says about tiers, and where its answer notes which
// tiers it came from.
type options struct {
	forced int   // the only source to read, -1 for any
	maxRes int64 // the coarsest resolution to read, -1 for any; 0 is raw

	explain *explanation // nil unless asked for

	series, samples atomic.Int64 // that were read

	mu   sync.Mutex
	used []int
}

// usage is what a request used, which took so long and whose answer has so many bytes.
func (o *options) usage(took time.Duration, bytes int64) usage {
	return usage{useSamples: float64(o.samples.Load()), useSeries: float64(o.series.Load()), useTime: took.Seconds(), useBytes: float64(bytes)}
}

// optionsFrom are the options that ctx carries, or those of a request without any.
func optionsFrom(ctx context.Context) *options {
	if o, ok := ctx.Value(optionsKey{}).(*options); ok {
		return o
	}
	return &options{forced: -1, maxRes: -1}
}

// use notes that a source served the request. Safe for concurrent use.
func (o *options) use(src int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i, ok := slices.BinarySearch(o.used, src); !ok {
		o.used = slices.Insert(o.used, i, src)
	}
}

// names lists the sources that served the request, finest first.
func (o *options) names(q *Queryable) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, src := range o.used {
		out = append(out, q.names[src])
	}
	return strings.Join(out, ",")
}

// allowed reports whether the request lets src be read.
func (o *options) allowed(srcs []source) func(src int) bool {
	return func(src int) bool {
		switch {
		case o.forced >= 0:
			return src == o.forced
		case o.maxRes >= 0 && src != rawSource:
			return srcs[src].res <= o.maxRes
		}
		return true
	}
}

// parseOptions reads the parameters tier and max_source_resolution of a request,
// whose form is parsed already.
func parseOptions(r *http.Request, q *Queryable) (*options, error) {
	o := &options{forced: -1, maxRes: -1}
	if v := r.Form.Get("tier"); v != "" {
		o.forced = slices.Index(q.names, v)
		if o.forced < 0 {
			return nil, fmt.Errorf("invalid parameter \"tier\": unknown tier %q; known are %s", v, strings.Join(q.names, ", "))
		}
	}
	if v := r.Form.Get("explain"); v != "" {
		on, err := strconv.ParseBool(v)
		if err != nil {
			return nil, fmt.Errorf("invalid parameter \"explain\": %q is not 1 or 0", v)
		}
		if on {
			o.explain = &explanation{}
		}
	}
	switch v := r.Form.Get("max_source_resolution"); v {
	case "", "auto":
	case "raw", "0":
		o.maxRes = 0
	default:
		d, err := model.ParseDuration(v)
		if err != nil {
			return nil, fmt.Errorf("invalid parameter \"max_source_resolution\": %w", err)
		}
		o.maxRes = int64(time.Duration(d) / time.Millisecond)
		if o.maxRes != 0 && !slices.ContainsFunc(q.folded, func(t Tier) bool { return t.Resolution() == o.maxRes }) {
			return nil, fmt.Errorf("invalid parameter \"max_source_resolution\": no tier has the resolution %q; there are 0s, %s and auto", v, strings.Join(q.names[1:], ", "))
		}
	}
	return o, nil
}
