package ruler

import (
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/rules"
)

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		file, second := filepath.Join(w.dir, "r.yml"), filepath.Join(w.dir, "s.yml")
		write(t, file, testRules)
		r, stop := w.start(w.config())
		post := func(status int, parts ...string) {
			t.Helper()
			rec := httptest.NewRecorder()
			r.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/-/reload", nil))
			if rec.Code != status {
				t.Errorf("status %d: %s", rec.Code, rec.Body)
			}
			for _, p := range parts {
				if !strings.Contains(rec.Body.String(), p) {
					t.Errorf("the answer lacks %q: %s", p, rec.Body)
				}
			}
		}
		names := func() (out []string) {
			for _, g := range r.RuleGroups() {
				for _, r := range g.Rules() {
					out = append(out, r.Name())
				}
			}
			return out
		}
		w.run("x", 7, time.Minute)
		before := r.AlertingRules()[0].State()

		// Two files are bad, each in its own way, and one is new and good.
		write(t, file, strings.ReplaceAll(testRules, "2 * x", "2 * * x"))
		write(t, second, "groups: [{name: a, rules: [{record: 'not-a-name', expr: y, colour: red}]}]")
		write(t, filepath.Join(w.dir, "u.yml"), "groups: [{name: u, rules: [{record: u, expr: y}]}]")
		post(http.StatusInternalServerError, "stay as they were", "r.yml", "s.yml", "colour")
		if diff := cmp.Diff([]string{"instance:x:double", "High"}, names()); diff != "" {
			t.Errorf("rules after a bad reload (-want +got):\n%s", diff)
		}
		if before != rules.StatePending || r.AlertingRules()[0].State() != before {
			t.Errorf("the alert was %s and is %s", before, r.AlertingRules()[0].State())
		}
		if v := testutil.ToFloat64(r.metrics.good); v != 0 {
			t.Errorf("after a bad reload the metric is %v", v)
		}

		write(t, file, testRules)
		write(t, second, "groups: [{name: a, rules: [{record: y, expr: x + 1}]}]")
		post(http.StatusOK, "4 rules in 3 groups")
		w.run("x", 7, time.Minute)
		if diff := cmp.Diff([]string{"instance:x:double", "High", "y", "u"}, names()); diff != "" {
			t.Errorf("rules after a good reload (-want +got):\n%s", diff)
		}
		if len(w.stored("y")) != 1 {
			t.Error("the new rule is not evaluated")
		}
		if v := testutil.ToFloat64(r.metrics.good); v != 1 {
			t.Errorf("after a good reload the metric is %v", v)
		}

		// A group that is gone ends.
		write(t, second, "groups: []")
		post(http.StatusOK, "3 rules in 2 groups")
		w.run("x", 7, time.Minute)
		for name, s := range w.stored("y") {
			if !math.IsNaN(s[len(s)-1].v) {
				t.Errorf("%s does not end: %v", name, s)
			}
		}

		// Files that are all gone are taken for a mistake.
		moved := filepath.Join(w.dir, "away")
		if err := os.Mkdir(moved, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"r.yml", "s.yml", "u.yml"} {
			if err := os.Rename(filepath.Join(w.dir, f), filepath.Join(moved, f)); err != nil {
				t.Fatal(err)
			}
		}
		post(http.StatusInternalServerError, "stay as they were", "no rule file is there any more")
		if n := len(names()); n != 3 {
			t.Errorf("%d rules are left of 3", n)
		}
		if diff := cmp.Diff(w.config().Files, Unmatched(append(w.config().Files, moved))); diff != "" {
			t.Errorf("patterns without files (-want +got):\n%s", diff)
		}
		stop()
		if err := r.Reload(); err == nil {
			t.Error("a reload after the stop succeeds")
		}
	})
}

func TestBadFileAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		write(t, filepath.Join(w.dir, "good.yml"), testRules)
		write(t, filepath.Join(w.dir, "bad.yml"), "groups: [{name: a, rules: [{record: y, expr: '('}]}]")
		c := w.config()
		c.Files = append(c.Files, filepath.Join(w.dir, "absent.yml"), filepath.Join(w.dir, "none*.yml"))
		r, stop := w.start(c)
		defer stop()
		if n := len(r.AlertingRules()); n != 1 {
			t.Errorf("%d alerts are evaluated, want the one of the good file", n)
		}
		for _, part := range []string{"bad.yml", "absent.yml", "none*.yml"} {
			if !strings.Contains(w.log.String(), part) {
				t.Errorf("the log does not name %s:\n%s", part, &w.log)
			}
		}
		if v := testutil.ToFloat64(r.metrics.good); v != 0 {
			t.Errorf("the metric is %v", v)
		}
	})
}

func TestCheck(t *testing.T) {
	if err := Check([]string{"../../rules/*.yml", "../../rules/alerts-node.yml"}); err != nil {
		t.Errorf("the rules of this repository: %v", err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yml"), "groups: [{name: a, rules: [{alert: A, expr: x, annotations: {summary: '{{ $nothing }}'}}]}]")
	write(t, filepath.Join(dir, "b.yml"), testRules)
	write(t, filepath.Join(dir, "b_test.yaml"), "no rules")
	err := Check([]string{filepath.Join(dir, "*"), filepath.Join(dir, "absent.yml"), filepath.Join(dir, "none*")})
	for _, part := range []string{"a.yml", "nothing", "absent.yml"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
	if err != nil && (strings.Contains(err.Error(), "b.yml") || strings.Contains(err.Error(), "none")) {
		t.Errorf("the error blames what is good: %v", err)
	}
}
