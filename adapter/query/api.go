package query

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/util/httputil"
)

var errNoScrapePools = errors.New("this server does not scrape")

// tiersHeader names the tiers that served an answer, finest first.
const tiersHeader = "X-Ticktier-Tiers"

// API is the HTTP query API. Make one with New; it is safe for concurrent use.
type API struct {
	c         Config
	engine    *Engine
	queryable *Queryable
	handler   http.Handler
	panics    prometheus.Counter
	slow      prometheus.Counter
}

// New makes the API. It reads nothing until it is asked, and keeps no goroutine.
func New(c Config) (*API, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	a := &API{c: c, queryable: newQueryable(c)}
	a.panics = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ticktier_adapter_query_panics_total", Help: "Requests of the query API that panicked.",
	})
	a.slow = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ticktier_adapter_query_slow_total", Help: "Requests of the query API that took longer than --query.log-slower-than.",
	})
	if c.Registerer != nil {
		c.Registerer.MustRegister(a.panics, a.slow)
	}
	p := newParser()
	a.engine = newEngine(c, p)
	r := route.New()
	newPrometheusAPI(c, a.engine, a.queryable, p, func(f http.HandlerFunc) http.HandlerFunc { return f }).Register(r)

	mux := http.NewServeMux()
	mux.Handle("/api/v1/", http.StripPrefix("/api/v1", r))
	mux.Handle("GET /api/v1/metadata", httputil.CompressionHandler{Handler: http.HandlerFunc(a.metadata)})
	mux.Handle("GET /federate", httputil.CompressionHandler{Handler: http.HandlerFunc(a.federate)})
	if c.TSDB == nil {
		for _, path := range []string{"/status/tsdb", "/status/tsdb/blocks", "/status/walreplay"} {
			mux.HandleFunc("GET /api/v1"+path, a.unavailable)
		}
	}
	a.handler = a.edge(mux)
	return a, nil
}

// Handler serves /api/v1/ and /federate.
func (a *API) Handler() http.Handler { return a.handler }

// Engine evaluates PromQL over Queryable as the API does.
func (a *API) Engine() *Engine { return a.engine }

// NewEngine makes another engine over the same tiers, with places of its own for so
// many queries at a time: who uses it never waits for those of the API. It has no
// metrics.
func (a *API) NewEngine(concurrency int) *Engine {
	c := a.c
	c.MaxConcurrency, c.Registerer = concurrency, nil
	return newEngine(c, newParser())
}

// Queryable is all tiers as one storage.
func (a *API) Queryable() *Queryable { return a.queryable }

// edge reads the parameters about tiers, notes in a header which tiers served the
// answer, and keeps a panic within its request.
func (a *API) edge(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			a.panics.Inc()
			a.c.Logger.Error("query request panicked", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			a.fail(w, r, http.StatusInternalServerError, "internal", "internal error")
		}()
		if err := r.ParseForm(); err != nil {
			a.fail(w, r, http.StatusBadRequest, "bad_data", "error parsing form values: "+err.Error())
			return
		}
		if err := refuseText(r.Form); err != nil {
			a.fail(w, r, http.StatusBadRequest, "bad_data", err.Error())
			return
		}
		opts, err := parseOptions(r, a.queryable)
		if err != nil {
			a.fail(w, r, http.StatusBadRequest, "bad_data", err.Error())
			return
		}
		begin := time.Now()
		defer func() { a.logSlow(r, opts, time.Since(begin)) }()
		tw := &tierWriter{ResponseWriter: w, names: func() string { return opts.names(a.queryable) }}
		next.ServeHTTP(tw, r.WithContext(context.WithValue(r.Context(), optionsKey{}, opts)))
	})
}

// logged is how much of an expression a log line holds.
const logged = 1000

// logSlow logs a request that took long, by what it asked for: nothing of its headers,
// and of its parameters those that queries have.
func (a *API) logSlow(r *http.Request, opts *options, took time.Duration) {
	if a.c.LogSlowerThan <= 0 || took < a.c.LogSlowerThan {
		return
	}
	args := []any{"path", r.URL.Path, "took", took.Round(time.Millisecond), "tiers", opts.names(a.queryable)}
	for _, p := range []string{"query", "match[]", "start", "end", "step", "time", "timeout", "limit"} {
		if v := strings.Join(r.Form[p], " "); v != "" {
			args = append(args, strings.TrimSuffix(p, "[]"), v[:min(len(v), logged)])
		}
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		args = append(args, "client", host)
	}
	a.slow.Inc()
	a.c.Logger.Warn("slow query", args...)
}

// tierWriter sets the header that names the tiers, once they are known.
type tierWriter struct {
	http.ResponseWriter
	names func() string
	wrote bool
}

func (w *tierWriter) WriteHeader(code int) {
	if !w.wrote {
		w.wrote = true
		if n := w.names(); n != "" {
			w.Header().Set(tiersHeader, n)
			if w.Header().Get("Access-Control-Expose-Headers") != "" {
				w.Header().Add("Access-Control-Expose-Headers", tiersHeader)
			}
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *tierWriter) Write(b []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Flush is needed by streamed remote read.
func (w *tierWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap is for http.ResponseController.
func (w *tierWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answer is the envelope of the Prometheus HTTP API.
type answer struct {
	Status    string `json:"status"`
	Data      any    `json:"data,omitempty"`
	ErrorType string `json:"errorType,omitempty"`
	Error     string `json:"error,omitempty"`
}

func (a *API) fail(w http.ResponseWriter, r *http.Request, code int, kind, msg string) {
	a.write(w, r, code, answer{Status: "error", ErrorType: kind, Error: msg})
}

func (a *API) write(w http.ResponseWriter, r *http.Request, code int, v answer) {
	httputil.SetCORS(w, a.c.cors, r)
	body, err := json.Marshal(v)
	if err != nil {
		a.c.Logger.Error("encoding a response failed", "path", r.URL.Path, "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if _, err := w.Write(body); err != nil {
		a.c.Logger.Debug("client went before its response", "path", r.URL.Path, "err", err)
	}
}

func (a *API) unavailable(w http.ResponseWriter, r *http.Request) {
	a.fail(w, r, http.StatusServiceUnavailable, "unavailable", strings.TrimPrefix(r.URL.Path, "/api/v1/")+" is not available here")
}
