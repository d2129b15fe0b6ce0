package listen

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// Config says how connections are treated.
type Config struct {
	// MaxConnections bounds those that are open; 0 is what the process's limit of
	// descriptors allows.
	MaxConnections int
	// MaxAge is how old one may be when it is answered for the last time, up to a tenth
	// more or less; 0 is no bound.
	MaxAge time.Duration
	// TLS says that peers would not understand an answer in plain text.
	TLS bool

	Logger     *slog.Logger
	Registerer prometheus.Registerer // may be nil
}

const (
	// writeTimeout is how long a peer may take nothing, writeRate what it has to take
	// a second of a large answer.
	writeTimeout = 30 * time.Second
	writeRate    = 16 << 10
	// userTimeout is how long what was sent may stay unacknowledged.
	userTimeout = time.Minute
	// spare is the share of the descriptors that is kept for files, at least leastSpare;
	// the last of them are never given to a connection, however few there seem to be.
	spare      = 4
	leastSpare = 256
	last       = 64
)

// busy is the answer to connections that are too many.
const busy = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nContent-Type: text/plain\r\nContent-Length: 22\r\nConnection: close\r\n\r\ntoo many connections.\n"

// Listener is a net.Listener with bounds. It is safe for concurrent use.
type Listener struct {
	net.Listener
	cfg   Config
	limit int // of descriptors
	max   int

	open    atomic.Int64
	full    atomic.Bool // it was said that there are too many
	refused prometheus.Counter
}

// New looks at the limit of descriptors, which it logs, and wraps ln.
func New(ln net.Listener, cfg Config) (*Listener, error) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return nil, fmt.Errorf("look at the limit of descriptors: %w", err)
	}
	l := &Listener{Listener: ln, cfg: cfg, limit: int(min(r.Cur, 1<<30))}
	l.max = room(l.limit)
	if cfg.MaxConnections > 0 {
		if cfg.MaxConnections > l.max {
			cfg.Logger.Warn("fewer connections than were asked for: descriptors would run out", "asked", cfg.MaxConnections, "max_connections", l.max, "descriptors", l.limit)
		}
		l.max = min(l.max, cfg.MaxConnections)
	}
	cfg.Logger.Info("limits", "descriptors", l.limit, "max_connections", l.max)
	l.refused = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ticktier_adapter_connections_refused_total", Help: "Connections refused because too many were open."})
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(l.refused,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ticktier_adapter_connections", Help: "Open connections."}, func() float64 { return float64(l.open.Load()) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ticktier_adapter_connections_max", Help: "Most connections that are taken."}, func() float64 { return float64(l.max) }))
	}
	return l, nil
}

// room is how many connections a limit of descriptors has room for.
func room(limit int) int {
	return max(1, limit-max(limit/spare, min(leastSpare, limit/2)))
}

// Accept returns the next connection there is room for.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		n := l.open.Add(1)
		if n <= int64(l.max) && l.prepare(c) {
			if n < int64(l.max)*9/10 && l.full.CompareAndSwap(true, false) {
				l.cfg.Logger.Info("there is room for connections again", "connections", n)
			}
			return &conn{Conn: c, l: l, until: l.until(time.Now())}, nil
		}
		l.open.Add(-1)
		l.refuse(c)
	}
}

// prepare sets up a connection; false: the descriptors are running out.
func (l *Listener) prepare(c net.Conn) bool {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return true
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return true
	}
	enough := true
	_ = raw.Control(func(fd uintptr) {
		enough = int(fd) < l.limit-min(last, l.limit/4) // the kernel gives the lowest that is free
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout/time.Millisecond))
	})
	return enough
}

// refuse answers, which never blocks: nothing else was written.
func (l *Listener) refuse(c net.Conn) {
	l.refused.Inc()
	if l.full.CompareAndSwap(false, true) {
		l.cfg.Logger.Warn("too many connections; new ones are refused", "connections", l.open.Load(), "max_connections", l.max)
	}
	if !l.cfg.TLS {
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = c.Write([]byte(busy))
	}
	_ = c.Close()
}

// until is when a connection made now is old; the zero time is never.
func (l *Listener) until(now time.Time) time.Time {
	if l.cfg.MaxAge <= 0 {
		return time.Time{}
	}
	return now.Add(time.Duration(float64(l.cfg.MaxAge) * (0.9 + rand.Float64()/5)))
}

// conn is a connection that was taken.
type conn struct {
	net.Conn
	l      *Listener
	until  time.Time
	closed atomic.Bool
}

// Write gives the peer so long to take it.
func (c *conn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout + time.Duration(len(b))*time.Second/writeRate)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Close gives its place to another.
func (c *conn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.l.open.Add(-1)
	}
	return c.Conn.Close()
}

type ageKey struct{}

// ConnContext is for http.Server: it lets Handler know a request's connection.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if mine, ok := c.(*conn); ok && !mine.until.IsZero() {
		return context.WithValue(ctx, ageKey{}, mine.until)
	}
	return ctx
}

// Handler closes old connections after an answer of next.
func Handler(next http.Handler, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if until, ok := r.Context().Value(ageKey{}).(time.Time); ok && now().After(until) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
