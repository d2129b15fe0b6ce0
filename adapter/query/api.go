package query

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/util/httputil"
)

var (
	errNoScrapePools = errors.New("this server does not scrape")
	errTooLarge      = errors.New("the answer is too large")
)

// tiersHeader names the tiers that served an answer, finest first.
const tiersHeader = "X-Ticktier-Tiers"

// API is the HTTP query API. Make one with New; it is safe for concurrent use.
type API struct {
	c         Config
	engine    *Engine
	queryable *Queryable
	handler   http.Handler
	clients   *clients
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
	papi := newPrometheusAPI(c, a.engine, a.queryable, p, func(f http.HandlerFunc) http.HandlerFunc { return f })
	papi.ClearCodecs()
	papi.InstallCodec(codec{})
	papi.Register(r)

	mux := http.NewServeMux()
	mux.Handle("/api/v1/", http.StripPrefix("/api/v1", r))
	mux.Handle("GET /api/v1/metadata", http.HandlerFunc(a.metadata))
	mux.Handle("GET /federate", http.HandlerFunc(a.federate))
	if c.TSDB == nil {
		for _, path := range []string{"/status/tsdb", "/status/tsdb/blocks", "/status/walreplay"} {
			mux.HandleFunc("GET /api/v1"+path, a.unavailable)
		}
	}
	a.clients = newClients(c.Clients, time.Now, c.Registerer)
	var err error
	a.handler, err = compressed(a.edge(mux))
	return a, err
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
