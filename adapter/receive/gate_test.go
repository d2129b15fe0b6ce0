package receive

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
)

// gateFunc is a function as a Gate.
type gateFunc func(Claim) Verdict

func (f gateFunc) Admit(c Claim) Verdict { return f(c) }

func TestGate(t *testing.T) {
	two := newBuilder().
		sample(0, 1, "__name__", "a", "instance", "r1").
		sample(0, 2, "__name__", "b", "instance", "r1", "job", "x").
		sample(0, 3, "__name__", "c", "instance", "other").
		sample(0, 4, "__name__", "d").request()
	one := &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
		series1(labels.FromStrings("__name__", "a", "instance", "r1"), 0), series1(labels.FromStrings("__name__", "c", "instance", "other"), 0)}}
	for _, tc := range []struct {
		name    string
		typ     string
		body    marshaler
		verdict Verdict
		status  int
		retry   string
		rows    []string
		device  string
	}{
		{name: "admitted", typ: type2, body: two, verdict: Verdict{Device: "r1"}, status: 204, device: "r1",
			rows: []string{row(`{__name__="a", instance="r1"}`, 0, 0, 1), row(`{__name__="b", instance="r1", job="x"}`, 0, 0, 2),
				row(`{__name__="c", instance="other"}`, 0, 0, 3), row(`{__name__="d"}`, 0, 0, 4)}},
		{name: "renamed", typ: type2, body: two, verdict: Verdict{Device: "r2", Rename: "r2"}, status: 204, device: "r2",
			rows: []string{row(`{__name__="a", instance="r2"}`, 0, 0, 1), row(`{__name__="b", instance="r2", job="x"}`, 0, 0, 2),
				row(`{__name__="c", instance="other"}`, 0, 0, 3), row(`{__name__="d"}`, 0, 0, 4)}},
		{name: "renamed in 1.0", typ: type1, body: one, verdict: Verdict{Rename: "r2"}, status: 204, device: "r1",
			rows: []string{row(`{__name__="a", instance="r2"}`, 0, 0, 1), row(`{__name__="c", instance="other"}`, 0, 0, 1)}},
		{name: "refused", typ: type2, body: two, verdict: Verdict{Refuse: "two exporters push", RetryAfter: 2500 * time.Millisecond}, status: 503, retry: "3"},
		{name: "renamed to what is no label", typ: type2, body: two, verdict: Verdict{Rename: "\xff"}, status: 503, retry: "5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &fakeStore{}
			var claims []Claim
			var pushed []Push
			h := testHandler(t, s, func(c *Config) {
				c.Gate = gateFunc(func(c Claim) Verdict { claims = append(claims, c); return tc.verdict })
				c.Observer = ObserverFunc(func(p Push) { pushed = append(pushed, p) })
			})
			for range 2 { // the second time the label sets are known
				r := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(encode(t, tc.body)))
				r.Header.Set("Content-Type", tc.typ)
				r.Header.Set("Content-Encoding", "snappy")
				r.Header.Set(headerSender, "s1; last=1")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != tc.status || w.Header().Get("Retry-After") != tc.retry || !strings.Contains(w.Body.String(), tc.verdict.Refuse) {
					t.Fatalf("status %d, Retry-After %q: %s", w.Code, w.Header().Get("Retry-After"), w.Body)
				}
				if diff := cmp.Diff(tc.rows, s.take()); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
			}
			want := Claim{Device: "r1", RemoteAddr: "192.0.2.1:1234", Sender: "s1; last=1", Received: testNow}
			if diff := cmp.Diff([]Claim{want, want}, claims); diff != "" {
				t.Errorf("the gate was asked (-want +got):\n%s", diff)
			}
			for _, p := range pushed {
				if p.Device != tc.device || p.Sender != "s1; last=1" {
					t.Errorf("pushed %+v", p)
				}
			}
			if len(pushed) != len(tc.rows)/max(1, len(tc.rows))*2 {
				t.Errorf("the observer was told of %d pushes", len(pushed))
			}
		})
	}
}
