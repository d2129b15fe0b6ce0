package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ruleFiles returns the files in rules/ that hold rules, or their tests.
func ruleFiles(t testing.TB, tests bool) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root(t), "rules", "*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	out := slices.DeleteFunc(all, func(f string) bool { return strings.HasSuffix(f, "_test.yml") != tests })
	if len(out) < 5 {
		t.Fatalf("only %d files in rules/: %v", len(out), out)
	}
	return out
}

func promtool(t testing.TB, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), peerExe(t, "promtool"), args...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestRulesCheck(t *testing.T) {
	t.Parallel()
	out, err := promtool(t, append([]string{"check", "rules", "--lint=all", "--lint-fatal"}, ruleFiles(t, false)...)...)
	if err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}

func TestRulesUnitTests(t *testing.T) {
	t.Parallel()
	for _, f := range ruleFiles(t, true) {
		t.Run(filepath.Base(f), func(t *testing.T) {
			if out, err := promtool(t, "test", "rules", "--diff", f); err != nil {
				t.Errorf("promtool test rules: %v\n%s", err, out)
			}
		})
	}
}

// TestRulesUnitTestsCanFail guards against a promtool that runs nothing.
func TestRulesUnitTestsCanFail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range []string{"recording-5m.yml", "alerts-node.yml", "alerts-node_test.yml"} {
		text, err := os.ReadFile(filepath.Join(root(t), "rules", f))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(string(text), "instance:node_cpu_busy:ratio_rate5m > 0.95", "instance:node_cpu_busy:ratio_rate5m > 1.95")
		writeFile(t, dir, f, changed)
	}
	out, err := promtool(t, "test", "rules", "--run=NodeCPUBusy", filepath.Join(dir, "alerts-node_test.yml"))
	if err == nil || !strings.Contains(out, "NodeCPUBusy") {
		t.Errorf("a rule that never fires passes: %v\n%s", err, out)
	}
}

var groupInterval = regexp.MustCompile(`(?m)^    interval: \w+$`)

// TestRulesEvaluate has the adapter and a real Prometheus evaluate every rule over what
// the exporter of this machine pushes to both. The groups' intervals are shortened.
func TestRulesEvaluate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range append(ruleFiles(t, false), ruleFiles(t, true)...) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, filepath.Base(f), groupInterval.ReplaceAllString(string(text), "    interval: 2s"))
	}
	adapter := startAdapter(t, t.TempDir(), "--rules="+dir+"/*.yml", "--rules.query-offset=3s")
	var files []string
	for _, f := range ruleFiles(t, false) {
		files = append(files, filepath.Join(dir, filepath.Base(f)))
	}
	prometheus := startPrometheus(t, "global: {rule_query_offset: 3s}\nrule_files: ['"+strings.Join(files, "', '")+"']\n", "--web.enable-remote-write-receiver")
	startExporter(t, "--remote-write.interval=1s", "--external-label=instance=r1",
		"--remote-write.url=http://"+adapter.addr+"/api/v1/write", "--remote-write.url=http://"+prometheus.addr+"/api/v1/write")

	var names [2][]string
	for i, a := range []*app{adapter, prometheus} {
		eventually(t, 90*time.Second, a.Name()+" evaluates every rule", func(ctx context.Context) error {
			list, err := rulesOf(ctx, a.Client)
			if err != nil {
				return err
			}
			names[i] = nil
			for _, r := range list {
				names[i] = append(names[i], r.Name)
				if r.Health == "err" {
					t.Fatalf("%s: %s: %s", a.Name(), r.Name, r.LastError)
				}
				if r.Health != "ok" {
					return fmt.Errorf("%s is %s", r.Name, r.Health)
				}
				if r.State == "firing" {
					t.Errorf("%s: %s fires on this machine: %+v", a.Name(), r.Name, r.Alerts)
				}
			}
			return nil
		})
	}
	if diff := cmp.Diff(names[1], names[0]); diff != "" || len(names[0]) < 100 {
		t.Errorf("%d rules, Prometheus against the adapter:\n%s", len(names[0]), diff)
	}
	// What they record of the same samples is the same set of series.
	eventually(t, 60*time.Second, "both record the same series", func(ctx context.Context) error {
		var got [2][]string
		at := nowMs() - 4000
		for i, a := range []*app{adapter, prometheus} {
			r, err := a.Query(ctx, `{__name__=~"instance.*:.*",__name__!~".*(200ms|500ms).*"}`, at)
			if err != nil {
				return err
			}
			for _, s := range r.Series {
				got[i] = append(got[i], s.Name())
			}
			slices.Sort(got[i])
		}
		if diff := cmp.Diff(got[1], got[0]); diff != "" {
			return fmt.Errorf("prometheus against adapter:\n%s", diff)
		}
		if len(got[0]) < 30 {
			return fmt.Errorf("only %d series", len(got[0]))
		}
		return nil
	})
}
