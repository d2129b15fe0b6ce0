package ruler

import (
	"math"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"
)

const testRules = `
groups:
  - name: g
    rules:
      - record: instance:x:double
        expr: 2 * x
      - alert: High
        expr: instance:x:double > 10
        for: 2m
        labels: {severity: warning}
        annotations: {summary: '{{ $labels.instance }} has {{ $value }} at {{ $externalLabels.site }}'}
`

func TestEvaluate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		write(t, filepath.Join(w.dir, "r.yml"), testRules)
		write(t, filepath.Join(w.dir, "r_test.yml"), "this is promtool's")
		r, stop := w.start(w.config())
		defer stop()

		w.run("x", 3, time.Minute)
		if got := w.take(); len(got) != 0 {
			t.Errorf("below the threshold %d alerts are sent", len(got))
		}
		w.run("x", 7, 100*time.Second)
		if got := w.take(); len(got) != 0 {
			t.Errorf("pending, %d alerts are sent", len(got))
		}
		w.run("x", 7, time.Minute)
		got := w.take()
		if len(got) == 0 {
			t.Fatalf("no alert is sent; log:\n%s", &w.log)
		}
		n := got[0]
		if !n.firing(time.Now()) || n.path != "http://alerts.test/prefix/api/v2/alerts" ||
			n.GeneratorURL != "http://adapter.test:9748/x/api/v1/query?query=instance%3Ax%3Adouble+%3E+10" {
			t.Errorf("sent %+v", n)
		}
		if diff := cmp.Diff(map[string]string{"alertname": "High", "instance": "r1", "severity": "warning", "site": "lab"}, n.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"summary": "r1 has 14 at lab"}, n.Annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		w.run("x", 3, time.Minute)
		got = w.take()
		if len(got) == 0 || got[len(got)-1].firing(time.Now()) {
			t.Errorf("not resolved: %+v", got)
		}
		checkStored(t, w)
		results := w.stored("instance:x:double")[`{__name__="instance:x:double", instance="r1"}`]
		last := time.UnixMilli(results[len(results)-1].t)
		if got := r.RuleGroups()[0].GetLastEvalTimestamp().Truncate(time.Millisecond).Sub(last); got != 10*time.Second {
			t.Errorf("the last result is %s older than its evaluation, want the query offset", got)
		}
	})
}

// checkStored looks at what TestEvaluate's rules left in the store.
func checkStored(t *testing.T, w *world) {
	t.Helper()
	x, double := w.stored("x"), w.stored("instance:x:double")
	at := map[int64]float64{}
	for _, s := range x[`{__name__="x", instance="r1"}`] {
		at[s.t] = s.v
	}
	results := double[`{__name__="instance:x:double", instance="r1"}`]
	if len(results) < 10 {
		t.Errorf("%d results are stored", len(results))
	}
	for i, s := range results {
		// A result carries the time it looks at, QueryOffset before its evaluation.
		if v, ok := at[s.t-s.t%1000]; !ok || s.v != 2*v {
			t.Errorf("result %d at %d is %v; the sample then is %v", i, s.t, s.v, v)
		}
		if i > 0 && s.t-results[i-1].t != 15_000 {
			t.Errorf("results at %d and %d", results[i-1].t, s.t)
		}
	}
	for _, name := range []string{
		`{__name__="ALERTS", alertname="High", alertstate="pending", instance="r1", severity="warning"}`,
		`{__name__="ALERTS", alertname="High", alertstate="firing", instance="r1", severity="warning"}`,
	} {
		s := w.stored("ALERTS")[name]
		if len(s) < 3 || s[0].v != 1 || !math.IsNaN(s[len(s)-1].v) {
			t.Errorf("%s is %v; want ones and an end", name, s)
		}
	}
	state := w.stored("ALERTS_FOR_STATE")[`{__name__="ALERTS_FOR_STATE", alertname="High", instance="r1", severity="warning"}`]
	if len(state) < 3 {
		t.Errorf("ALERTS_FOR_STATE is %v", state)
	}
}

