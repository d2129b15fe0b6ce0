package follow

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const events = `event: hello
data: {"hello":{"session":"s","version":1}}

event: series
data: {"series":[{"id":7,"name":"node_cpu_seconds_total","labels":{"cpu":"0","mode":"user"},"type":"counter"}]}

: still here

event: tick
id: s/2
data: {"tick":{"seq":1,"t":1000,"v":{"7":1.5,"8":"NaN","9":"+Inf"}}}

event: gap
data: {"gap":{"reason":"missed","from":2,"to":2,"ticks":1,"fromTime":1000,"toTime":3000}}

event: news
data: {"news":1}

event: tick
data: {"tick":{"seq":3,"t":3000,"v":{"7":2.5}}}

`

func TestReader(t *testing.T) {
	r := NewReader(strings.NewReader(events))
	var got []string
	var rates Rates
	for {
		o, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case o.Hello != nil:
			got = append(got, "hello "+o.Hello.Session)
		case o.Tick != nil:
			if o.Tick.Seq == 1 && (!math.IsNaN(o.Tick.Values[8]) || !math.IsInf(o.Tick.Values[9], 1)) {
				t.Errorf("%v", o.Tick.Values)
			}
			if v, ok := rates.Of(7, o.Tick); ok != (o.Tick.Seq == 3) || ok && v != 0.5 {
				t.Errorf("rate %v %v", v, ok)
			}
			got = append(got, "tick")
		case o.Gap != nil:
			got = append(got, o.Gap.Reason)
		case o.Series != nil:
			got = append(got, r.Series[7].Labels["mode"])
		default:
			got = append(got, "?")
		}
	}
	if d := cmp.Diff([]string{"hello s", "user", "tick", "missed", "?", "tick"}, got); d != "" {
		t.Error(d)
	}
}

func TestRates(t *testing.T) {
	var r Rates
	tick := func(ms int64, v float64) *Tick { return &Tick{Time: ms, Values: map[int]float64{1: v}} }
	for i, c := range []struct {
		t    *Tick
		want float64
		ok   bool
	}{
		{tick(0, 10), 0, false}, {tick(500, 20), 20, true}, {tick(500, 30), 0, false}, {tick(1000, 5), 0, false},
		{&Tick{Time: 1500}, 0, false}, {tick(2000, 7), 2, true}, {tick(2500, math.NaN()), 0, false},
	} {
		if got, ok := r.Of(1, c.t); got != c.want || ok != c.ok {
			t.Errorf("%d: %v %v, want %v %v", i, got, ok, c.want, c.ok)
		}
	}
}

func TestRecord(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query()["match[]"]; len(got) != 2 || got[1] != "{b=\"c\"}" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, events)
	}))
	defer srv.Close()
	body, err := Open(context.Background(), srv.URL+"/", "a", `{b="c"}`)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	var b strings.Builder
	if n, err := Record(&b, body); n != 2 || err != nil {
		t.Errorf("%d ticks, %v", n, err)
	}
	if lines := strings.Split(b.String(), "\n"); len(lines) != 7 || !strings.HasPrefix(lines[0], `{"hello"`) {
		t.Errorf("%q", lines)
	}
	if _, err := Open(context.Background(), srv.URL); err == nil || !strings.Contains(err.Error(), "400") {
		t.Error(err)
	}
	if _, err := Record(io.Discard, strings.NewReader("{nonsense}\n")); err == nil {
		t.Error("nonsense was recorded")
	}
}

// FuzzParse compares with encoding/json: what this takes is JSON, and of what both
// take they say the same.
func FuzzParse(f *testing.F) {
	for line := range strings.Lines(events) {
		f.Add(strings.TrimPrefix(line, "data: "))
	}
	f.Add(`{"series":[{"id":1,"name":"a\u00e4\ud83d\ude00\n\"","labels":{"x":"\/"}},{"id":2}],"more":[1,{"a":null}]} `)
	f.Fuzz(func(t *testing.T, s string) {
		o, err := parse([]byte(s))
		var want struct {
			Series []struct {
				ID   int    `json:"id"`
				Name string `json:"name"`
			} `json:"series"`
			Tick *struct {
				Seq uint64 `json:"seq"`
			} `json:"tick"`
		}
		if err != nil || !json.Valid([]byte(s)) || !utf8.ValidString(s) || json.Unmarshal([]byte(s), &want) != nil {
			return
		}
		if strings.Count(s, "series") > 1 || strings.Count(s, "tick") > 1 || strings.Contains(s, "null") ||
			strings.Count(s, "id") > len(o.Series) || strings.ToLower(s) != s || strings.Contains(s, "\\u") {
			return // a key that is there twice, or in another case
		}
		if len(want.Series) != len(o.Series) {
			t.Fatalf("%d series, want %d", len(o.Series), len(want.Series))
		}
		for i, w := range want.Series {
			if o.Series[i].ID != w.ID || o.Series[i].Name != w.Name {
				t.Errorf("%+v, want %+v", o.Series[i], w)
			}
		}
		if (o.Tick != nil) != (want.Tick != nil) || o.Tick != nil && o.Tick.Seq != want.Tick.Seq {
			t.Errorf("tick %+v, want %+v", o.Tick, want.Tick)
		}
	})
}

func TestParse(t *testing.T) {
	o, err := parse([]byte(`{"series":[{"id":1,"name":"a\u00e4\ud83d\ude00\n\"","labels":{"x":"\/","y":""}},{"id":2}],"more":[1,{"a":null}]} `))
	want := []Series{{1, "aä😀\n\"", map[string]string{"x": "/", "y": ""}}, {2, "", map[string]string{}}}
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, o.Series); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", "{", "[]", `{"a"}`, `{"a":}`, `{"a":1 2}`, `{"a":1}x`, `{"tick":{"seq":1.5}}`, `{"tick":{"v":{"x":1}}}`,
		`{"tick":{"v":{"1":"y"}}}`, `{"a":"`, `{"a":"\u12"}`, `{"a":"\q"}`, `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`} {
		if _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(events)
	f.Add(`{"tick":{"v":{"x":1}}}`)
	f.Fuzz(func(t *testing.T, s string) {
		r := NewReader(strings.NewReader(s))
		var rates Rates
		for range 100 {
			o, err := r.Next()
			if err != nil {
				return
			}
			if o.Tick != nil {
				for id := range o.Tick.Values {
					if v, ok := rates.Of(id, o.Tick); ok && v < 0 {
						t.Errorf("rate %v", v)
					}
				}
			}
		}
	})
}
