package rules

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// files returns the rule files, or their tests.
func files(t *testing.T, tests bool) []string {
	t.Helper()
	all, err := filepath.Glob("*.yml")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(f string) bool { return strings.HasSuffix(f, "_test.yml") != tests })
}

// rule is a rule with where it stands.
type rule struct {
	rulefmt.Rule
	file  string
	group *rulefmt.RuleGroup
	expr  parser.Expr
}

func (r rule) name() string { return r.Record + r.Alert }

// load parses every rule file as Prometheus does, unknown fields refused.
func load(t *testing.T) []rule {
	t.Helper()
	p := parser.NewParser(parser.Options{})
	var out []rule
	for _, f := range files(t, false) {
		groups, errs := rulefmt.ParseFile(f, false, model.LegacyValidation, p, slog.New(slog.DiscardHandler))
		for _, err := range errs {
			t.Fatalf("%s: %v", f, err)
		}
		for i := range groups.Groups {
			g := &groups.Groups[i]
			for _, r := range g.Rules {
				e, err := p.ParseExpr(r.Expr)
				if err != nil {
					t.Fatalf("%s: %s: %v", f, r.Record+r.Alert, err)
				}
				out = append(out, rule{Rule: r, file: f, group: g, expr: e})
			}
		}
	}
	if len(out) < 50 {
		t.Fatalf("only %d rules were found", len(out))
	}
	return out
}

// level:metric:operations, all lower case but for names that are the kernel's own.
var recordName = regexp.MustCompile(`^instance(_cpu|_device|_device_mountpoint|_chip_sensor)?:[a-z][a-z0-9_]*:[a-z][a-z0-9_]*$`)

func TestRecordingRules(t *testing.T) {
	seen := map[string]string{}
	for _, r := range load(t) {
		if r.Record == "" {
			continue
		}
		if !strings.HasPrefix(r.file, "recording-") {
			t.Errorf("%s records %s", r.file, r.Record)
		}
		if !recordName.MatchString(r.Record) {
			t.Errorf("%s is not level:metric:operations", r.Record)
		}
		if seen[r.Record] != "" {
			t.Errorf("%s is recorded twice", r.Record)
		}
		seen[r.Record] = r.file
	}
}

func TestAlerts(t *testing.T) {
	severities := []string{"critical", "warning", "info"}
	seen := map[string]bool{}
	for _, r := range load(t) {
		if r.Alert == "" {
			continue
		}
		bad := func(format string, a ...any) { t.Helper(); t.Errorf(r.Alert+": "+format, a...) }
		if !strings.HasPrefix(r.file, "alerts-") {
			bad("is in %s", r.file)
		}
		if seen[r.Alert] {
			bad("is there twice")
		}
		seen[r.Alert] = true
		if !slices.Contains(severities, r.Labels["severity"]) || len(r.Labels) != 1 {
			bad("has labels %v", r.Labels)
		}
		if names := slices.Sorted(maps.Keys(r.Annotations)); !slices.Equal(names, []string{"description", "runbook_url", "summary"}) {
			bad("has annotations %v", names)
		}
		if !strings.HasPrefix(r.file, "alerts-fleet") || strings.HasPrefix(r.Alert, "Device") {
			if !strings.Contains(r.Annotations["summary"], "$labels.instance") || !strings.Contains(r.Annotations["description"], "$labels.instance") {
				bad("does not name the device in summary and description")
			}
		}
		checkRunbook(t, r)
	}
	pages, err := filepath.Glob("../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if name := strings.TrimSuffix(filepath.Base(page), ".md"); name != "README" && !seen[name] {
			t.Errorf("%s is a runbook for no alert", page)
		}
	}
}

func checkRunbook(t *testing.T, r rule) {
	t.Helper()
	want := "docs/runbooks/" + r.Alert + ".md"
	if got := r.Annotations["runbook_url"]; got != want {
		t.Errorf("%s: runbook_url is %q, want %q", r.Alert, got, want)
	}
	text, err := os.ReadFile("../" + want)
	if err != nil {
		t.Errorf("%s: %v", r.Alert, err)
		return
	}
	for _, part := range []string{"# " + r.Alert + "\n", "Severity " + r.Labels["severity"] + ";", r.file, "\n## Look\n", "\n## Do\n"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s lacks %q", want, part)
		}
	}
	index, err := os.ReadFile("../docs/runbooks/README.md")
	if err != nil || !strings.Contains(string(index), "["+r.Alert+"]("+r.Alert+".md) ("+r.Labels["severity"]+")") {
		t.Errorf("docs/runbooks/README.md does not list %s with its severity (%v)", r.Alert, err)
	}
}

