package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// ofTheMachine are collectors that ask this machine's kernel, whatever tree they are
// pointed at.
var ofTheMachine = []string{"filesystem", "selinux", "textfile", "timex", "uname"}

// asFiles are the flags that make node_exporter read the files of a tree where it
// would ask the kernel by netlink.
var asFiles = []string{"--no-collector.netdev.netlink", "--no-collector.arp.netlink"}

// TestTreesBesideNodeExporter points both exporters at captured and made trees of
// other machines and compares names, label sets, types and values: the files stand
// still, so each must be the same.
func TestTreesBesideNodeExporter(t *testing.T) {
	t.Parallel()
	captured, err := filepath.Glob("../collectors/testdata/*/proc")
	if err != nil || len(captured) == 0 {
		t.Fatalf("no captured trees: %v", err)
	}
	for _, proc := range captured {
		root := filepath.Dir(proc)
		t.Run(filepath.Base(root), func(t *testing.T) { compareTree(t, filepath.Base(root), root) })
	}
	for _, m := range madeTrees {
		t.Run(m.name, func(t *testing.T) {
			root := t.TempDir()
			m.write(t, root)
			compareTree(t, m.name, root)
		})
	}
}

func compareTree(t *testing.T, name, root string) {
	paths := []string{"--path.procfs=" + filepath.Join(root, "proc"), "--path.rootfs=" + root, "--path.sysfs=" + filepath.Join(root, "sys")}
	if _, err := os.Stat(filepath.Join(root, "sys")); err != nil {
		paths[2] = "--path.sysfs=" + t.TempDir()
	}
	args := append(slices.Clone(paths), "--rate=10", "--collector.slabinfo", "--collector.zoneinfo", "--collector.processes")
	for _, c := range ofTheMachine {
		args = append(args, "--no-collector."+c)
	}
	ours := startExporter(t, args...)
	pause(t, 2*time.Second) // every source has been read by then
	flags := append(paths, "--path.udev.data="+filepath.Join(root, "run/udev/data"), "--collector.disable-defaults")
	for _, c := range sharedCollectors(t, ours) {
		flags = append(flags, "--collector."+c)
	}
	node := startNodeExporter(t, append(flags, asFiles...)...)
	theirs := exposition(t, node)
	our := exposition(t, ours)
	allowed := explainedFor(t, "testdata/node_exporter_tree_differences.txt", name)
	is := func(kind, series string) bool {
		return slices.ContainsFunc(allowed, func(d difference) bool { return d.kind == kind && d.pattern.MatchString(series) })
	}
	same := 0
	for _, series := range slices.Sorted(maps.Keys(theirs)) {
		their := theirs[series]
		mine, ok := our[series]
		switch {
		case !ok && is("theirs", series), !ok && their.value == 0 && is("theirs-zero", series):
		case !ok:
			t.Errorf("missing: %s, %s, %v", series, their.kind, their.value)
		case mine.kind != their.kind:
			t.Errorf("%s is a %s, node_exporter's a %s", series, mine.kind, their.kind)
		case !alike(mine.value, their.value, 1e-12) && !is("value", series):
			t.Errorf("%s is %v, node_exporter's %v", series, mine.value, their.value)
		default:
			same++
		}
	}
	for _, series := range slices.Sorted(maps.Keys(our)) {
		if _, ok := theirs[series]; !ok && !is("ours", series) {
			t.Errorf("node_exporter has no %s, %v", series, our[series].value)
		}
	}
	t.Logf("%d series are the same", same)
	if same < 100 {
		t.Errorf("only %d series are the same", same)
	}
}

// explainedFor reads a list of differences whose lines may begin with [tree] and then
// hold for that tree alone, beside those that hold on this machine too.
func explainedFor(t *testing.T, file, tree string) []difference {
	t.Helper()
	out := explained(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if only, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] "); ok && line[0] == '[' {
			if only != tree {
				continue
			}
			line = rest
		}
		out = append(out, parseDifference(t, line))
	}
	return out
}

// parseDifference reads one line: kind pattern # why.
func parseDifference(t *testing.T, line string) difference {
	t.Helper()
	rule, why, _ := strings.Cut(line, " # ")
	kind, pattern, ok := strings.Cut(rule, " ")
	if !ok || strings.TrimSpace(why) == "" {
		t.Fatalf("a difference without a pattern or a reason: %s", line)
	}
	return difference{kind, regexp.MustCompile(fmt.Sprintf("^(?:%s)$", strings.TrimSpace(pattern)))}
}
