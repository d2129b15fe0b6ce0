package scrape

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ticktier/ticktier/collectors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what a fake target answers once.
type answer struct {
	code   int
	typ    string
	header http.Header
	body   string
	hang   bool
	wait   time.Duration
	err    error
}

// fakeNet is a network of targets by host, without sockets.
type fakeNet struct {
	mu     sync.Mutex
	answer map[string]func(n int, r *http.Request) answer
	asked  map[string]int
}

func (f *fakeNet) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	n := f.asked[r.URL.Host]
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	f.asked[r.URL.Host]++
	a := f.answer[r.URL.Host](n, r)
	f.mu.Unlock()
	time.Sleep(a.wait)
	if a.hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	h := http.Header{}
	for k, v := range a.header {
		h[k] = v
	}
	if a.typ != "" {
		h.Set("Content-Type", a.typ)
	}
	if a.code == 0 {
		a.code = 200
	}
	return &http.Response{StatusCode: a.code, Header: h, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// rows are what was appended, as a sender understands them.
type rows struct {
	mu     sync.Mutex
	schema *collectors.Schema
	live   map[int]bool
	// samples by series, in order: value, or "stale", and the time in ms.
	samples map[string][]string
	times   []int64
	seals   int
	last    uint64
	t       testing.TB
}

func newRows(t testing.TB) *rows {
	return &rows{schema: &collectors.Schema{}, live: map[int]bool{}, samples: map[string][]string{}, t: t}
}

const epoch = 1_750_000_000_000

func (r *rows) append(seq uint64, mono int64, read uint64, values []int64, present []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seq != r.last+1 {
		r.t.Errorf("row %d follows row %d", seq, r.last)
	}
	r.last = seq
	r.times = append(r.times, mono)
	all := r.schema.Series()
	if len(values) != len(all) {
		r.t.Errorf("%d values, %d slots", len(values), len(all))
	}
	has := func(i int) bool { return present[i>>6]>>(i&63)&1 == 1 }
	for i, s := range all {
		if s.Type.Companion() {
			continue
		}
		k := key(s)
		ms, start, own := epoch+mono/1e6, int64(0), false
		for j := i + 1; j < len(all) && all[j].Type.Companion(); j++ {
			if all[j].Type == collectors.StartTime {
				start = values[j]
			} else {
				ms, own = values[j], true
			}
		}
		switch {
		case has(i) && read>>s.Source&1 == 1:
			text := fmt.Sprintf("%v@%d", s.Value(values[i]), ms-epoch)
			if start != 0 {
				text += fmt.Sprintf(" since %d", start-epoch)
			}
			r.samples[k] = append(r.samples[k], text)
			r.live[i] = !own
		case !has(i) && r.live[i]:
			r.samples[k] = append(r.samples[k], fmt.Sprintf("stale@%d", epoch+mono/1e6-epoch))
			r.live[i] = false
		}
	}
}

// key writes a series as PromQL would.
func key(s collectors.Series) string {
	var ls []string
	for _, l := range s.Labels {
		ls = append(ls, fmt.Sprintf("%s=%q", l.Name, l.Value))
	}
	return s.Name + "{" + strings.Join(ls, ",") + "}"
}

// of are the samples of a series, without the labels job and instance in its key.
func (r *rows) of(k string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.samples[k])
}

// config is a Config for targets, with fake time.
func config(t testing.TB, r *rows, rt http.RoundTripper, log io.Writer, targets ...string) Config {
	began := time.Now()
	c := Config{MaxSeries: 1000, MaxBytes: 1 << 20, Schema: r.schema, Append: r.append, Seal: func() { r.seals++ },
		Delivered: func() uint64 { return math.MaxUint64 }, Now: func() int64 { return int64(time.Since(began)) },
		Wall: func(mono int64) int64 { return epoch + mono/1e6 }, Instance: "router", Version: "1", Transport: rt,
		Logger: slog.New(slog.NewTextHandler(log, nil))}
	for _, s := range targets {
		x, err := ParseTarget(s)
		if err != nil {
			t.Fatal(err)
		}
		c.Targets = append(c.Targets, x)
	}
	return c
}

// logs keeps log lines.
type logs struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}