// TestPortable demands that groups use only what Prometheus, Thanos and vmalert all
// have, and that rules stand a scrape that is missing.
func TestPortable(t *testing.T) {
	for _, r := range load(t) {
		if r.group.QueryOffset != nil || r.group.Limit != 0 || len(r.group.Labels) != 0 {
			t.Errorf("group %s uses query_offset, limit or labels", r.group.Name)
		}
		if r.group.Interval == 0 {
			t.Errorf("group %s has no interval", r.group.Name)
		}
		parser.Inspect(r.expr, func(n parser.Node, path []parser.Node) error {
			m, ok := n.(*parser.MatrixSelector)
			if !ok || slices.ContainsFunc(path, func(n parser.Node) bool { _, ok := n.(*parser.SubqueryExpr); return ok }) {
				return nil // inside a subquery: read per tick, and meant to be
			}
			if m.Range < 5*time.Minute {
				t.Errorf("%s: the range %s is shorter than five minutes", r.name(), m.Range)
			}
			return nil
		})
	}
}

// TestReasons demands a comment before each alert: why its threshold is what it is.
func TestReasons(t *testing.T) {
	for _, f := range files(t, false) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		before := ""
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- alert: "); ok && !strings.HasPrefix(before, "#") {
				t.Errorf("%s: %s has no comment", f, name)
			}
			before = strings.TrimSpace(line)
		}
	}
}

// metricsOf calls f for each metric name that an expression selects by.
func metricsOf(t *testing.T, r rule, f func(name string)) {
	t.Helper()
	parser.Inspect(r.expr, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		for _, m := range v.LabelMatchers {
			if m.Name == model.MetricNameLabel {
				if m.Type != labels.MatchEqual {
					t.Errorf("%s selects by a pattern of names", r.name())
				}
				f(m.Value)
			}
		}
		return nil
	})
}

// fromPrometheus are metrics of Prometheus' own packages that the adapter links.
var fromPrometheus = []string{"prometheus_rule_evaluation_failures_total", "prometheus_notifications_errors_total"}

func TestMetricsExist(t *testing.T) {
	rules := load(t)
	exported, sources, waiting := golden(t), literals(t), waitsFor(t)
	recorded := map[string]bool{}
	for _, r := range rules {
		recorded[r.Record] = true
	}
	used := map[string][]string{}
	for _, r := range rules {
		metricsOf(t, r, func(name string) {
			used[name] = append(used[name], r.Alert)
			switch {
			case recorded[name], exported[name], slices.Contains(fromPrometheus, name):
			case made(sources, name):
				if waiting[name] != "" {
					t.Errorf("%s exists; take it off the list in README.md", name)
				}
			case waiting[name] == "":
				t.Errorf("%s: nothing exports %s, and README.md does not say that it waits for it", r.name(), name)
			}
		})
	}
	for name, alert := range waiting {
		if !slices.Contains(used[name], alert) {
			t.Errorf("README.md: %s waits for %s, which it does not use", alert, name)
		}
	}
	if made(sources, "node_filesystem_availble_bytes") || made(sources, "ticktier_device_upp") {
		t.Error("a misspelt name passes")
	}
}

// testFile is what is checked of a file for promtool.
type testFile struct {
	Tests []struct {
		Name      string `yaml:"name"`
		AlertRule []struct {
			EvalTime string `yaml:"eval_time"`
			Alert    string `yaml:"alertname"`
			Expected []any  `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
		PromQL []struct {
			Expr string `yaml:"expr"`
		} `yaml:"promql_expr_test"`
	} `yaml:"tests"`
}

// TestTested demands of the tests that each alert is seen not firing, then firing,
// then not firing, and that each recorded series is looked at. That the tests pass is
// for promtool to say, in e2e.
func TestTested(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range files(t, true) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var doc testFile
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for _, test := range doc.Tests {
			states := map[string]string{}
			last := model.Duration(0)
			for _, a := range test.AlertRule {
				at, err := model.ParseDuration(a.EvalTime)
				if err != nil {
					t.Fatalf("%s: %s: %v", f, test.Name, err)
				}
				if at < last && states[a.Alert] != "" {
					t.Errorf("%s: %s: times are not in order", f, test.Name)
				}
				last = at
				states[a.Alert] += map[bool]string{true: "0", false: "1"}[len(a.Expected) == 0]
			}
			for alert, s := range states {
				seen[alert] = seen[alert] || regexp.MustCompile("^0+1+0+$").MatchString(s)
			}
			for _, e := range test.PromQL {
				for _, name := range regexp.MustCompile(`[a-z0-9_]+:[a-z0-9_:]+`).FindAllString(e.Expr, -1) {
					seen[name] = true
				}
			}
		}
	}
	for _, r := range load(t) {
		if !seen[r.name()] {
			t.Errorf("%s: %s has no test that shows it", r.file, r.name())
		}
	}
}
