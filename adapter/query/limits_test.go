package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/ticktier/ticktier/adapter/store"
)

// The store and the tiers that main passes are what a Config asks for.
var (
	_ Raw  = (*store.Raw)(nil)
	_ Tier = (*store.Buckets)(nil)
)

// A query over more samples than allowed is refused, on raw samples and in ranges
// that are computed here.
func TestMaxSamples(t *testing.T) {
	h := history{}
	steady(h, base, base+2*hour, second, 1, "a")
	for _, tiers := range [][]Tier{nil, {&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + hour}}} {
		a, err := New(Config{Raw: newRawStore(t, h), Tiers: tiers, MaxSamples: 1000, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		q, err := a.Engine().NewInstantQuery(context.Background(), a.Queryable(), nil, "rate(c_total[100m])", time.UnixMilli(base+2*hour))
		if err != nil {
			t.Fatal(err)
		}
		var tooMany promql.ErrTooManySamples
		if res := q.Exec(context.Background()); !errors.As(res.Err, &tooMany) {
			t.Errorf("%d tiers: got %v", len(tiers), res.Err)
		}
		q.Close()
	}
}

// blockedRaw is a store that answers only when asked to stop.
type blockedRaw struct {
	*rawStore
	entered chan struct{}
}

func (b blockedRaw) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := b.rawStore.Querier(mint, maxt)
	return blockedQuerier{q, b.entered}, err
}

type blockedQuerier struct {
	storage.Querier
	entered chan struct{}
}

func (q blockedQuerier) Select(ctx context.Context, _ bool, _ *storage.SelectHints, _ ...*labels.Matcher) storage.SeriesSet {
	q.entered <- struct{}{}
	<-ctx.Done()
	return storage.ErrSeriesSet(ctx.Err())
}

// A query ends when its client goes, and when its time is up; those that wait for
// a place too.
func TestCancelAndTimeout(t *testing.T) {
	entered := make(chan struct{}, 10)
	h := history{}
	steady(h, base, base+hour, minute, 1, "a")
	a, err := New(Config{Raw: blockedRaw{newRawStore(t, h), entered}, MaxConcurrency: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.Handler().ServeHTTP(w, r)
		done <- struct{}{}
	}))
	defer srv.Close()
	u := srv.URL + "/api/v1/query?" + url.Values{"query": {"x"}, "time": {fmt.Sprint((base + hour) / 1000)}}.Encode()

	resp, r := get(t, u+"&timeout=50ms")
	if resp.StatusCode != http.StatusServiceUnavailable || r.ErrorType != "timeout" {
		t.Errorf("timeout: status %d, %+v", resp.StatusCode, r)
	}
	<-entered
	<-done

	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, "GET", u, nil)
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		gone <- err
	}()
	<-entered // the first holds the only place
	resp, r = get(t, u+"&timeout=50ms")
	if resp.StatusCode == 200 || !strings.Contains(r.Error, "queue") {
		t.Errorf("waiting: status %d, %+v", resp.StatusCode, r)
	}
	<-done
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("client got %v", err)
	}
	<-done // the handler returned
}

// A panic costs its own request only.
func TestPanicIsContained(t *testing.T) {
	a := newTestAPI(t, newRawStore(t, history{}))
	h := a.edge(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh") }))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/query", nil))
	if w.Code != 500 || !strings.Contains(w.Body.String(), "internal error") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Many queries at once read the same tiers.
func TestConcurrentQueries(t *testing.T) {
	h := history{}
	steady(h, base, base+3*hour, second, 5, "a")
	raw := newRawStore(t, h)
	raw.expired = base + 2*hour
	a := newTestAPI(t, raw, &fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 170*minute})
	done := make(chan error, 16)
	for range cap(done) {
		go func() {
			q, err := a.Engine().NewRangeQuery(context.Background(), a.Queryable(), nil, "rate(c_total[10m]) + avg_over_time(x[10m])",
				time.UnixMilli(base+hour), time.UnixMilli(base+3*hour), 5*time.Minute)
			if err != nil {
				done <- err
				return
			}
			defer q.Close()
			done <- q.Exec(context.Background()).Err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
