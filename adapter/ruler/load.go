package ruler

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// maxFileBytes bounds a rule file; the largest packs that are passed around have half
// a megabyte.
const maxFileBytes = 16 << 20

// ruleSet is the content of rule files, by name.
type ruleSet map[string]*rulefmt.RuleGroups

// files returns the names in order.
func (s ruleSet) files() []string {
	var names []string
	for f := range s {
		names = append(names, f)
	}
	slices.Sort(names)
	return names
}

// groups and rules are how many there are.
func (s ruleSet) size() (groups, rules int) {
	for _, f := range s {
		groups += len(f.Groups)
		for _, g := range f.Groups {
			rules += len(g.Rules)
		}
	}
	return groups, rules
}

// loader implements rules.GroupLoader over a set that was read and found good before,
// so that a file that changes meanwhile cannot spoil it.
type loader struct {
	parser parser.Parser
	set    ruleSet // guarded by Ruler.mu
}

// Load implements rules.GroupLoader.
func (l *loader) Load(name string, _ bool, _ model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	g := l.set[name]
	if g == nil {
		return nil, []error{fmt.Errorf("BUG: %s was not read", name)}
	}
	return g, nil
}

// Parse implements rules.GroupLoader.
func (l *loader) Parse(expr string) (parser.Expr, error) { return l.parser.ParseExpr(expr) }

// read returns what is good of the files that the patterns name, and what is wrong
// with the others.
func read(patterns []string, p parser.Parser) (ruleSet, error) {
	set := ruleSet{}
	names, err := expand(patterns)
	errs := []error{err}
	for _, name := range names {
		g, err := readFile(name, p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		set[name] = g
	}
	return set, errors.Join(errs...)
}

// Check tells what is wrong with the rule files that the patterns name.
func Check(patterns []string) error {
	_, err := read(patterns, parser.NewParser(parser.Options{}))
	return err
}

// Unmatched are the patterns that match no file, which is no error: files may come yet.
func Unmatched(patterns []string) (none []string) {
	for _, p := range patterns {
		if names, err := expand([]string{p}); err == nil && len(names) == 0 {
			none = append(none, p)
		}
	}
	return none
}

// Read returns the groups of the rule files that the patterns name, by file. What is
// wrong with any of them is an error.
func Read(patterns []string) (map[string]*rulefmt.RuleGroups, error) {
	return read(patterns, parser.NewParser(parser.Options{}))
}

// expand returns the files that match, in order. A pattern may match none; a plain
// name must exist.
func expand(patterns []string) (names []string, err error) {
	var errs []error
	for _, pattern := range patterns {
		matches, err := filepath.Glob(pattern)
		if err == nil && len(matches) == 0 && !strings.ContainsAny(pattern, `*?[\`) {
			_, err = os.Stat(pattern)
			if err == nil {
				err = fs.ErrNotExist
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("rule files %s: %w", pattern, err))
		}
		names = append(names, matches...)
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		return strings.HasSuffix(n, "_test.yml") || strings.HasSuffix(n, "_test.yaml")
	})
	slices.Sort(names)
	return slices.Compact(names), errors.Join(errs...)
}

func readFile(name string, p parser.Parser) (*rulefmt.RuleGroups, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("read rules: %s has %d bytes, more than %d", name, info.Size(), maxFileBytes)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, p, slog.New(slog.DiscardHandler))
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s: %w", name, err)
	}
	return groups, errors.Join(errs...)
}
