package listen

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listener(t *testing.T, cfg Config) *Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	l, err := New(ln, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRoom(t *testing.T) {
	for limit, want := range map[int]int{16: 8, 256: 128, 1024: 768, 4096: 3072, 1 << 20: 786432} {
		if got := room(limit); got != want {
			t.Errorf("%d descriptors have room for %d connections, want %d", limit, got, want)
		}
	}
}

func TestTooMany(t *testing.T) {
	reg := prometheus.NewRegistry()
	l := listener(t, Config{MaxConnections: 2, Registerer: reg})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {})}
	done := make(chan error)
	go func() { done <- srv.Serve(l) }()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	// status asks, and returns the status of the answer.
	status := func(c net.Conn) int {
		t.Helper()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // it may be closed already
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "too many connections.\n" || resp.Header.Get("Retry-After") == "" {
				t.Errorf("answer %q, %v", b, err)
			}
		}
		return resp.StatusCode
	}
	first, second := dial(), dial()
	if a, b := status(first), status(second); a != 200 || b != 200 {
		t.Fatalf("status %d and %d", a, b)
	}
	third := dial() // nothing is sent, so that its close cannot overtake the answer
	resp, err := http.ReadResponse(bufio.NewReader(third), nil)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("one too many: %v, %v", resp, err)
	}
	resp.Body.Close()
	if got := testutil.ToFloat64(l.refused); got != 1 {
		t.Errorf("%v are counted as refused", got)
	}
	if got := status(first); got != 200 {
		t.Errorf("one that was there: status %d", got)
	}
	first.Close()
	for l.open.Load() > 1 {
		time.Sleep(time.Millisecond) // until the server has seen it
	}
	if got := status(dial()); got != 200 {
		t.Errorf("with room again: status %d", got)
	}
	srv.Close()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// deadlines notes what deadline was set.
type deadlines struct {
	net.Conn
	at time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.at = t; return d.Conn.SetWriteDeadline(t) }

func TestPeerThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		d := &deadlines{Conn: here}
		c := &conn{Conn: d, l: &Listener{}}
		start := time.Now()
		_, err := c.Write(make([]byte, 10*writeRate))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != writeTimeout+10*time.Second {
			t.Errorf("cut after %v", took)
		}
		c.Close()
	})
}

func TestAge(t *testing.T) {
	l := listener(t, Config{MaxAge: time.Hour})
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	srv := &http.Server{ConnContext: ConnContext, Handler: Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}), now)}
	done := make(chan error)
	go func() { done <- srv.Serve(l) }()
	client := &http.Client{Transport: &http.Transport{}}
	closes := func() bool {
		t.Helper()
		resp, err := client.Get("http://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.Close
	}
	if closes() {
		t.Error("a new connection is closed")
	}
	ahead.Store(int64(53 * time.Minute))
	if closes() {
		t.Error("closed before nine tenths of the age")
	}
	ahead.Store(int64(67 * time.Minute))
	if !closes() {
		t.Error("an old connection is not closed")
	}
	ahead.Store(0)
	if closes() {
		t.Error("the next connection is closed")
	}
	client.CloseIdleConnections()
	srv.Close()
	<-done
	seen := map[time.Time]bool{}
	start := time.Now()
	for range 20 {
		seen[l.until(start)] = true
	}
	if len(seen) < 10 {
		t.Errorf("%d different ages of 20 connections", len(seen))
	}
	if !strings.HasPrefix(busy, "HTTP/1.1 503 ") {
		t.Error(busy)
	}
}
