package expose

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ticktier/ticktier/collectors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	hello   = `{"hello":{"session":"now","version":1}}`
	seriesA = `{"id":0,"name":"a_total","labels":{"cpu":"0"},"type":"counter","unit":"seconds"}`
	seriesB = `{"id":1,"name":"b","labels":{"x":"\"\u003c\\"},"type":"gauge"}`
	both    = `{"series":[` + seriesA + `,` + seriesB + `]}`
	missed  = `{"gap":{"reason":"missed","from":13,"to":14,"ticks":2,"fromTime":1001200,"toTime":1001500}}`
)

func lines(ls ...string) string { return strings.Join(ls, "\n") + "\n" }

func TestSamples(t *testing.T) {
	tick10 := `{"tick":{"seq":10,"t":1001000,"v":{"0":10,"1":1}}}`
	tick11 := `{"tick":{"seq":11,"t":1001100,"v":{"0":11}}}`
	tick12 := `{"tick":{"seq":12,"t":1001200,"v":{"0":12,"1":1.2}}}`
	tick15 := `{"tick":{"seq":15,"t":1001500,"v":{"0":15}}}`
	tick16 := `{"tick":{"seq":16,"t":1001600,"v":{"0":16,"1":1.6}}}`
	for _, c := range []struct {
		name, query string
		gone        int
		want        string
	}{
		{"all", "", 0, lines(hello, both, tick10, tick11, tick12, missed, tick15, tick16, `{"end":{"next":17,"more":false}}`)},
		{"since", "?since=12&session=now", 0, lines(hello, both, tick12, missed, tick15, tick16, `{"end":{"next":17,"more":false}}`)},
		{"since a missed slot", "?since=14", 0, lines(hello, `{"gap":{"reason":"missed","from":14,"to":14,"ticks":1,"fromTime":1000000,"toTime":1001500}}`,
			both, tick15, tick16, `{"end":{"next":17,"more":false}}`)},
		{"since the future", "?since=17", 0, lines(hello, `{"end":{"next":17,"more":false}}`)},
		{"max", "?max=2", 0, lines(hello, both, tick10, tick11, `{"end":{"next":12,"more":true}}`)},
		{"max just enough", "?max=2&since=15", 0, lines(hello, both, tick15, tick16, `{"end":{"next":17,"more":false}}`)},
		{"evicted", "?since=10", 2, lines(hello, `{"gap":{"reason":"evicted","from":10,"to":11,"ticks":2,"fromTime":1001000,"toTime":1001200}}`,
			both, tick12, missed, tick15, tick16, `{"end":{"next":17,"more":false}}`)},
		{"evicted and not asked for", "", 2, lines(hello, both, tick12, missed, tick15, tick16, `{"end":{"next":17,"more":false}}`)},
		{"another session", "?since=16&session=old", 3, lines(hello, `{"gap":{"reason":"session","session":"old"}}`,
			both, tick15, tick16, `{"end":{"next":17,"more":false}}`)},
		{"match", "?since=16&match[]=b", 0, lines(hello, `{"series":[`+seriesB+`]}`, `{"tick":{"seq":16,"t":1001600,"v":{"1":1.6}}}`, `{"end":{"next":17,"more":false}}`)},
		{"match two", `?since=16&match[]=b&match[]=a_total{cpu="0"}`, 0, lines(hello, both, tick16, `{"end":{"next":17,"more":false}}`)},
		{"match nothing", "?since=16&match[]=c", 0, lines(hello, `{"tick":{"seq":16,"t":1001600,"v":{}}}`, `{"end":{"next":17,"more":false}}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory()
			h.gone = c.gone
			resp := get(t, h.handler(t), "/api/v1/samples"+c.query)
			if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "application/x-ndjson" {
				t.Errorf("status %d, Content-Type %q", resp.StatusCode, got)
			}
			got := body(t, resp)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			for line := range strings.Lines(got) {
				if !json.Valid([]byte(line)) {
					t.Errorf("not JSON: %s", line)
				}
			}
		})
	}
}

// A series that appears is named before the first tick that has it, and what JSON
// has no number for is a string.
func TestSamplesSeriesAppear(t *testing.T) {
	h := newHistory()
	h.schema.Add(0, &collectors.Metric{Name: "c", Kind: collectors.Float})
	h.take(17, 1, 1700, 0, int64(math.Float64bits(math.Inf(-1))))
	want := lines(hello, both, `{"tick":{"seq":16,"t":1001600,"v":{"0":16,"1":1.6}}}`,
		`{"series":[{"id":2,"name":"c","labels":{},"type":"unknown"}]}`,
		`{"tick":{"seq":17,"t":1001700,"v":{"0":17,"2":"-Inf"}}}`, `{"end":{"next":18,"more":false}}`)
	if diff := cmp.Diff(want, body(t, get(t, h.handler(t), "/api/v1/samples?since=16"))); diff != "" {
		t.Error(diff)
	}
}

func TestSamplesRefused(t *testing.T) {
	h := newHistory().handler(t)
	for query, want := range map[string]string{
		"?since=-1":                            "since",
		"?since=x":                             "since",
		"?max=0":                               "max",
		"?max=100001":                          "max",
		"?match=a":                             "match",
		"?since=1&since=2":                     "since",
		"?max=1;since=2":                       "parameters",
		"?max=%zz":                             "parameters",
		"?match[]=a{":                          "match[]",
		"?match[]=":                            "match[]",
		"?match[]=a{b=~\"(\"}":                 "match[]",
		"?" + strings.Repeat("match[]=a&", 65): "match[]",
	} {
		req := httptest.NewRequest("GET", "/api/v1/samples", nil)
		req.URL.RawQuery = strings.TrimPrefix(query, "?")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: %d %q, want 400 and %q", query, rec.Code, rec.Body, want)
		}
	}
}

// TestStreamRefused: a stream has no end, and so no max.
func TestStreamRefused(t *testing.T) {
	for query, want := range map[string]string{"?max=5": "max", "?since=x": "since", "?match[]={": "match[]"} {
		resp := get(t, newHistory().handler(t), "/api/v1/stream"+query)
		if b := body(t, resp); resp.StatusCode != 400 || !strings.Contains(b, want) {
			t.Errorf("%s: %d %q", query, resp.StatusCode, b)
		}
	}
}

func TestSamplesGzipAndLarge(t *testing.T) {
	h := newHistory()
	for seq := range uint64(5000) {
		h.take(20+seq, 1, int64(seq), 0)
	}
	handler := h.handler(t)
	want := body(t, get(t, handler, "/api/v1/samples?max=6000"))
	if n := strings.Count(want, "\n"); n != 5005+1+1+2+1 {
		t.Errorf("%d lines", n)
	}
	resp := get(t, handler, "/api/v1/samples?max=6000", "Accept-Encoding", "gzip")
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(z)
	if err != nil || string(got) != want {
		t.Errorf("%d bytes unzipped, want %d: %v", len(got), len(want), err)
	}
}

func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		event, stop := stream(t, h.handler(t), "/api/v1/stream?match[]=a_total", "")
		defer stop()
		want := func(want string) {
			t.Helper()
			if diff := cmp.Diff(want, event()); diff != "" {
				t.Fatal(diff)
			}
		}
		want("event: hello\ndata: " + hello + "\n")
		want("event: series\ndata: {\"series\":[" + seriesA + "]}\n")
		want("event: tick\nid: now/17\ndata: {\"tick\":{\"seq\":16,\"t\":1001600,\"v\":{\"0\":16}}}\n")
		h.take(18, 1, 1, 2)
		want("event: gap\ndata: {\"gap\":{\"reason\":\"missed\",\"from\":17,\"to\":17,\"ticks\":1,\"fromTime\":1001600,\"toTime\":1001800}}\n")
		want("event: tick\nid: now/19\ndata: {\"tick\":{\"seq\":18,\"t\":1001800,\"v\":{\"0\":0.01}}}\n")
		start := time.Now()
		want(": still here\n")
		if d := time.Since(start); d < beat || d > beat+2*poll {
			t.Errorf("a sign of life after %v", d)
		}
	})
}

func TestStreamResumes(t *testing.T) {
	for id, want := range map[string]string{
		"now/15": `{"tick":{"seq":15,`,
		"old/15": `{"gap":{"reason":"session","session":"old"}}`,
		"":       `{"tick":{"seq":16,`,
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHistory()
			event, stop := stream(t, h.handler(t), "/api/v1/stream", id)
			defer stop()
			event() // hello
			got := event()
			if strings.HasPrefix(got, "event: series") {
				got = event()
			}
			if !strings.Contains(got, want) {
				t.Errorf("after %q: %s, want %s", id, got, want)
			}
		})
	}
	if resp := get(t, newHistory().handler(t), "/api/v1/stream", "Last-Event-ID", "nonsense"); resp.StatusCode != 400 {
		t.Errorf("Last-Event-ID nonsense: %d", resp.StatusCode)
	}
}

// A client that does not read for a while meets a gap and the newest tick; one that
// asked for the past gets all of it, however long it takes.
func TestStreamSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		handler := h.handler(t)
		event, stop := stream(t, handler, "/api/v1/stream", "")
		defer stop()
		next := uint64(17)
		take := func(n int) {
			for range n {
				h.take(next, 3, int64(next), 0)
				next++
			}
		}
		for !strings.Contains(event(), `"seq":16`) {
		}
		time.Sleep(poll) // fake: the stream has caught up
		synctest.Wait()
		take(10000) // 1000 s
		time.Sleep(poll)
		synctest.Wait()
		ticks := 0
		for {
			e := event()
			if strings.HasPrefix(e, "event: gap") {
				want := fmt.Sprintf(`"reason":"slow","from":%d,"to":%d,"ticks":%d,`, 17+ticks, next-2, 10000-1-ticks)
				if !strings.Contains(e, want) {
					t.Errorf("%s, want %s", e, want)
				}
				break
			}
			ticks++
		}
		if ticks == 0 || ticks > 2000 {
			t.Errorf("%d ticks before the gap", ticks)
		}
		if e := event(); !strings.Contains(e, fmt.Sprintf(`"seq":%d,`, next-1)) {
			t.Errorf("after the gap: %s, want tick %d", e, next-1)
		}

		past, stopPast := stream(t, handler, "/api/v1/stream?since=17", "")
		defer stopPast()
		for seq := uint64(17); seq < next; {
			e := past()
			switch {
			case strings.Contains(e, fmt.Sprintf(`"seq":%d,`, seq)):
				seq++
			case strings.HasPrefix(e, "event: gap"):
				t.Fatalf("before tick %d: %s", seq, e)
			}
		}
	})
}

// HEAD on a stream does not wait for its end.
func TestStreamHead(t *testing.T) {
	rec := httptest.NewRecorder()
	newHistory().handler(t).ServeHTTP(rec, httptest.NewRequest("HEAD", "/api/v1/stream", nil))
	if got := rec.Header().Get("Content-Type"); rec.Code != 200 || got != "text/event-stream" || rec.Body.Len() > 0 {
		t.Errorf("%d %q with %d bytes", rec.Code, got, rec.Body.Len())
	}
}

func TestTooManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory().handler(t)
		var stops []func()
		for range maxClients {
			event, stop := stream(t, h, "/api/v1/stream", "")
			event()
			stops = append(stops, stop)
		}
		resp := get(t, h, "/api/v1/samples")
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("one client too many: %d", resp.StatusCode)
		}
		for _, stop := range stops {
			stop()
		}
		if resp := get(t, h, "/api/v1/samples"); resp.StatusCode != 200 {
			t.Errorf("when the others are gone: %d", resp.StatusCode)
		}
	})
}

// A connection serves another request long after samples set a deadline on it.
func TestSamplesDeadlineIsTakenBack(t *testing.T) {
	rec := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	newHistory().handler(t).ServeHTTP(rec, httptest.NewRequest("GET", "/api/v1/samples", nil))
	if n := len(rec.set); n < 2 || rec.set[0].IsZero() || !rec.set[n-1].IsZero() {
		t.Errorf("deadlines %v, want some and then none", rec.set)
	}
}

type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}
