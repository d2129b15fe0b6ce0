package send

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"context"

	"github.com/google/go-cmp/cmp"
)

// server is a receiver behind a real socket.
type server struct {
	*httptest.Server
	conns atomic.Int64

	mu     sync.Mutex
	stored written
	n      int
}

// newServer starts a server; hook, if not nil, may answer request n itself.
func newServer(t *testing.T, hook func(n int, w http.ResponseWriter, r *http.Request) bool) *server {
	s := &server{stored: written{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil // the ticks are of another year
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		n := s.n
		s.n++
		s.mu.Unlock()
		if hook != nil && hook(n, w, r) {
			return
		}
		s.mu.Lock()
		samples, err := s.stored.decode(V2, body)
		s.mu.Unlock()
		if err != nil {
			t.Error(err)
		}
		w.Header().Set(headerSamples, strconv.Itoa(samples))
		w.WriteHeader(http.StatusNoContent)
	}))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			s.conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// TestSockets runs over real connections what a fake transport cannot show.
func TestSockets(t *testing.T) {
	hijack := func(w http.ResponseWriter, say string) bool {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return false
		}
		_, _ = io.WriteString(c, say)
		_ = c.Close()
		return true
	}
	for name, c := range map[string]struct {
		hook  func(n int, w http.ResponseWriter, r *http.Request) bool
		conns int64
	}{
		"one kept-alive connection": {nil, 1},
		"closed without a reply":    {func(n int, w http.ResponseWriter, _ *http.Request) bool { return n == 1 && hijack(w, "") }, 2},
		"garbage": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			return n == 1 && hijack(w, "\x00\x01SSH-2.0\r\n\r\n")
		}, 2},
		"closed after the status": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			return n == 1 && hijack(w, "HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\n")
		}, 2},
		"closed in the headers": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			return n == 1 && hijack(w, "HTTP/1.1 200 OK\r\nX-Pro")
		}, 2},
		"error with a long page": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n != 1 {
				return false
			}
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write(make([]byte, 32<<10))
			return true
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t, c.hook)
			r := newRun(1, 200, 40)
			cfg := r.config(nil, r.ring(), &logs{})
			cfg.URL, cfg.Transport, cfg.Interval, cfg.MaxSamples = srv.URL, nil, time.Millisecond, 2000
			s, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error)
			go func() { done <- s.Run(ctx) }()
			for deadline := time.Now().Add(20 * time.Second); s.Cursor() < 40 && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond) // real sockets: there is nothing else to wait on
			}
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			srv.mu.Lock()
			defer srv.mu.Unlock()
			if diff := cmp.Diff(r.want(external, nil), srv.stored); diff != "" {
				t.Error(diff)
			}
			if got := srv.conns.Load(); got != c.conns {
				t.Errorf("%d connections, want %d", got, c.conns)
			}
		})
	}
}

// TestHungSockets has receivers that accept and never answer, or answer a byte at
// a time: a request ends with its timeout.
func TestHungSockets(t *testing.T) {
	for name, trickle := range map[string]string{"never answers": "", "a byte at a time": "HTTP/1.1 204 No Content\r\nX-Padding: "} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var conns sync.WaitGroup
			end := make(chan struct{})
			conns.Go(func() {
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					conns.Go(func() {
						defer c.Close()
						if _, err := c.Read(make([]byte, 1)); err != nil {
							return
						}
						conns.Go(func() { _, _ = io.Copy(io.Discard, c) })
						for i := 0; ; i++ {
							if trickle != "" {
								if _, err := c.Write([]byte(trickle[min(i, len(trickle)-1):][:1])); err != nil {
									return
								}
							}
							select {
							case <-end:
								return
							case <-time.After(5 * time.Millisecond):
							}
						}
					})
				}
			})
			r := newRun(1, 3, 1)
			cfg := r.config(nil, r.ring(), &logs{})
			cfg.URL, cfg.Transport, cfg.Timeout = "http://"+ln.Addr().String(), nil, 50*time.Millisecond
			s, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			rep := s.client.post(context.Background(), V2, []byte{0}, origin{seqs: "0-0"})
			if rep.err != errTimeout {
				t.Errorf("got %+v, want a timeout", rep)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("a timeout of 50ms took %s", took)
			}
			s.client.http.CloseIdleConnections()
			close(end)
			_ = ln.Close()
			conns.Wait()
		})
	}
}
