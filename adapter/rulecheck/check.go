package rulecheck

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// Asker answers what there is to be found.
type Asker interface {
	// Series tells whether any series matches a selector.
	Series(ctx context.Context, selector string) (bool, error)
	// Result tells whether an expression has a result at any of the times looked at.
	Result(ctx context.Context, expr string) (bool, error)
}

// Kind is what a finding is about.
type Kind string

// The kinds of findings.
const (
	// Unmatched is a selector that matches no series.
	Unmatched Kind = "selector"
	// NeverFires is an alert that cannot fire, or a recording rule that records nothing.
	NeverFires Kind = "never"
	// Unjudged is a rule that cannot be judged yet.
	Unjudged Kind = "unjudged"
)

// Finding is something about one rule.
type Finding struct {
	File  string `json:"file"`
	Group string `json:"group"`
	Rule  string `json:"rule"`
	Kind  Kind   `json:"kind"`
	// Selector is the one that matches no series, for Unmatched.
	Selector string `json:"selector,omitempty"`
	// Why is a sentence.
	Why string `json:"why"`
}

// Report is what a check found.
type Report struct {
	Rules    int       `json:"rules"`
	Findings []Finding `json:"findings"`
}

// checker is one check under way.
type checker struct {
	ask      Asker
	parser   parser.Parser
	recorded map[string]bool // names that rules of the set record
	alerts   map[string]bool // alerts of the set
	matches  map[string]bool // answers about selectors
	report   Report
}

// Check asks about every rule of the files, in their order. progress is told how many
// rules of how many are done; it may be nil. Only a question that is not answered is
// an error.
func Check(ctx context.Context, files map[string]*rulefmt.RuleGroups, ask Asker, progress func(done, of int)) (Report, error) {
	c := &checker{
		ask: ask, parser: parser.NewParser(parser.Options{}),
		recorded: map[string]bool{}, alerts: map[string]bool{}, matches: map[string]bool{},
		report: Report{Findings: []Finding{}},
	}
	total := 0
	for _, f := range files {
		for _, g := range f.Groups {
			total += len(g.Rules)
			for _, r := range g.Rules {
				c.recorded[r.Record] = r.Record != ""
				c.alerts[r.Alert] = r.Alert != ""
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, g := range files[name].Groups {
			for _, r := range g.Rules {
				if err := c.rule(ctx, name, g.Name, r); err != nil {
					return c.report, fmt.Errorf("check %s of %s: %w", r.Alert+r.Record, name, err)
				}
				c.report.Rules++
				if progress != nil {
					progress(c.report.Rules, total)
				}
			}
		}
	}
	return c.report, nil
}

// rule looks at one rule. One reason why it cannot fire is enough.
func (c *checker) rule(ctx context.Context, file, group string, r rulefmt.Rule) error {
	found := func(k Kind, selector, why string) {
		c.report.Findings = append(c.report.Findings, Finding{File: file, Group: group, Rule: r.Alert + r.Record, Kind: k, Selector: selector, Why: why})
	}
	expr, err := c.parser.ParseExpr(r.Expr)
	if err != nil {
		return err // the files were found good before
	}
	var missing, other, awaited []string
	for _, s := range selectors(expr) {
		ok, err := c.matched(ctx, s.text)
		switch {
		case err != nil:
			return err
		case ok:
		case c.comes(s):
			awaited = append(awaited, s.text)
		default:
			found(Unmatched, s.text, "no series matches "+s.text)
			if s.needed {
				missing = append(missing, s.text)
			} else {
				other = append(other, s.text)
			}
		}
	}
	never := "can never fire"
	if r.Record != "" {
		never = "records nothing"
	}
	switch why := contradiction(expr); {
	case why != "":
		found(NeverFires, "", never+": "+why)
	case len(missing) > 0:
		found(NeverFires, "", never+": it needs "+strings.Join(missing, " and "))
	case len(awaited) > 0:
		found(Unjudged, "", "needs "+strings.Join(awaited, " and ")+", which other rules make and which is not stored yet")
	default:
		part, err := c.joins(ctx, expr)
		if err != nil {
			found(Unjudged, "", err.Error())
			return ctx.Err()
		}
		if part == nil {
			return nil
		}
		why := "its selectors match, but this has no result: "
		if len(other) > 0 {
			why = "without the selectors that match nothing, this has no result: "
		}
		found(NeverFires, "", never+": "+why+part.String())
	}
	return nil
}

// comes tells that rules of the set make the series.
func (c *checker) comes(s selector) bool {
	if s.metric == "ALERTS" || s.metric == "ALERTS_FOR_STATE" {
		return true // there while something is pending or fires
	}
	return c.recorded[s.metric]
}

func (c *checker) matched(ctx context.Context, text string) (bool, error) {
	if ok, known := c.matches[text]; known {
		return ok, nil
	}
	ok, err := c.ask.Series(ctx, text)
	if err == nil {
		c.matches[text] = ok
	}
	return ok, err
}

// joins finds the smallest part of an expression that has no result although its
// parts have one; nil where there is none.
func (c *checker) joins(ctx context.Context, expr parser.Expr) (parser.Expr, error) {
	rest := reduce(expr)
	ok, err := c.ask.Result(ctx, rest.String())
	if ok || err != nil {
		return nil, err
	}
	for {
		part, err := c.emptyPart(ctx, rest)
		if part == nil || err != nil {
			return rest, err
		}
		rest = part
	}
}

// emptyPart is a part of e that has no result and must have one, nil where there is
// none.
func (c *checker) emptyPart(ctx context.Context, e parser.Expr) (parser.Expr, error) {
	if n, ok := bare(e).(*parser.BinaryExpr); ok && n.Op == parser.LOR {
		return nil, nil
	}
	for _, part := range vectors(e) {
		if ok, err := c.ask.Result(ctx, part.String()); err != nil || !ok {
			return part, err
		}
	}
	return nil, nil
}

// vectors are the parts of e that are instant vectors.
func vectors(e parser.Node) []parser.Expr {
	var out []parser.Expr
	for child := range parser.ChildrenIter(e) {
		switch n := child.(type) {
		case parser.Expressions: // a call's arguments
			out = append(out, vectors(n)...)
		case parser.Expr:
			if n.Type() == parser.ValueTypeVector {
				out = append(out, n)
			}
		}
	}
	return out
}
