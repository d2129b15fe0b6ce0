package query

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// edge reads the parameters about tiers, keeps account of the client, notes in a header
// which tiers served the answer, and keeps a panic within its request.
func (a *API) edge(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.rescue(w, r)
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
		ew := &edgeWriter{ResponseWriter: w, names: func() string { return opts.names(a.queryable) }, limit: a.c.MaxResponseBytes}
		ew.tooLarge = func(n int64) {
			a.fail(w, r, http.StatusUnprocessableEntity, "execution", tooLarge(n, a.c.MaxResponseBytes))
		}
		name := a.clients.name(r)
		if reads(r.URL.Path) {
			cl, err := a.enter(w, r, name)
			if err != nil {
				return
			}
			begin := time.Now()
			defer func() { a.clients.leave(cl, opts.usage(time.Since(begin), ew.wrote)) }()
		}
		begin := time.Now()
		defer func() { a.logSlow(r, opts, name, time.Since(begin)) }()
		next.ServeHTTP(ew, r.WithContext(context.WithValue(r.Context(), optionsKey{}, opts)))
		if ew.finish(); ew.cut {
			// The client must not take the part that it has for the whole.
			panic(http.ErrAbortHandler)
		}
	})
}

// rescue ends a request that panicked.
func (a *API) rescue(w http.ResponseWriter, r *http.Request) {
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
}

// reads reports whether requests of a path read samples or series, and so are part of
// what a client may use.
func reads(path string) bool {
	switch p, _ := strings.CutPrefix(path, "/api/v1/"); p {
	case "query", "query_range", "query_exemplars", "series", "labels", "read", "/federate":
		return true
	default:
		return strings.HasPrefix(p, "label/")
	}
}

// enter lets a request in, or answers why not.
func (a *API) enter(w http.ResponseWriter, r *http.Request, name string) (*client, error) {
	ctx, cancel := context.WithTimeout(r.Context(), a.c.Timeout)
	defer cancel()
	cl, err := a.clients.enter(ctx, name)
	if err != nil {
		code, kind, wait := refusal(err)
		if wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
		}
		a.fail(w, r, code, kind, err.Error())
	}
	return cl, err
}

// logged is how much of an expression a log line holds.
const logged = 1000

// logSlow logs a request that took long, by what it asked for: nothing of its headers
// but its client's name, and of its parameters those that queries have.
func (a *API) logSlow(r *http.Request, opts *options, client string, took time.Duration) {
	if a.c.LogSlowerThan <= 0 || took < a.c.LogSlowerThan {
		return
	}
	args := []any{"path", r.URL.Path, "took", took.Round(time.Millisecond), "tiers", opts.names(a.queryable)}
	for _, p := range []string{"query", "match[]", "start", "end", "step", "time", "timeout", "limit"} {
		if v := strings.Join(r.Form[p], " "); v != "" {
			args = append(args, strings.TrimSuffix(p, "[]"), v[:min(len(v), logged)])
		}
	}
	args = append(args, "client", client, "series", opts.series.Load(), "samples", opts.samples.Load())
	a.slow.Inc()
	a.c.Logger.Warn("slow query", args...)
}

// tooLarge says that an answer of n bytes is too large, and what to do.
func tooLarge(n, limit int64) string {
	return fmt.Sprintf("the answer would take about %d bytes: ask for fewer series, less time or a longer step, or raise --query.max-response-bytes (now %d)", n, limit)
}

// edgeWriter sets the header that names the tiers once they are known, and bounds the
// answer. The status goes out with the first bytes, so that an answer which is too
// large from its first piece on can be refused instead.
type edgeWriter struct {
	http.ResponseWriter
	names    func() string
	limit    int64
	tooLarge func(n int64)

	code  int
	sent  bool // the header is out
	over  bool // the answer was too large, and nothing more is written
	cut   bool // after a part of it had been
	wrote int64
}

// WriteHeader keeps the status until the first bytes.
func (w *edgeWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
}

// finish sends the status of an answer without a body.
func (w *edgeWriter) finish() {
	if w.sent || w.over {
		return
	}
	w.sent = true
	h := w.Header()
	if n := w.names(); n != "" {
		h.Set(tiersHeader, n)
	}
	if exposed := h.Get("Access-Control-Expose-Headers"); exposed != "" {
		h.Set("Access-Control-Expose-Headers", exposed+", "+tiersHeader)
	}
	// Each layer that might compress has added its own.
	slices.Sort(h["Vary"])
	h["Vary"] = slices.Compact(h["Vary"])
	if w.code == 0 {
		w.code = http.StatusOK
	}
	w.ResponseWriter.WriteHeader(w.code)
}

func (w *edgeWriter) Write(b []byte) (int, error) {
	if w.limit > 0 && w.wrote+int64(len(b)) > w.limit {
		if !w.over {
			if w.over, w.cut = true, w.sent; !w.sent {
				w.Header().Del("Content-Length")
				w.tooLarge(int64(len(b)))
			}
		}
		return 0, errTooLarge
	}
	w.finish()
	w.wrote += int64(len(b))
	return w.ResponseWriter.Write(b)
}

// Flush is needed by streamed remote read.
func (w *edgeWriter) Flush() {
	w.finish()
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap is for http.ResponseController.
func (w *edgeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
