package expose

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/journal"
)

// logged is an event and the line that tells of it.
func logged(j *journal.Journal, id int, e collectors.Event, rest string) string {
	j.Add(int64(id)*int64(period), &e)
	return fmt.Sprintf(`{"event":{"id":%d,"t":%d,"source":"kmsg","seq":%d,"uptime":%.6f,%s}}`, id, 1000000+100*id, e.Seq, float64(e.Mono)/1e9, rest)
}

func TestEvents(t *testing.T) {
	var j journal.Journal
	c := Config{Latest: new(history), Schema: new(collectors.Schema), Events: &j, Session: "now", Wall: func(mono int64) int64 { return 1000000 + mono/1e6 }}
	h, err := Handler(c)
	if err != nil {
		t.Fatal(err)
	}
	get := func(query string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/events"+query, nil))
		return w.Body.String()
	}
	end := func(next int, more bool) string { return fmt.Sprintf(`{"end":{"next":%d,"more":%v}}`, next, more) }
	if diff := cmp.Diff(lines(hello, end(1, false)), get("")); diff != "" {
		t.Errorf("none yet (-want +got):\n%s", diff)
	}
	one := logged(&j, 1, collectors.Event{Source: "kmsg", Seq: 40, Mono: 1500000, Level: 6, Text: []byte(`br0: port 2(eth1) "up"` + "\xff"), Devices: []string{"br0", "eth1"}},
		`"level":"info","facility":"kern","devices":["br0","eth1"],"text":"br0: port 2(eth1) \"up\"\ufffd"`)
	two := `{"gap":{"reason":"lost","source":"kmsg","from":41,"to":43,"events":3}}` + "\n" +
		logged(&j, 2, collectors.Event{Source: "kmsg", Seq: 44, Lost: 3, Level: 3, Facility: 1, Text: []byte("<b>")}, `"level":"err","facility":"user","devices":[],"text":"\u003cb\u003e"`)
	three := logged(&j, 3, collectors.Event{Source: "kmsg", Seq: 45, Level: 7, Facility: 23, Text: []byte(strings.Repeat("x", journal.TextBytes+1))},
		`"level":"debug","facility":"23","devices":[],"text":"`+strings.Repeat("x", journal.TextBytes)+`","cut":true`)
	for query, want := range map[string]string{
		"":                     lines(hello, one, two, three, end(4, false)),
		"?since=2&session=now": lines(hello, two, three, end(4, false)),
		"?since=4":             lines(hello, end(4, false)),
		"?since=99":            lines(hello, end(99, false)),
		"?max=1":               lines(hello, one, end(2, true)),
		"?since=3&max=1":       lines(hello, three, end(4, false)),
		"?since=3&session=old": lines(hello, `{"gap":{"reason":"session","session":"old"}}`, one, two, three, end(4, false)),
		"?since=x":             "since=\"x\" is not a number\n",
	} {
		if diff := cmp.Diff(want, get(query)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	for range journal.Capacity - 1 {
		j.Add(0, &collectors.Event{})
	}
	if got := get("?since=1&max=1"); !strings.HasPrefix(got, lines(hello, `{"gap":{"reason":"evicted","from":1,"to":2,"events":2}}`, three)) {
		t.Errorf("evicted: got %s", got)
	}
}

// A stream has events if they are asked for, from then on.
func TestStreamEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		h.journal.Add(0, &collectors.Event{Source: "kmsg", Seq: 1, Text: []byte("before")})
		handler := h.handler(t)
		plain, stopPlain := stream(t, handler, "/api/v1/stream?match[]=none", "")
		defer stopPlain()
		with, stopWith := stream(t, handler, "/api/v1/stream?match[]=none&events=true", "")
		defer stopWith()
		for _, event := range []func() string{plain, with} {
			event() // hello
			event() // the newest tick
		}
		want := "event: event\ndata: " + logged(&h.journal, 2, collectors.Event{Source: "kmsg", Seq: 2, Text: []byte("meanwhile")},
			`"level":"emerg","facility":"kern","devices":[],"text":"meanwhile"`) + "\n"
		if diff := cmp.Diff(want, with()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		h.take(17, 1, 1)
		for _, event := range []func() string{plain, with} {
			if got := event(); !strings.HasPrefix(got, "event: tick\n") {
				t.Errorf("got %s", got)
			}
		}
	})
	if resp := get(t, newHistory().handler(t), "/api/v1/stream?events=yes", "", ""); resp.StatusCode != 400 {
		t.Errorf("events=yes: got %d", resp.StatusCode)
	}
}
