package send

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ring is a Ticks of so many ticks at most.
type ring struct {
	mu       sync.Mutex
	held     []frame.Tick
	capacity int
	next     uint64
	tick     frame.Tick
	readSeqs map[uint64]bool

	total, read      uint64 // ticks appended, and up to which they were read or lost
	lost             uint64
	lostFrom, lostTo int64
	evictedTime      int64
	err              error
}

func (r *ring) append(t frame.Tick) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = append(r.held, t)
	r.total++
	if r.capacity > 0 && len(r.held) > r.capacity {
		r.evictedTime = r.held[0].Time
		r.held = r.held[1:]
	}
}

func (r *ring) Seek(seq uint64) { r.next = seq }

func (r *ring) Next() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = 0
	for i, t := range r.held {
		if t.Seq < r.next {
			continue
		}
		at := r.total - uint64(len(r.held)-i)
		if r.lost = at - r.read; r.lost > 0 {
			r.lostFrom, r.lostTo = r.tick.Time, r.evictedTime
		}
		r.read = at + 1
		r.tick, r.next = t, t.Seq+1
		if r.readSeqs != nil {
			r.readSeqs[t.Seq] = true
		}
		return true
	}
	return false
}

func (r *ring) Tick() *frame.Tick            { return &r.tick }
func (r *ring) Err() error                   { return r.err }
func (r *ring) Lost() (uint64, int64, int64) { return r.lost, r.lostFrom, r.lostTo }

// fill makes a ring that holds all ticks of a run.
func (r *run) ring() *ring { return &ring{held: r.ticks, total: uint64(len(r.ticks))} }

// schema makes the run's series a schema.
func (r *run) schema() *collectors.Schema {
	var s collectors.Schema
	for _, x := range r.series {
		s.Add(x.Source, x.Metric, x.Labels...)
	}
	return &s
}

// receiver is a scripted receiver without a socket.
type receiver struct {
	mu       sync.Mutex
	script   func(n int, req *http.Request, p Protocol, samples int) answer
	requests []*http.Request
	stored   written
	asked    int                // for the time
	date     func() http.Header // what is answered then; nil is nothing of use
	stored1  int                // requests stored, by protocol
	stored2  int
	bad      []error
}

// answer is what the receiver does with a request.
type answer struct {
	code   int
	header http.Header
	body   io.Reader
	err    error // instead of a reply
	hang   bool  // until the request is given up
	store  bool
	bare   bool // without Written headers
}

func ok(int, *http.Request, Protocol, int) answer { return answer{code: 204, store: true} }

// status answers with a code, and the given headers by name and value.
func status(code int, header ...string) answer {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return answer{code: code, header: h, bare: true}
}

func (rc *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodOptions {
		rc.mu.Lock()
		defer rc.mu.Unlock()
		rc.asked++
		h := http.Header{}
		if rc.date != nil {
			h = rc.date()
		}
		return &http.Response{StatusCode: 405, Header: h, Body: http.NoBody, Request: req}, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close()
	p := V1
	if req.Header.Get("Content-Type") == "application/x-protobuf;proto=io.prometheus.write.v2.Request" {
		p = V2
	}
	rc.mu.Lock()
	defer rc.mu.Unlock()
	w := written{}
	samples, err := w.decode(p, body)
	if err != nil {
		rc.bad = append(rc.bad, err)
	}
	a := rc.script(len(rc.requests), req, p, samples)
	rc.requests = append(rc.requests, req)
	if a.store {
		rc.store(p, w)
	}
	switch {
	case a.hang:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case a.err != nil:
		return nil, a.err
	}
	h := a.header
	if h == nil {
		h = http.Header{}
	}
	if p == V2 && !a.bare && h.Get(headerSamples) == "" {
		h.Set(headerSamples, strconv.Itoa(samples))
	}
	if a.body == nil {
		a.body = bytes.NewReader(nil)
	}
	return &http.Response{StatusCode: a.code, Header: h, Body: io.NopCloser(a.body), Request: req}, nil
}

func (rc *receiver) store(p Protocol, w written) {
	if rc.stored == nil {
		rc.stored = written{}
	}
	for k, ss := range w {
		rc.stored[k] = append(rc.stored[k], ss...)
	}
	if p == V2 {
		rc.stored2++
	} else {
		rc.stored1++
	}
}

// check fails the test if any request was malformed.
func (rc *receiver) check(t *testing.T) {
	t.Helper()
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if err := errors.Join(rc.bad...); err != nil {
		t.Error(err)
	}
}

// logs keeps log lines for a test to look at.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logs) count(s string) int { return bytes.Count([]byte(l.String()), []byte(s)) }

// config is a Config for a run, of which a test changes what it is about. Mono and
// wall time are fake time in the bubble of a test.
func (r *run) config(rt http.RoundTripper, ticks Ticks, l *logs) Config {
	return Config{
		URL:             "http://user:secret@receiver.test/api/v1/write?token=hidden",
		Interval:        5 * time.Second,
		ShutdownTimeout: 5 * time.Second,
		ExternalLabels:  external,
		Ticks:           ticks,
		Schema:          r.schema(),
		Wall:            func(mono int64) int64 { return r.ms[0] + mono/1e6 },
		Now:             func() int64 { return r.ticks[len(r.ticks)-1].Time },
		Version:         "1.2.3",
		Session:         "s1",
		Transport:       rt,
		Logger:          slog.New(slog.NewTextHandler(l, nil)),
	}
}

// end adds the staleness markers of a clean stop to what is wanted.
func (w written) end(ms int64) {
	for k, ss := range w {
		if ss[len(ss)-1].Bits != staleNaN {
			w[k] = append(ss, sample{Ms: ms, Bits: staleNaN})
		}
	}
}

// metric reads a self metric, the label code being all that tells series apart.
func metric(s *Sender, name, code string) float64 {
	for _, m := range s.SelfMetrics() {
		c := ""
		for _, l := range m.Labels {
			if l.Name == "code" {
				c = l.Value
			}
		}
		if m.Metric.Name == "ticktier_exporter_remote_write_"+name && c == code {
			if v, ok := m.Read(); ok {
				return m.Metric.Value(v)
			}
			return math.NaN()
		}
	}
	panic(fmt.Sprint("no metric ", name, " ", code))
}

// quiet is the log of a server whose complaints are expected.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
