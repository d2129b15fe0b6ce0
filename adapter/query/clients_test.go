package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestClientNames(t *testing.T) {
	t.Parallel()
	basic := func(r *http.Request) { r.SetBasicAuth("ann", "secret") }
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer abc") }
	via := func(r *http.Request) { r.Header["X-Forwarded-For"] = []string{"6.6.6.6", "7.7.7.7, 8.8.8.8"} }
	for _, tc := range []struct {
		by   ClientBy
		set  func(*http.Request)
		want string
	}{
		{"", func(*http.Request) {}, "192.0.2.1"},
		{"", basic, "user ann"},
		{"", bearer, "token 9bbdef3e"},
		{"", via, "192.0.2.1"},
		{ByAddress, basic, "192.0.2.1"},
		{ByAddress, via, "192.0.2.1"},
		{ByForwarded, via, "8.8.8.8"},
		{ByForwarded, basic, "user ann"},
		{ByForwarded, func(*http.Request) {}, "192.0.2.1"},
	} {
		r := httptest.NewRequest("GET", "/api/v1/query", nil)
		tc.set(r)
		got := newClients(ClientLimits{By: tc.by}, time.Now, nil).name(r)
		if strings.HasPrefix(tc.want, "token") && strings.HasPrefix(got, "token ") && !strings.Contains(got, "abc") {
			continue // a digest, never the token
		}
		if got != tc.want {
			t.Errorf("by %q: got %q, want %q", tc.by, got, tc.want)
		}
	}
}

// A client that used up what it may use is refused, others are not, and after a while
// it is let in again.
func TestClientBudgets(t *testing.T) {
	t.Parallel()
	limits := ClientLimits{MaxSamples: 600, MaxSeries: 60, MaxTime: time.Minute, MaxResponseBytes: 6000}
	for i, used := range []usage{{useSamples: 1800}, {useSeries: 180}, {useTime: 180}, {useBytes: 18000}} {
		now := time.Unix(1_700_000_000, 0)
		reg := prometheus.NewRegistry()
		c := newClients(limits, func() time.Time { return now }, reg)
		enter := func(name string) error {
			cl, err := c.enter(context.Background(), name)
			if err == nil {
				c.leave(cl, usage{})
			}
			return err
		}
		cl, err := c.enter(context.Background(), "a")
		if err != nil {
			t.Fatal(err)
		}
		c.leave(cl, used) // three minutes' worth, of two saved
		var much *tooMuch
		if err := enter("a"); !errors.As(err, &much) || !strings.Contains(err.Error(), "raise "+useFlags[i]) {
			t.Errorf("%v: got %v", used, err)
			continue
		}
		if much.wait < time.Minute || much.wait > 2*time.Minute {
			t.Errorf("%v: wait %v", used, much.wait)
		}
		if err := enter("b"); err != nil {
			t.Errorf("another client: %v", err)
		}
		now = now.Add(much.wait)
		if err := enter("a"); err != nil {
			t.Errorf("%v: after %v: %v", used, much.wait, err)
		}
	}
	free := newClients(ClientLimits{}, time.Now, nil)
	for range 3 {
		cl, err := free.enter(context.Background(), "a")
		if err != nil {
			t.Fatal(err)
		}
		free.leave(cl, usage{1e18, 1e18, 1e18, 1e18})
	}
}

// One client's requests wait for each other and for nobody else's.
// One request that used very much is owed for a minute, not for hours.
func TestClientDebtIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	c := newClients(ClientLimits{MaxSamples: 600}, func() time.Time { return now }, nil)
	cl, err := c.enter(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	c.leave(cl, usage{useSamples: 1e9})
	var much *tooMuch
	if _, err := c.enter(context.Background(), "a"); !errors.As(err, &much) || much.wait > 61*time.Second {
		t.Fatalf("%v, want a wait of a minute", err)
	}
	now = now.Add(much.wait)
	if _, err := c.enter(context.Background(), "a"); err != nil {
		t.Errorf("after that wait: %v", err)
	}
}

func TestClientConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClients(ClientLimits{MaxConcurrency: 2}, time.Now, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var held []*client
		for range 2 {
			cl, err := c.enter(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, cl)
		}
		third := make(chan error)
		go func() {
			cl, err := c.enter(ctx, "a")
			if err == nil {
				c.leave(cl, usage{})
			}
			third <- err
		}()
		synctest.Wait()
		select {
		case err := <-third:
			t.Fatalf("the third did not wait: %v", err)
		default:
		}
		if cl, err := c.enter(ctx, "b"); err != nil {
			t.Errorf("another client: %v", err)
		} else {
			c.leave(cl, usage{})
		}
		c.leave(held[0], usage{})
		if err := <-third; err != nil {
			t.Errorf("after a place was free: %v", err)
		}
		again, _ := c.enter(ctx, "a")
		if _, err := c.enter(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for ever: %v", err)
		}
		c.leave(again, usage{})
		c.leave(held[1], usage{})
	})
}