func TestForSurvivesRestart(t *testing.T) {
	for _, test := range []struct {
		name        string
		before      time.Duration // pending before the restart
		down        time.Duration
		firesWithin time.Duration // after the start
		notBefore   time.Duration
	}{
		// Of the two minutes one and a half were over; a minute is the least.
		{"pending", 2 * time.Minute, 20 * time.Second, 2 * time.Minute, time.Minute},
		// The time when nothing was looked at does not count.
		{"down for long", 75 * time.Second, 30 * time.Minute, 2*time.Minute + 15*time.Second, time.Minute + 15*time.Second},
		{"fired", 4 * time.Minute, 20 * time.Second, 75 * time.Second, 0},
		{"too long ago", 4 * time.Minute, 2 * time.Hour, 3 * time.Minute, 2 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.close()
				write(t, filepath.Join(w.dir, "r.yml"), testRules)
				_, stop := w.start(w.config())
				w.run("x", 7, test.before)
				stop()
				w.take()
				time.Sleep(test.down)
				_, stop = w.start(w.config())
				defer stop()
				w.run("x", 7, test.notBefore)
				if got := w.take(); len(got) != 0 {
					t.Errorf("fires within %s of the start", test.notBefore)
				}
				w.run("x", 7, test.firesWithin-test.notBefore)
				if got := w.take(); len(got) == 0 || !got[len(got)-1].firing(time.Now()) {
					t.Errorf("does not fire within %s of the start: %+v", test.firesWithin, got)
				}
			})
		})
	}
}

// TestStop has an Alertmanager that does not answer: the stop is over in StopTimeout
// all the same.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		write(t, filepath.Join(w.dir, "r.yml"), strings.ReplaceAll(testRules, "for: 2m", "for: 0s"))
		c := w.config()
		// More is waiting than is under way.
		c.Interval, c.ResendDelay, c.StopTimeout = time.Second, time.Second, 3*time.Second
		w.hang = true
		_, stop := w.start(c)
		w.run("x", 7, time.Minute)
		began := time.Now()
		stop()
		if d := time.Since(began); d > c.StopTimeout {
			t.Errorf("the stop took %s", d)
		}
	})
}

func TestNew(t *testing.T) {
	u := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		for _, test := range []struct {
			name   string
			change func(*Config)
			want   string
		}{
			{"no engine", func(c *Config) { c.Engine = nil }, "Engine"},
			{"no storage", func(c *Config) { c.Queryable = nil }, "Queryable"},
			{"no store", func(c *Config) { c.Store = nil }, "Store"},
			{"pattern", func(c *Config) { c.Files = []string{"["} }, "pattern"},
			{"offset", func(c *Config) { c.QueryOffset = -1 }, "QueryOffset"},
			{"address", func(c *Config) { c.Alertmanagers = []*url.URL{u("ftp://user:secret@x")} }, "ftp://user:xxxxx@x"},
			{"no host", func(c *Config) { c.Alertmanagers = []*url.URL{u("localhost:9093")} }, "no http"},
		} {
			c := w.config()
			test.change(&c)
			if _, err := New(c); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v", test.name, err)
			}
		}
	})
}

func TestAlertmanagers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		write(t, filepath.Join(w.dir, "r.yml"), strings.ReplaceAll(testRules, "for: 2m", "for: 0s"))
		c := w.config()
		second, err := url.Parse("https://other.test:9093")
		if err != nil {
			t.Fatal(err)
		}
		c.Alertmanagers = append(c.Alertmanagers, second)
		r, stop := w.start(c)
		defer stop()
		w.run("x", 7, time.Minute)
		got := map[string]bool{}
		for _, n := range w.take() {
			got[n.path] = true
		}
		if diff := cmp.Diff(map[string]bool{"http://alerts.test/prefix/api/v2/alerts": true, "https://other.test:9093/api/v2/alerts": true}, got); diff != "" {
			t.Errorf("sent to (-want +got):\n%s", diff)
		}
		if n := len(r.Alertmanagers()); n != 2 {
			t.Errorf("%d Alertmanagers are listed", n)
		}
		h := &promconfig.HTTPClientConfig{BearerToken: "token"}
		if a := alertmanager(second, h); string(a.HTTPClientConfig.BearerToken) != "token" {
			t.Errorf("the client is configured as %+v", a.HTTPClientConfig)
		}
	})
}
