package ruler

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// chainedRules have results for each device, over all of them, and of those results.
const chainedRules = `groups:
- name: later
  interval: 1m
  rules:
  - record: all:x:max5m
    expr: max_over_time(all:x:sum[5m])
- name: first
  interval: 15s
  rules:
  - record: instance:x:rate1m
    expr: rate(x[1m])
  - record: all:x:sum
    expr: sum(x)
  - record: all:x:count
    expr: count(x)
- name: alerts
  rules:
  - alert: Few
    expr: count(x) < 2
`

// results are all that rules have recorded.
func (w *world) results() map[string]map[string][]sample {
	out := map[string]map[string][]sample{}
	for _, n := range []string{"instance:x:rate1m", "all:x:sum", "all:x:count", "all:x:max5m", "ALERTS"} {
		out[n] = w.stored(n)
	}
	return out
}

// at pushes a sample of a device at a time, and tells the ruler.
func (w *world) at(r *Ruler, instance string, t time.Time, v float64) {
	w.t.Helper()
	app := w.raw.AppenderV2(context.Background())
	if _, err := app.Append(0, labels.FromStrings("__name__", "x", "instance", instance), 0, t.UnixMilli(), v, nil, nil, storage.AOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if err := app.Commit(); err != nil {
		w.t.Fatal(err)
	}
	r.Late(t.UnixMilli(), t.UnixMilli())
}

// TestLateSamplesAreEvaluated: what rules recorded of a fleet, of which a device was
// cut off for a while and then sent what it had, is what they record when nothing is
// late.
func TestLateSamplesAreEvaluated(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "r.yml"), chainedRules)
	run := func(from, to int) (results map[string]map[string][]sample, filled float64) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.close()
			w.dir = dir
			c := w.config()
			c.FillWindow, c.FillDelay = time.Hour, 10*time.Second
			r, stop := w.start(c)
			began := time.Now()
			value := func(i int) float64 { return float64(i * i % 1000) }
			for i := range 900 {
				now := began.Add(time.Duration(i) * time.Second)
				w.at(r, "r1", now, float64(i))
				if i == to {
					for j := from; j < to; j++ {
						w.at(r, "r2", began.Add(time.Duration(j)*time.Second), value(j))
					}
				}
				if i < from || i >= to {
					w.at(r, "r2", now, value(i))
				}
				time.Sleep(time.Second)
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			stop()
			results, filled = w.results(), testutil.ToFloat64(r.metrics.filled)
			if n := testutil.ToFloat64(r.metrics.fillFailures); n != 0 {
				t.Errorf("%v evaluations failed:\n%s", n, &w.log)
			}
		})
		return results, filled
	}
	want, filled := run(900, 900)
	if filled != 0 {
		t.Errorf("%v results were replaced although nothing was late", filled)
	}
	got, filled := run(150, 600)
	if filled < 50 {
		t.Errorf("%v results were replaced", filled)
	}
	if len(got["ALERTS"]) == 0 || len(want["ALERTS"]) != 0 {
		t.Errorf("alerts follow what was known then: %v, in order %v", got["ALERTS"], want["ALERTS"])
	}
	delete(got, "ALERTS")
	delete(want, "ALERTS")
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sample{}), cmp.Comparer(func(a, b float64) bool {
		return a == b || math.IsNaN(a) && math.IsNaN(b)
	})); diff != "" {
		t.Errorf("recorded (-in order +late):\n%.4000s", diff)
	}
}

// TestMissedSlotsAreEvaluated: what was not evaluated while the adapter was down is
// evaluated when what was sampled meanwhile has come.
func TestMissedSlotsAreEvaluated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		write(t, filepath.Join(w.dir, "r.yml"), chainedRules)
		c := w.config()
		c.FillWindow, c.FillDelay = time.Hour, 10*time.Second
		r, stop := w.start(c)
		began := time.Now()
		second := func() {
			w.at(r, "r1", time.Now(), time.Since(began).Seconds())
			time.Sleep(time.Second)
			synctest.Wait()
		}
		for range 120 {
			second()
		}
		stop()
		down := time.Now()
		for range 300 {
			second() // the device goes on; here, for simplicity, it is stored at once
		}
		c = w.config()
		c.FillWindow, c.FillDelay, c.Down = time.Hour, 10*time.Second, Span{down, time.Now()}
		r, stop = w.start(c)
		for range 120 {
			second()
		}
		stop()
		for name, list := range w.stored("all:x:sum") {
			for i := range list[1:] {
				if gap := list[i+1].t - list[i].t; gap > 16_000 {
					t.Errorf("%s has a hole of %d ms at %d", name, gap, list[i].t)
				}
			}
			if len(list) < 30 {
				t.Errorf("%s has %d samples", name, len(list))
			}
		}
	})
}

func TestBackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		file := filepath.Join(w.dir, "r.yml")
		write(t, file, "groups: []")
		c := w.config()
		c.FillWindow = time.Hour
		r, stop := w.start(c)
		defer stop()
		w.run("x", 7, 10*time.Minute)
		began := time.Now().Add(-10 * time.Minute)
		write(t, file, chainedRules)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		ask := func(method string, form url.Values) (int, string) {
			t.Helper()
			rec := httptest.NewRecorder()
			r.ServeBackfill(rec, httptest.NewRequest(method, "/api/v1/rules/backfill?"+form.Encode(), nil))
			return rec.Code, rec.Body.String()
		}
		for form, want := range map[string]string{
			"":                               "from",
			"from=yesterday":                 "yesterday",
			"from=2000-01-01T00:00:00Z&to=x": "to",
			"from=100&to=50":                 "before",
			"from=100":                       "--rules.fill-window",
			"from=" + began.Format(time.RFC3339) + "&group=none":   "none",
			"from=" + began.Format(time.RFC3339) + "&group=alerts": "alerts",
		} {
			v, err := url.ParseQuery(form)
			if err != nil {
				t.Fatal(err)
			}
			if code, body := ask(http.MethodPost, v); code != http.StatusBadRequest || !strings.Contains(body, want) {
				t.Errorf("%s: status %d, %s, want %q", form, code, body, want)
			}
		}
		if code, _ := ask(http.MethodPut, nil); code != http.StatusMethodNotAllowed {
			t.Errorf("PUT: status %d", code)
		}
		done := func() (list []Backfill) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			_, body := ask(http.MethodGet, nil)
			if err := json.Unmarshal([]byte(body), &struct{ Data *[]Backfill }{&list}); err != nil {
				t.Fatal(err)
			}
			return list
		}
		form := url.Values{"from": {began.Format(time.RFC3339)}, "to": {fmt.Sprint(time.Now().Unix())}, "group": {"first"}}
		if code, body := ask(http.MethodPost, form); code != http.StatusAccepted || !strings.Contains(body, `"state":"waiting"`) {
			t.Fatalf("status %d: %s", code, body)
		}
		list := done()
		if len(list) != 1 || list[0].State != "done" || list[0].Evaluations < 38 || list[0].Done != list[0].Evaluations || list[0].Changed < 38*3-6 {
			t.Fatalf("evaluations %+v", list)
		}
		for name, s := range w.stored("all:x:sum") {
			if s[0].t > began.Add(16*time.Second).UnixMilli() || s[0].v != 7 {
				t.Errorf("%s begins with %v, want 7 near %d", name, s[0], began.UnixMilli())
			}
		}
		if n := len(w.stored("all:x:max5m")); n > 1 {
			t.Errorf("a group that was not asked for has %d series", n)
		}
		// Again: nothing changes.
		ask(http.MethodPost, form)
		if list = done(); len(list) != 2 || list[1].State != "done" || list[1].Changed != 0 {
			t.Errorf("the second time: %+v", list)
		}
	})
}

func TestFollower(t *testing.T) {
	lag := time.Duration(0)
	f := follower{least: 15 * time.Second, most: 90 * time.Second, lag: func() time.Duration { return lag }}
	at := time.Unix(0, 0)
	for i, step := range []struct {
		after, lag, want time.Duration
	}{
		{0, 0, 15 * time.Second},
		{time.Second, 14 * time.Second, 15 * time.Second},
		{time.Second, 16 * time.Second, 30 * time.Second},
		{time.Second, 40 * time.Second, time.Minute},
		{time.Second, time.Hour, 90 * time.Second},
		{time.Second, 5 * time.Second, 90 * time.Second}, // it holds
		{9 * time.Minute, 5 * time.Second, 90 * time.Second},
		{time.Second, 80 * time.Second, 90 * time.Second}, // and begins to hold anew
		{time.Second, 5 * time.Second, 90 * time.Second},
		{9 * time.Minute, 5 * time.Second, 90 * time.Second},
		{2 * time.Minute, 5 * time.Second, 15 * time.Second},
	} {
		at, lag = at.Add(step.after), step.lag
		if got := f.offset(at); got != step.want {
			t.Errorf("step %d, lag %s: offset %s, want %s", i, step.lag, got, step.want)
		}
	}
}

func TestLateSpans(t *testing.T) {
	var l late
	at := time.Unix(0, 0)
	for _, s := range []span{{100, 200}, {300, 400}, {500, 600}, {201, 250}, {350, 520}, {50, 60}, {1000, 1000}} {
		l.add(s, at)
	}
	if got := l.take(at.Add(9*time.Second), 10*time.Second, time.Minute); got != nil {
		t.Errorf("taken too early: %v", got)
	}
	want := []span{{50, 60}, {100, 250}, {300, 600}, {1000, 1000}}
	if diff := cmp.Diff(want, l.take(at.Add(10*time.Second), 10*time.Second, time.Minute), cmp.AllowUnexported(span{})); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if got := l.take(at.Add(time.Hour), 0, 0); got != nil {
		t.Errorf("taken twice: %v", got)
	}
	for i := range int64(3 * maxSpans) {
		l.add(span{i * 100, i*100 + 10}, at)
	}
	got := l.take(at.Add(time.Hour), 0, 0)
	if len(got) != maxSpans || got[0].from != 0 || got[len(got)-1].to != (3*maxSpans-1)*100+10 {
		t.Errorf("%d spans from %d to %d", len(got), got[0].from, got[len(got)-1].to)
	}
}

func TestReaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		write(t, filepath.Join(w.dir, "r.yml"), `groups:
- {name: a, rules: [{record: "a:x", expr: "avg_over_time(b:x[1h]) + max_over_time(rate(y[5m])[10m:1m] offset 3m)"}]}
- {name: b, rules: [{record: "b:x", expr: "rate(x[5m])"}, {record: "b:self", expr: "b:self + x"}]}
- {name: c, rules: [{alert: "C", expr: "rate(x[1d])"}]}
`)
		r, stop := w.start(w.config())
		defer stop()
		got := map[string]time.Duration{}
		groups := r.RuleGroups()
		for i, d := range reaches(groups, 5*time.Minute) {
			got[groups[i].Name()] = d
		}
		want := map[string]time.Duration{"a": 60*time.Minute + 5*time.Minute + 5*time.Minute + 5*time.Minute, "b": 10 * time.Minute, "c": 0}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reaches (-want +got):\n%s", diff)
		}
	})
}
