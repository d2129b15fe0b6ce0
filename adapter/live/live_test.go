package live

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// fake has ten ticks a second up to its clock.
type fake struct {
	now   int64
	reads int
}

func (f *fake) source(_ context.Context, instance string, from, _ int64) ([]Line, error) {
	f.reads++
	if instance == "broken" {
		return nil, errors.New("of the test")
	}
	l := Line{Labels: map[string]string{"__name__": "x", "instance": instance}, Key: "x"}
	for t := (from + 99) / 100 * 100; t <= f.now; t += 100 {
		l.Samples = append(l.Samples, [2]float64{float64(t), 1})
	}
	return []Line{l}, nil
}

func newHub(f *fake) *Hub {
	return New(Config{Source: f.source, Now: func() time.Time { return time.UnixMilli(f.now) }, Logger: slog.New(slog.DiscardHandler)})
}

// TestOnceForAll: two viewers get the same bytes of one read, and each tick once.
func TestOnceForAll(t *testing.T) {
	f := &fake{now: 1_000_000_000}
	h := newHub(f)
	a, _ := h.watch("r1")
	b, _ := h.watch("r1")
	h.round(t.Context())
	first, other := <-a, <-b
	if f.reads != 1 || &first.packed[0] != &other.packed[0] {
		t.Errorf("%d reads for two viewers", f.reads)
	}
	if n := strings.Count(string(first.plain), ",1]"); n != 601 {
		t.Errorf("%d ticks of the last minute", n)
	}
	h.round(t.Context()) // it did not push
	f.now += 1000
	h.Pushed("r1")
	h.round(t.Context())
	if n := strings.Count(string((<-a).plain), ",1]"); n != 10 || f.reads != 2 {
		t.Errorf("%d ticks in %d reads of a second", n, f.reads)
	}
	h.Pushed("r1")
	h.round(t.Context())
	if len(a) != 0 {
		t.Error("an event without a tick")
	}
	h.leave("r1", a)
	h.leave("r1", b)
	if len(h.topics) != 0 || h.viewers != 0 {
		t.Errorf("%d topics are left", len(h.topics))
	}
}

// TestSlowViewer: who takes nothing is cut off and holds nobody up.
func TestSlowViewer(t *testing.T) {
	f := &fake{now: 1_000_000_000}
	h := newHub(f)
	slow, _ := h.watch("r1")
	for range queue + 1 {
		f.now += 100
		h.Pushed("r1")
		h.round(t.Context())
	}
	for range queue {
		<-slow
	}
	if _, ok := <-slow; ok || h.viewers != 0 {
		t.Error("the slow viewer is kept")
	}
	h.leave("r1", slow)
}

// TestStream: over HTTP, compressed or not, events come whole and end with Run.
func TestStream(t *testing.T) {
	for _, encoding := range []string{"gzip", "identity"} {
		t.Run(encoding, func(t *testing.T) {
			f := &fake{now: 1_000_000_000}
			h := newHub(f)
			srv := httptest.NewServer(h)
			defer srv.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+Path+"?instance=r1", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept-Encoding", encoding)
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			h.round(ctx)
			var r io.Reader = res.Body
			if encoding == "gzip" {
				if r, err = gzip.NewReader(res.Body); err != nil {
					t.Fatal(err)
				}
			}
			in := bufio.NewReaderSize(r, 1<<20)
			for range 2 {
				for {
					line, err := in.ReadString('\n')
					if err != nil {
						t.Fatal(err)
					}
					if strings.HasPrefix(line, "data: ") {
						break
					}
				}
				f.now += 1000
				h.Pushed("r1")
				h.round(ctx)
			}
			h.stop()
			if rest, _ := io.ReadAll(in); len(rest) == 0 {
				t.Error("the last event did not come")
			}
			if _, ok := h.watch("r1"); ok {
				t.Error("a stopped hub takes viewers")
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	w := httptest.NewRecorder()
	newHub(&fake{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
	if w.Code != 400 {
		t.Errorf("without a device: status %d", w.Code)
	}
	h := newHub(&fake{now: 1})
	c, _ := h.watch("broken")
	h.round(t.Context())
	if len(c) != 0 {
		t.Error("an event after an error")
	}
}
