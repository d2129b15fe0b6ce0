package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
)

// TestStreamsStopTogether: at a stop what was scraped does not wait until ticks are
// delivered, or given up: here a receiver answers to neither before it has both.
func TestStreamsStopTogether(t *testing.T) {
	var scrapes atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		scrapes.Add(1)
		_, _ = io.WriteString(w, "a 1\n")
	}))
	defer target.Close()
	var once [2]sync.Once
	got := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		plain, err := snappy.Decode(nil, b)
		if err != nil {
			t.Errorf("body: %v", err)
		}
		i := 0
		if bytes.Contains(plain, []byte("scrape_samples_post_metric_relabeling")) {
			i = 1
		}
		once[i].Do(func() { close(got[i]) })
		select {
		case <-got[1-i]:
		case <-r.Context().Done():
		}
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "1")
	}))
	defer receiver.Close()

	ctx, cancel := context.WithCancel(t.Context())
	var out output
	done := make(chan int)
	go func() {
		done <- realMain(ctx, []string{"--listen=", "--remote-write.interval=1h", "--shutdown.timeout=20s", "--spool.dir=" + t.TempDir(), "--no-remote-write.stale-on-stop",
			"--remote-write.url=" + receiver.URL + "/w", "--scrape.url=" + target.URL + "/m#interval=100ms"}, &out, &out)
	}()
	for range 600 {
		if scrapes.Load() >= 3 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	cancel()
	if code := <-done; code != 0 || strings.Count(out.String(), "everything is delivered") != 2 {
		t.Errorf("exit code %d; log:\n%s", code, &out)
	}
}
