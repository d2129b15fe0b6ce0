package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
