package receive

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
)

// TestForcedLabels: what is forced replaces what is sent, in either protocol and
// whatever the order, and the device is who it is known to be.
func TestForcedLabels(t *testing.T) {
	forcedLabels := []labels.Label{{Name: "instance", Value: "r1"}, {Name: "site", Value: "lab"}}
	two := newBuilder().
		sample(0, 1, "__name__", "a").
		sample(0, 2, "__name__", "b", "instance", "victim", "job", "x").
		sample(0, 3, "__name__", "c", "instance", "victim", "instance", "other", "site", "bank", "zone", "z").
		sample(0, 4, "site", "bank", "__name__", "d", "aaa", "x").
		sample(0, 5, "__name__", "e", "instance", "", "zone", "z").request()
	rows := func(instance string) []string {
		return []string{
			row(`{__name__="a", instance="`+instance+`", site="lab"}`, 0, 0, 1),
			row(`{__name__="b", instance="`+instance+`", job="x", site="lab"}`, 0, 0, 2),
			row(`{__name__="c", instance="`+instance+`", site="lab", zone="z"}`, 0, 0, 3),
			row(`{__name__="d", aaa="x", instance="`+instance+`", site="lab"}`, 0, 0, 4),
			row(`{__name__="e", instance="`+instance+`", site="lab", zone="z"}`, 0, 0, 5),
		}
	}
	one := &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
		series1(labels.FromStrings("__name__", "a", "instance", "victim"), 0), series1(labels.FromStrings("__name__", "c", "zone", "z"), 0)}}
	for _, tc := range []struct {
		name, typ string
		body      marshaler
		rename    string
		device    string
		rows      []string
	}{
		{"2.0", type2, two, "", "r1", rows("r1")},
		{"2.0 of a clone", type2, two, "r1~2", "r1~2", rows("r1~2")},
		{"1.0", type1, one, "", "r1", []string{
			row(`{__name__="a", instance="r1", site="lab"}`, 0, 0, 1), row(`{__name__="c", instance="r1", site="lab", zone="z"}`, 0, 0, 1)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var pushed []Push
			s := &fakeStore{}
			h := testHandler(t, s, func(c *Config) {
				c.Door = DoorFunc(func(*http.Request) Entry { return Entry{Labels: forcedLabels} })
				c.Gate = gateFunc(func(c Claim) Verdict {
					if c.Device != "r1" || c.Sender != "s1; last=1" {
						t.Errorf("the gate is asked about %+v", c)
					}
					return Verdict{Device: tc.device, Rename: tc.rename}
				})
				c.Observer = ObserverFunc(func(p Push) { pushed = append(pushed, p) })
			})
			for range 2 { // the second time the label sets are known
				r := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(encode(t, tc.body)))
				r.Header.Set("Content-Type", tc.typ)
				r.Header.Set("Content-Encoding", "snappy")
				r.Header.Set(headerSender, `s1; last=1; instance="victim"`)
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != http.StatusNoContent {
					t.Fatalf("status %d: %s", w.Code, w.Body)
				}
				if diff := cmp.Diff(tc.rows, s.take()); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
			}
			for _, p := range pushed {
				if p.Device != tc.device || p.Sender != "s1; last=1" {
					t.Errorf("the observer is told %+v", p)
				}
			}
			// Nothing of it stays for the next.
			h.cfg.Door, h.cfg.Gate = nil, nil
			post(h, type2, encode(t, newBuilder().sample(0, 1, "__name__", "a", "instance", "free").request()))
			if diff := cmp.Diff([]string{row(`{__name__="a", instance="free"}`, 0, 0, 1)}, s.take()); diff != "" {
				t.Errorf("stored next (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDoorRefuses(t *testing.T) {
	s := &fakeStore{}
	h := testHandler(t, s, func(c *Config) {
		c.Door = DoorFunc(func(r *http.Request) Entry { return Entry{Status: 401, Text: "who are you?", Challenge: "Bearer"} })
	})
	body := &countingReader{r: bytes.NewReader(encode(t, newBuilder().sample(0, 1, "__name__", "a").request()))}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1/write", body))
	if w.Code != 401 || w.Header().Get("WWW-Authenticate") != "Bearer" || w.Body.String() != "who are you?\n" || written(w) != "//" {
		t.Errorf("status %d, %v: %s", w.Code, w.Header(), w.Body)
	}
	if body.n != 0 || len(s.take()) != 0 {
		t.Error("the body was looked at")
	}
}
