package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// front stands before a receiver and passes pushes on, unless it is told to do
// something else with them.
type front struct {
	*httptest.Server
	target string
	act    atomic.Pointer[func(f *front, w http.ResponseWriter, body []byte, r *http.Request)]
	conns  atomic.Int64 // opened

	mu    sync.Mutex
	times []time.Time // of pushes, while act is set
}

func startFront(t testing.TB, target string) *front {
	t.Helper()
	return startFrontWith(t, target, (*httptest.Server).Start)
}

func startFrontWith(t testing.TB, target string, start func(*httptest.Server)) *front {
	t.Helper()
	f := &front{target: target}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if act := f.act.Load(); act != nil {
			f.mu.Lock()
			f.times = append(f.times, time.Now())
			f.mu.Unlock()
			(*act)(f, w, body, r)
			return
		}
		f.pass(w, body, r)
	}))
	f.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			f.conns.Add(1)
		}
	}
	start(f.Server)
	t.Cleanup(f.Close)
	return f
}

// forward sends a push on and returns the answer.
func (f *front) forward(body []byte, r *http.Request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, f.target+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	return resp, err
}

func (f *front) pass(w http.ResponseWriter, body []byte, r *http.Request) {
	resp, err := f.forward(body, r)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
}

// raw takes the connection and writes an answer byte by byte, with a pause between
// two; then it closes it.
func raw(w http.ResponseWriter, r *http.Request, text string, every time.Duration) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	if every == 0 {
		_, _ = conn.Write([]byte(text))
		return
	}
	for i := range len(text) {
		if _, err := conn.Write([]byte{text[i]}); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(every):
		}
	}
}

// TestBadReceivers: whatever a receiver does for a while, no sample is lost or
// doubled, and sampling goes on.
func TestBadReceivers(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(f *front, w http.ResponseWriter, body []byte, r *http.Request){
		"never answers": func(_ *front, _ http.ResponseWriter, _ []byte, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(30 * time.Second):
			}
		},
		"stores and never answers": func(f *front, _ http.ResponseWriter, body []byte, r *http.Request) {
			_, _ = f.forward(body, r)
			select {
			case <-r.Context().Done():
			case <-time.After(30 * time.Second):
			}
		},
		"answers one byte a second": func(f *front, w http.ResponseWriter, body []byte, r *http.Request) {
			if resp, err := f.forward(body, r); err == nil {
				raw(w, r, fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", resp.Status), time.Second)
			}
		},
		"closes in the headers": func(_ *front, w http.ResponseWriter, _ []byte, r *http.Request) {
			raw(w, r, "HTTP/1.1 204 No Content\r\nX-Prometheus-Remote-Wri", 0)
		},
		"closes after the headers": func(f *front, w http.ResponseWriter, body []byte, r *http.Request) {
			if resp, err := f.forward(body, r); err == nil && resp.StatusCode/100 == 2 {
				raw(w, r, "HTTP/1.1 200 OK\r\nX-Prometheus-Remote-Write-Samples-Written: "+
					resp.Header.Get("X-Prometheus-Remote-Write-Samples-Written")+"\r\nContent-Length: 10\r\n\r\n", 0)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adapter := startAdapter(t, t.TempDir())
			f := startFront(t, "http://"+adapter.addr)
			exporter := startExporter(t, "--rate=10", "--remote-write.interval=500ms", "--remote-write.timeout=2s",
				"--remote-write.url="+f.URL+"/api/v1/write")
			start := ticking(t, adapter)
			f.act.Store(&act)
			pause(t, 12*time.Second)
			f.act.Store(nil)
			end := delivered(t, exporter, adapter, 60*time.Second)
			if c := account(t, exporter); c.lost > 0 {
				t.Errorf("%v ticks are lost", c.lost)
			}
			if len(f.times) == 0 {
				t.Error("nothing was pushed meanwhile")
			}
			checkCount(t, name, adapter, start, end, 100, 0)
		})
	}
}

// TestSlowDown is prometheus#8474: 429 with Retry-After three times. The gaps are
// kept, on one connection, and no sample is lost.
func TestSlowDown(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	f := startFront(t, "http://"+adapter.addr)
	exporter := startExporter(t, "--rate=10", "--remote-write.interval=500ms", "--remote-write.url="+f.URL+"/api/v1/write")
	start := ticking(t, adapter)
	before := f.conns.Load()
	n := 0
	act := func(f *front, w http.ResponseWriter, body []byte, r *http.Request) {
		if n++; n > 3 {
			f.pass(w, body, r)
			return
		}
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	f.act.Store(&act)
	eventually(t, 60*time.Second, "four pushes", func(ctx context.Context) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.times) < 4 {
			return fmt.Errorf("%d", len(f.times))
		}
		return nil
	})
	end := delivered(t, exporter, adapter, 60*time.Second)
	f.mu.Lock()
	for i := 1; i < 4; i++ {
		if gap := f.times[i].Sub(f.times[i-1]); gap < 7*time.Second {
			t.Errorf("push %d came %v after a Retry-After of 7 s", i, gap)
		}
	}
	f.mu.Unlock()
	if opened := f.conns.Load() - before; opened > 0 {
		t.Errorf("%d connections were opened anew", opened)
	}
	checkCount(t, "slow down", adapter, start, end, 100, 0)
}
