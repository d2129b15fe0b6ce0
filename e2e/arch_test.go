package e2e

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module     = "github.com/ticktier/ticktier"
	prometheus = "github.com/prometheus/prometheus"
)

// siblings are the imports between packages of one program that are allowed.
// Everything else is joined in main through an interface that its user declares.
var siblings = map[string][]string{
	"exporter/ring":   {"exporter/frame"},
	"exporter/send":   {"exporter/frame"},
	"exporter/spool":  {"exporter/frame"},
	"exporter/expose": {"exporter/frame", "exporter/burst", "exporter/selector", "exporter/journal"},
	"exporter/config": {"exporter/selector"},
	"exporter/scrape": {"exporter/ring", "exporter/frame"}, // its tests alone
	"exporter/top":    {"exporter/follow"},
	"exporter/plot":   {"exporter/follow"},
	"adapter/store":   {"adapter/fold"},
	"adapter/tier":    {"adapter/fold", "adapter/store"},
	"adapter/receive": {"adapter/store"},
	"adapter/query":   {"adapter/store"},
	"adapter/ruler":   {"adapter/store"},
	"adapter/seed":    {"adapter/fold", "adapter/store"},
}

// fromCollectors are the packages that may import collectors.
var fromCollectors = []string{"exporter", "exporter/burst", "exporter/journal", "exporter/scrape", "exporter/tick", "exporter/send", "exporter/expose", "exporter/spool", "exporter/selector", "exporter/config"}

// vocabulary are the packages under tsdb that storage's own interfaces speak in:
// whoever reads a series needs them.
var vocabulary = []string{prometheus + "/tsdb/chunkenc", prometheus + "/tsdb/chunks"}

// pkg is what `go list -json` says of a package, as far as it is used here.
type pkg struct {
	ImportPath, Name, Dir     string
	Standard                  bool
	GoFiles, TestGoFiles      []string
	XTestGoFiles              []string
	Imports, Deps             []string
	TestImports, XTestImports []string
}

// short is the path inside the module, "" for its root.
func (p pkg) short() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func (p pkg) allImports() []string {
	return slices.Concat(p.Imports, p.TestImports, p.XTestImports)
}

func ours(path string) (string, bool) { return strings.CutPrefix(path, module+"/") }

// within says whether path is folder or lies under it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json", "./...")
	cmd.Dir = root(t)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, errs.String())
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

func TestImportRules(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		for _, problem := range importProblems(p) {
			t.Errorf("%s %s", p.short(), problem)
		}
	}
}

