package expose

import (
	"errors"
	"io"
	"net/http"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

// Latest gives the newest tick; *ring.Ring is one.
type Latest interface {
	// Latest copies the newest tick into t and reuses its slices. It returns
	// false while there is none.
	Latest(t *frame.Tick) bool
}

// Config is what a Handler needs.
type Config struct {
	Latest Latest
	Schema *collectors.Schema
	// Bursts adds histograms of what ticks did between scrapes; it may be nil.
	Bursts Bursts
	// Start tells at which monotonic time, in ns, a counter began at zero, where that is
	// known, and StartWall turns it into Unix ms that stay the same, once the clock is
	// right. Without both nothing is said of it.
	Start     func(*collectors.Series) (mono int64, ok bool)
	StartWall func(mono int64) (ms int64, ok bool)
	// Pprof adds /debug/pprof.
	Pprof bool

	// Reader makes a reader of the ring for /api/v1/samples and /api/v1/stream,
	// which API.md describes; without it there are none. Session is the
	// exporter's, and Wall turns monotonic ns into Unix ms.
	Reader  func() Reader
	Session string
	Wall    func(mono int64) int64
	// Events adds /api/v1/events; it may be nil, and needs Session and Wall too.
	Events Events
}

// Handler makes the exporter's HTTP handler. It is safe for concurrent use.
func Handler(c Config) (http.Handler, error) {
	if c.Latest == nil || c.Schema == nil {
		return nil, errors.New("expose: Latest and Schema are needed")
	}
	if (c.Reader != nil || c.Events != nil) && (c.Session == "" || c.Wall == nil) {
		return nil, errors.New("expose: Reader and Events need Session and Wall")
	}
	mux := http.NewServeMux()
	m := &metrics{latest: c.Latest, schema: c.Schema, bursts: c.Bursts}
	if c.Start != nil && c.StartWall != nil {
		m.starts = &starts{series: c.Start, wall: c.StartWall}
	}
	mux.Handle("GET /metrics", m)
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		var t frame.Tick
		if !c.Latest.Latest(&t) {
			plain(w, http.StatusServiceUnavailable, "not ready: no tick was taken yet\n")
			return
		}
		plain(w, http.StatusOK, "ready\n")
	})
	if c.Pprof {
		if err := profiles(mux); err != nil {
			return nil, err
		}
	}
	if c.Reader != nil {
		t := newTicks(c)
		mux.HandleFunc("GET /api/v1/samples", t.samples)
		mux.HandleFunc("GET /api/v1/stream", t.stream)
	}
	if c.Events != nil {
		mux.HandleFunc("GET /api/v1/events", (&events{c}).list)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, index(&c))
	})
	return mux, nil
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	io.WriteString(w, text)
}

// index is the page at /.
func index(c *Config) string {
	page := `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>ticktier-exporter</title></head>
<body>
<h1>ticktier-exporter</h1>
<ul>
<li><a href="/metrics">/metrics</a>: the newest value of every series</li>
<li><a href="/-/healthy">/-/healthy</a>: the process is there</li>
<li><a href="/-/ready">/-/ready</a>: ticks are being taken</li>
`
	if c.Reader != nil {
		page += `<li><a href="/api/v1/samples">/api/v1/samples</a>: the ticks held, as JSON lines</li>
<li><a href="/api/v1/stream">/api/v1/stream</a>: ticks as they are taken, as server-sent events</li>
<li><a href="/api/v1/sources">/api/v1/sources</a>: what is read, how often and why, and what it costs</li>
`
	}
	if c.Events != nil {
		page += `<li><a href="/api/v1/events">/api/v1/events</a>: what the kernel logged, as JSON lines</li>
`
	}
	if c.Pprof {
		page += `<li><a href="/debug/pprof/">/debug/pprof/</a>: profiles</li>
`
	}
	return page + `</ul>
</body>
</html>
`
}
