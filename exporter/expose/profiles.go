//go:build !nopprof

package expose

import (
	"fmt"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// maxProfile is the longest a profile may be taken.
const maxProfile = 5 * time.Minute

// profiles adds /debug/pprof, as `go tool pprof` and `go tool trace` ask for it.
// net/http/pprof does the same and more, for 200 KB; these are 260, which builds for
// routers leave out (docs/decisions/0008).
func profiles(mux *http.ServeMux) error {
	mux.HandleFunc("GET /debug/pprof/{$}", func(w http.ResponseWriter, _ *http.Request) {
		text := "profile?seconds=30\ntrace?seconds=1\n"
		for _, p := range pprof.Profiles() {
			text += fmt.Sprintf("%s?debug=1 (%d)\n", p.Name(), p.Count())
		}
		plain(w, http.StatusOK, text)
	})
	mux.HandleFunc("GET /debug/pprof/profile", func(w http.ResponseWriter, r *http.Request) {
		during(w, r, 30, func() error { return pprof.StartCPUProfile(w) }, pprof.StopCPUProfile)
	})
	mux.HandleFunc("GET /debug/pprof/trace", func(w http.ResponseWriter, r *http.Request) {
		during(w, r, 1, func() error { return trace.Start(w) }, trace.Stop)
	})
	mux.HandleFunc("GET /debug/pprof/{name}", func(w http.ResponseWriter, r *http.Request) {
		p := pprof.Lookup(r.PathValue("name"))
		if p == nil {
			plain(w, http.StatusNotFound, "there is no such profile\n")
			return
		}
		debug, _ := strconv.Atoi(r.FormValue("debug"))
		if debug > 0 {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		} else {
			w.Header().Set("Content-Type", "application/octet-stream")
		}
		_ = p.WriteTo(w, debug) // the client is gone
	})
	return nil
}

// during lets something be recorded for as many seconds as the request says, or
// until the client is gone.
func during(w http.ResponseWriter, r *http.Request, seconds float64, start func() error, stop func()) {
	if s := r.FormValue("seconds"); s != "" {
		var err error
		if seconds, err = strconv.ParseFloat(s, 64); err != nil || !(seconds > 0 && seconds <= maxProfile.Seconds()) {
			plain(w, http.StatusBadRequest, fmt.Sprintf("seconds=%q is not a number up to %v\n", s, maxProfile.Seconds()))
			return
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := start(); err != nil { // another one is being taken
		plain(w, http.StatusConflict, err.Error()+"\n")
		return
	}
	defer stop()
	select {
	case <-r.Context().Done():
	case <-time.After(time.Duration(seconds * float64(time.Second))):
	}
}