// importProblems returns what is wrong with the imports of one package.
func importProblems(p pkg) []string {
	var out []string
	add := func(cond bool, text string) {
		if cond && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	me := p.short()
	for _, path := range p.allImports() {
		to, local := ours(path)
		add(local && within(me, "exporter") && within(to, "adapter"), "imports "+to+": the programs share nothing but remote write")
		add(local && within(me, "adapter") && within(to, "exporter"), "imports "+to+": the programs share nothing but remote write")
		add(local && within(me, "e2e") && (within(to, "exporter") || within(to, "adapter")), "imports "+to+": e2e drives processes")
		add(local && to == "collectors" && me != "collectors" && !slices.Contains(fromCollectors, me), "imports collectors")
		add(slices.Contains([]string{"util", "utils", "common", "helpers"}, filepath.Base(to)) && local, "imports "+to+": a name that says nothing")
	}
	for _, path := range p.Imports {
		to, local := ours(path)
		// Tests may compare with a TSDB of their own.
		add(me != "adapter/store" && within(path, prometheus+"/tsdb") && !slices.Contains(vocabulary, path),
			"imports "+path+": only adapter/store imports the TSDB")
		add(local && forbiddenSibling(me, to), "imports its sibling "+to)
		switch me {
		case "collectors":
			first, _, _ := strings.Cut(path, "/")
			add(strings.Contains(first, ".") && !within(path, "golang.org/x/sys") && to != "collectors/promtext", "imports "+path+": only the standard library and x/sys")
		case "exporter/frame", "adapter/fold":
			add(local, "imports "+to+": it is pure")
			add(slices.Contains([]string{"os", "net", "net/http", "sync", "time", "context", "log/slog"}, path), "imports "+path+": it has no I/O, clock or lock")
		}
	}
	if within(me, "exporter") || me == "collectors" {
		for _, path := range p.Deps {
			add(within(path, prometheus) || within(path, "github.com/prometheus/client_golang"), "links "+path+": the exporter stays small")
			to, local := ours(path)
			add(local && within(to, "adapter"), "links "+to)
		}
	}
	return out
}

// forbiddenSibling says whether from and to belong to one program and from is not
// its main and not allowed to import to.
func forbiddenSibling(from, to string) bool {
	a, _, sub := strings.Cut(from, "/")
	b, _, _ := strings.Cut(to, "/")
	if a != b || !sub || (a != "exporter" && a != "adapter") {
		return false
	}
	return !slices.Contains(siblings[from], to)
}

// TestImportRulesNotice shows that the rules can be broken.
func TestImportRulesNotice(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]pkg{
		"exporter to adapter":   {ImportPath: module + "/exporter/send", Imports: []string{module + "/adapter/receive"}},
		"adapter to exporter":   {ImportPath: module + "/adapter/page", TestImports: []string{module + "/exporter/frame"}},
		"sibling":               {ImportPath: module + "/adapter/page", Imports: []string{module + "/adapter/store"}},
		"tsdb":                  {ImportPath: module + "/adapter/query", Imports: []string{prometheus + "/tsdb"}},
		"tsdb part":             {ImportPath: module + "/adapter/query", Imports: []string{prometheus + "/tsdb/index"}},
		"exporter links":        {ImportPath: module + "/exporter", Deps: []string{"github.com/prometheus/client_golang/prometheus"}},
		"collectors dependency": {ImportPath: module + "/collectors", Imports: []string{"github.com/prometheus/procfs"}},
		"frame with a clock":    {ImportPath: module + "/exporter/frame", Imports: []string{"time"}},
		"fold with ours":        {ImportPath: module + "/adapter/fold", Imports: []string{module + "/internal/x"}},
		"e2e":                   {ImportPath: module + "/e2e", XTestImports: []string{module + "/adapter"}},
	} {
		if got := importProblems(p); len(got) == 0 {
			t.Errorf("%s: no problem found", name)
		}
	}
	fine := pkg{ImportPath: module + "/adapter/tier", Imports: []string{
		module + "/adapter/fold", module + "/adapter/store", prometheus + "/storage", prometheus + "/tsdb/chunkenc", "time"}}
	if got := importProblems(fine); len(got) > 0 {
		t.Errorf("allowed imports: %v", got)
	}
}

func TestPackageComments(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		if len(p.GoFiles) == 0 && len(p.TestGoFiles) == 0 {
			continue
		}
		name, want := "doc.go", "Package "+p.Name+" "
		switch {
		case p.short() == "exporter" || p.short() == "adapter":
			// The two programs say in main.go what they are, by their own names.
			name, want = "main.go", "ticktier-"+p.short()+" "
		case p.Name == "main":
			want = "Command "
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Errorf("%s: no package comment: %v", p.short(), err)
			continue
		}
		if got := file.Doc.Text(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s begins %.40q, want %q", p.short(), name, got, want)
		}
	}
}

// TestFileLengths warns and does not fail: a long file is for a reviewer to judge.
func TestFileLengths(t *testing.T) {
	t.Parallel()
	const most = 400
	for _, p := range listPackages(t) {
		for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), "\n"); n > most && !strings.Contains(string(text), "// Long because") {
				t.Logf("warning: %s/%s has %d lines; split it, or say why not (// Long because …)", p.short(), name, n)
			}
		}
	}
}
