package receive

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
)

func TestTooLarge(t *testing.T) {
	s := &fakeStore{}
	h := testHandler(t, s, func(c *Config) { c.MaxBodyBytes, c.MaxDecodedBytes, c.MaxSamples = 2000, 6000, 100 })
	for name, tc := range map[string]struct {
		body   []byte
		status int
	}{
		"body":    {make([]byte, 2001), 413},
		"decoded": {snappy.Encode(nil, make([]byte, 6001)), 413},
		"samples": {encode(t, push(1, 101, at(0), 1)), 413},
		"fits":    {encode(t, push(1, 100, at(0), 1)), 204},
	} {
		if w := post(h, type2, tc.body); w.Code != tc.status {
			t.Errorf("%s: status %d, want %d: %s", name, w.Code, tc.status, w.Body)
		}
		r := httptest.NewRequest(http.MethodPost, "/", &countingReader{r: bytes.NewReader(tc.body)}) // no Content-Length
		r.Header.Set("Content-Type", type2)
		r.Header.Set("Content-Encoding", "snappy")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tc.status {
			t.Errorf("%s, chunked: status %d, want %d", name, w.Code, tc.status)
		}
	}
}

// TestDeclaredSizes is 200 hostile requests at once beside a good one.
func TestDeclaredSizes(t *testing.T) {
	s := &fakeStore{}
	h := testHandler(t, s)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			began := time.Now()
			w := post(h, type2, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0x00})
			if w.Code/100 != 4 {
				t.Errorf("status %d", w.Code)
			}
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
	}
	if w := post(h, type2, encode(t, push(10, 10, at(0), 1))); w.Code != 204 {
		t.Errorf("the good request is answered with %d", w.Code)
	}
	wg.Wait()
	body := []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0x00}
	if got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			post(h, type2, body)
		}
	}).AllocedBytesPerOp(); got > 64<<10 {
		t.Errorf("a hostile request takes %d bytes", got)
	}
}

// TestBudget: a request that finds no memory is told to come back, and gives back what
// it held.
func TestBudget(t *testing.T) {
	s := &fakeStore{}
	h := testHandler(t, s, func(c *Config) { c.QueueTimeout = time.Millisecond })
	body := encode(t, push(10, 10, at(0), 1))
	if !h.budget.decoding.TryAcquire(h.cfg.BudgetBytes) {
		t.Fatal("the budget is not free at the start")
	}
	if w := post(h, type2, body); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("without memory to decode: status %d", w.Code)
	}
	h.budget.decoding.Release(h.cfg.BudgetBytes)
	if !h.budget.reading.TryAcquire(h.cfg.BudgetBytes) {
		t.Fatal("memory to read was not given back")
	}
	if w := post(h, type2, bytes.Repeat([]byte{0xf0}, 1<<20)); w.Code != 503 {
		t.Errorf("without memory to read: status %d", w.Code)
	}
	h.budget.reading.Release(h.cfg.BudgetBytes)
	for range 3 {
		post(h, type2, bytes.Repeat([]byte{0xf0}, 1<<20))
		post(h, type2, body)
	}
	if !h.budget.reading.TryAcquire(h.cfg.BudgetBytes) || !h.budget.decoding.TryAcquire(h.cfg.BudgetBytes) {
		t.Error("memory was not given back")
	}
}

// TestSlowBody: a body that does not come in time is answered with a status that
// makes the sender try again.
func TestSlowBody(t *testing.T) {
	srv := httptest.NewServer(testHandler(t, &fakeStore{}, func(c *Config) { c.BodyTimeout = 50 * time.Millisecond }))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Encoding: snappy\r\nContent-Length: 100\r\n\r\nabc", type2)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
}
