package rules

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// golden are the names of the metrics in the collectors' golden files.
func golden(t *testing.T) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob("../collectors/testdata/*/golden.prom")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	names := map[string]bool{}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "# TYPE "); ok {
				name, _, _ = strings.Cut(name, " ")
				names[name] = true
			}
		}
	}
	return names
}

// literals are the string literals in each package of the programs, without tests.
func literals(t *testing.T) []map[string]bool {
	t.Helper()
	packages := map[string]map[string]bool{}
	for _, dir := range []string{"../collectors", "../exporter", "../adapter"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			out := packages[filepath.Dir(path)]
			if out == nil {
				out = map[string]bool{}
				packages[filepath.Dir(path)] = out
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if s, err := strconv.Unquote(l.Value); err == nil {
						out[s] = true
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return slices.Collect(maps.Values(packages))
}

// made tells whether a name is a literal of a package, or is put together there from a
// beginning and a rest, as in "node_timex_" + "sync_status", or from Prometheus' namespace, subsystem
// and name. It finds misspelt names; it is no proof that a series is exported, which
// e2e gives.
func made(packages []map[string]bool, name string) bool {
	return slices.ContainsFunc(packages, func(literals map[string]bool) bool { return madeIn(literals, name) })
}

func madeIn(literals map[string]bool, name string) bool {
	if literals[name] {
		return true
	}
	for i := range len(name) {
		if head, rest := name[:i], name[i:]; strings.HasSuffix(head, "_") && literals[head] && literals[rest] {
			return true
		}
	}
	if rest, ok := strings.CutPrefix(name, "ticktier_"); ok {
		for i := range len(rest) {
			if rest[i] == '_' && literals[rest[:i]] && literals[rest[i+1:]] {
				return true
			}
		}
	}
	return false
}

// waitsFor is README.md's list of metrics that nothing exports yet, with the alert
// that uses each.
func waitsFor(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Waits for\n")
	if !ok {
		t.Fatal("README.md has no list of what rules wait for")
	}
	out := map[string]string{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.Contains(cells[1], "`") {
			out[strings.Trim(cells[1], " `")] = strings.TrimSpace(cells[3])
		}
	}
	return out
}
