package expose

import (
	"bufio"
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
	"github.com/ticktier/ticktier/exporter/journal"
)

// history is a ring for tests: every tick ever taken, of which the first are gone.
type history struct {
	schema collectors.Schema
	mu     sync.Mutex
	ticks  []frame.Tick
	gone   int

	journal journal.Journal
}

const period = 100 * time.Millisecond

// take adds tick number seq with the values of the first slots.
func (h *history) take(seq, read uint64, values ...int64) {
	t := frame.Tick{Seq: seq, Time: int64(seq) * int64(period), Read: read, Values: values, Present: []uint64{1<<len(values) - 1}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ticks = append(h.ticks, t)
}

func (h *history) Latest(t *frame.Tick) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ticks) == 0 {
		return false
	}
	*t = h.ticks[len(h.ticks)-1]
	return true
}

func (h *history) reader() Reader { return &historyReader{h: h} }

type historyReader struct {
	h          *history
	at         int
	t          frame.Tick
	lost       uint64
	lostA, end int64
}

func (r *historyReader) Seek(seq uint64) {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	for r.at = 0; r.at < len(r.h.ticks) && r.h.ticks[r.at].Seq < seq; r.at++ {
	}
}

func (r *historyReader) Next() bool {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.lost = 0
	if r.at < r.h.gone {
		r.lost = uint64(r.h.gone - r.at)
		r.lostA, r.end = r.h.ticks[r.at].Time, r.h.ticks[r.h.gone].Time
		r.at = r.h.gone
	}
	if r.at == len(r.h.ticks) {
		return false
	}
	r.t = r.h.ticks[r.at]
	r.at++
	return true
}

func (r *historyReader) Tick() *frame.Tick { return &r.t }

func (r *historyReader) Err() error { return nil }

func (r *historyReader) Lost() (uint64, int64, int64) { return r.lost, r.lostA, r.end }

func (h *history) handler(t testing.TB) http.Handler {
	t.Helper()
	handler, err := Handler(Config{
		Latest: h, Schema: &h.schema, Reader: h.reader, Events: &h.journal, Session: "now",
		Wall: func(mono int64) int64 { return 1_000_000 + mono/1e6 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// newHistory has two series of two sources; the second is read in even ticks.
func newHistory() *history {
	h := &history{}
	h.schema.Add(0, &collectors.Metric{Name: "a_total", Type: collectors.Counter, Unit: "seconds", Div: 100}, label("cpu", "0"))
	h.schema.Add(1, &collectors.Metric{Name: "b", Type: collectors.Gauge, Kind: collectors.Float}, label("x", `"<\`))
	for _, seq := range []uint64{10, 11, 12, 15, 16} {
		read := uint64(1)
		if seq%2 == 0 {
			read = 3
		}
		h.take(seq, read, int64(seq)*100, int64(math.Float64bits(float64(seq)/10)))
	}
	return h
}

// client is one that reads a stream, as slowly as it likes.
type client struct {
	header http.Header
	pipe   *io.PipeWriter
}

func (c *client) Header() http.Header { return c.header }

func (c *client) WriteHeader(int) {}

func (c *client) Write(b []byte) (int, error) { return c.pipe.Write(b) }

func (c *client) Flush() {}

// stream starts a client in a synctest bubble. events gives its events, one each
// time; stop ends it.
func stream(t *testing.T, h http.Handler, path, lastEvent string) (event func() string, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		req := httptest.NewRequestWithContext(ctx, "GET", path, nil)
		req.Header.Set("Last-Event-ID", lastEvent)
		h.ServeHTTP(&client{http.Header{}, w}, req)
		w.Close()
	}()
	br := bufio.NewReader(r)
	event = func() string {
		var b strings.Builder
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				t.Fatalf("%q and %v", line, err)
			}
			if line == "\n" {
				return b.String()
			}
			b.WriteString(line)
		}
	}
	return event, func() {
		cancel()
		r.Close()
		<-done
	}
}