// The table of clients stays small, and forgets nobody who owes while others do not.
func TestClientsAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	c := newClients(ClientLimits{MaxSeries: 10}, func() time.Time { return now }, nil)
	for i := range 3 * maxClients {
		name := fmt.Sprint(i)
		if i == 5 {
			name = "owes"
		}
		cl, err := c.enter(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		used := usage{}
		if name == "owes" {
			used[useSeries] = 1e6
		}
		c.leave(cl, used)
	}
	if len(c.list) > maxClients {
		t.Errorf("%d clients", len(c.list))
	}
	if _, err := c.enter(context.Background(), "owes"); err == nil {
		t.Error("a debt was forgotten")
	}
}

// budgeted is a server with limits for each client.
func budgeted(t *testing.T, c Config) *httptest.Server {
	t.Helper()
	h := history{}
	for i := range 3 {
		steady(h, base, base+3*hour, second, 10, fmt.Sprint(i))
	}
	c.Raw, c.Logger = newRawStore(t, h), slog.New(slog.DiscardHandler)
	c.Tiers = []Tier{&fakeTier{h: h, res: 5 * minute, from: base, watermark: base + 3*hour}}
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	return srv
}

// What a request read and answered is charged to its client, whatever it asked.
func TestRequestsAreCharged(t *testing.T) {
	t.Parallel()
	at := url.Values{"query": {"sum(rate(c_total[1h]))"}, "match[]": {"c_total"}, "start": {fmt.Sprint(base / 1000)}, "end": {fmt.Sprint((base + 3*hour) / 1000)}, "time": {fmt.Sprint((base + 3*hour) / 1000)}, "step": {"300"}}
	for _, tc := range []struct {
		name, path string
		limits     ClientLimits
		flag       string
	}{
		{"samples", "/api/v1/query_range", ClientLimits{MaxSamples: 10}, "--query.client-max-samples"},
		{"samples of raw", "/api/v1/query", ClientLimits{MaxSamples: 10}, "--query.client-max-samples"},
		{"series", "/api/v1/query", ClientLimits{MaxSeries: 1}, "--query.client-max-series"},
		{"series API", "/api/v1/series", ClientLimits{MaxSeries: 1}, "--query.client-max-series"},
		{"time", "/api/v1/query_range", ClientLimits{MaxTime: time.Nanosecond}, "--query.client-max-time"},
		{"bytes", "/api/v1/query_range", ClientLimits{MaxResponseBytes: 100}, "--query.client-max-response-bytes"},
		{"bytes of labels", "/api/v1/label/instance/values", ClientLimits{MaxResponseBytes: 10}, "--query.client-max-response-bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			srv := budgeted(t, Config{Clients: tc.limits})
			get(t, srv.URL+tc.path+"?"+at.Encode())
			resp, r := get(t, srv.URL+tc.path+"?"+at.Encode())
			if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(r.Error, tc.flag) || resp.Header.Get("Retry-After") == "" {
				t.Errorf("status %d, Retry-After %q: %s", resp.StatusCode, resp.Header.Get("Retry-After"), r.Error)
			}
			if resp, _ := get(t, srv.URL+"/api/v1/status/buildinfo"); resp.StatusCode != 200 {
				t.Errorf("status page: %d", resp.StatusCode)
			}
			req, _ := http.NewRequest("GET", srv.URL+tc.path+"?"+at.Encode(), nil)
			req.SetBasicAuth("somebody", "else")
			if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != 200 {
				t.Errorf("another client: %v %v", resp, err)
			} else {
				resp.Body.Close()
			}
		})
	}
}

// Answers that are not a query's are bounded too, and never look whole when they are
// not.
func TestEveryAnswerIsBounded(t *testing.T) {
	t.Parallel()
	srv := budgeted(t, Config{MaxResponseBytes: 100})
	form := url.Values{"match[]": {`{__name__=~"c_total|x"}`}, "start": {fmt.Sprint(base / 1000)}, "end": {fmt.Sprint((base + 3*hour) / 1000)}}
	resp, r := get(t, srv.URL+"/api/v1/series?"+form.Encode())
	if resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(r.Error, "--query.max-response-bytes") {
		t.Errorf("series: status %d: %q", resp.StatusCode, r.Error)
	}
	if resp, r := get(t, srv.URL+"/api/v1/labels"); resp.StatusCode != 200 || r.Status != "success" {
		t.Errorf("labels: status %d: %q", resp.StatusCode, r.Error)
	}
	// An answer in pieces of which the second is too much ends in the middle.
	a := &API{c: Config{MaxResponseBytes: 100, Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler)}, queryable: &Queryable{}, clients: newClients(ClientLimits{}, time.Now, nil)}
	pieces := httptest.NewServer(a.edge(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			fmt.Fprint(w, strings.Repeat("x", 60)) //nolint:errcheck // the test looks at the other end
			http.NewResponseController(w).Flush()  //nolint:errcheck // as above
		}
	})))
	defer pieces.Close()
	cut, err := http.Get(pieces.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer cut.Body.Close()
	body, err := io.ReadAll(cut.Body)
	if err == nil || !cmp.Equal(len(body), 60) {
		t.Errorf("%d bytes, error %v", len(body), err)
	}
}
