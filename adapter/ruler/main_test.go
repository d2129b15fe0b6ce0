package ruler

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"go.uber.org/goleak"

	"github.com/ticktier/ticktier/adapter/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// world is a store, a device that pushes into it, and an Alertmanager, on fake time.
type world struct {
	t   *testing.T
	dir string // of rule files
	raw *store.Raw
	log bytes.Buffer
	reg *prometheus.Registry

	mu       sync.Mutex
	received []notification // guarded by mu
	status   int            // guarded by mu; the Alertmanager's answer
	hang     bool           // guarded by mu; the Alertmanager does not answer
}

type notification struct {
	Labels       map[string]string
	Annotations  map[string]string
	StartsAt     time.Time
	EndsAt       time.Time
	GeneratorURL string

	path string
}

func (n notification) firing(now time.Time) bool { return n.EndsAt.After(now) }

func newWorld(t *testing.T) *world {
	t.Helper()
	raw, err := store.OpenRaw(t.TempDir(), store.RawOptions{Retention: 48 * time.Hour, OutOfOrderWindow: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), raw: raw, status: http.StatusOK}
	return w
}

func (w *world) close() {
	if err := w.raw.Close(); err != nil {
		w.t.Error(err)
	}
}

// push stores one sample of v at the present.
func (w *world) push(name string, v float64) {
	w.t.Helper()
	app := w.raw.AppenderV2(context.Background())
	if _, err := app.Append(0, labels.FromStrings("__name__", name, "instance", "r1"), 0, time.Now().UnixMilli(), v, nil, nil, storage.AOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if err := app.Commit(); err != nil {
		w.t.Fatal(err)
	}
}

// run pushes v once a second for d.
func (w *world) run(name string, v float64, d time.Duration) {
	w.t.Helper()
	for range int(d / time.Second) {
		w.push(name, v)
		time.Sleep(time.Second) // fake time
	}
	synctest.Wait()
}

func (w *world) do(ctx context.Context, _ *http.Client, req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	hang := w.hang
	w.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var list []notification
	if err := json.NewDecoder(req.Body).Decode(&list); err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range list {
		n.path = req.URL.String()
		w.received = append(w.received, n)
	}
	return &http.Response{StatusCode: w.status, Status: "answer", Body: io.NopCloser(strings.NewReader(""))}, nil
}

// take returns what the Alertmanager got since the last call.
func (w *world) take() []notification {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.received
	w.received = nil
	return out
}

// config is one that evaluates the files of w every 15 s.
func (w *world) config() Config {
	w.reg = prometheus.NewRegistry()
	am, err := url.Parse("http://alerts.test/prefix")
	if err != nil {
		w.t.Fatal(err)
	}
	external, err := url.Parse("http://adapter.test:9748/x")
	if err != nil {
		w.t.Fatal(err)
	}
	return Config{
		Engine: promql.NewEngine(promql.EngineOpts{
			Logger: slog.New(slog.DiscardHandler), MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true,
		}),
		Queryable: w.raw, Store: w.raw, Files: []string{filepath.Join(w.dir, "*.yml")}, QueryOffset: 10 * time.Second,
		Alertmanagers: []*url.URL{am}, ExternalURL: external, ExternalLabels: labels.FromStrings("site", "lab", "instance", "not this"),
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)), Registerer: w.reg, do: w.do,
	}
}

// start runs a Ruler; stop ends it and waits.
func (w *world) start(c Config) (r *Ruler, stop func()) {
	w.t.Helper()
	r, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	synctest.Wait()
	return r, func() { cancel(); <-done }
}

// sample is what is stored of a series.
type sample struct {
	t int64
	v float64
}

// stored returns the samples of a metric, staleness markers as NaN.
func (w *world) stored(name string) map[string][]sample {
	w.t.Helper()
	q, err := w.raw.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		w.t.Fatal(err)
	}
	defer q.Close()
	out := map[string][]sample{}
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", name))
	for set.Next() {
		it := set.At().Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			t, v := it.At()
			if value.IsStaleNaN(v) {
				v = math.NaN()
			}
			key := set.At().Labels().String()
			out[key] = append(out[key], sample{t, v})
		}
	}
	if err := set.Err(); err != nil {
		w.t.Fatal(err)
	}
	return out
}
