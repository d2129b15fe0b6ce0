package rulecheck

import (
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// nothing is a metric that no one has: absent over it has its result always.
const nothing = "ticktier_metric_that_does_not_exist"

// What is left of a subquery: whether it has a result shows in an hour.
const (
	longestSubquery = time.Hour
	subqueryPoints  = 240
)

// reduce takes the thresholds out of an expression, in place, and returns what is
// left: what has a result wherever the rule may fire, whatever the values are.
func reduce(e parser.Expr) parser.Expr {
	switch n := e.(type) {
	case *parser.ParenExpr:
		n.Expr = reduce(n.Expr)
	case *parser.StepInvariantExpr:
		n.Expr = reduce(n.Expr)
	case *parser.UnaryExpr:
		n.Expr = reduce(n.Expr)
	case *parser.SubqueryExpr:
		// Close enough to find what is younger than a step.
		n.Expr, n.Range = reduce(n.Expr), min(n.Range, longestSubquery)
		n.Step = max(n.Range/subqueryPoints, time.Second)
	case *parser.AggregateExpr:
		n.Expr = reduce(n.Expr)
	case *parser.Call:
		if n.Func.Name == "absent" || n.Func.Name == "absent_over_time" {
			forget(n)
			return n
		}
		for i, a := range n.Args {
			n.Args[i] = reduce(a)
		}
	case *parser.BinaryExpr:
		return reduceBinary(n)
	}
	return e
}

// reduceBinary leaves the joins and takes the comparisons and exclusions.
func reduceBinary(n *parser.BinaryExpr) parser.Expr {
	n.LHS, n.RHS = reduce(n.LHS), reduce(n.RHS)
	switch {
	case n.Op == parser.LUNLESS:
		return n.LHS
	case !n.Op.IsComparisonOperator() || n.ReturnBool:
		return n
	case n.RHS.Type() == parser.ValueTypeScalar:
		return n.LHS
	case n.LHS.Type() == parser.ValueTypeScalar:
		return n.RHS
	}
	n.Op = parser.ADD // joins as the comparison does
	return n
}

// forget makes absent's argument something that is absent, with the labels its result
// has.
func forget(n *parser.Call) {
	parser.Inspect(n, func(e parser.Node, _ []parser.Node) error {
		v, ok := e.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		v.Name = nothing
		kept := []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, nothing)}
		for _, m := range v.LabelMatchers {
			if m.Name != model.MetricNameLabel && m.Type == labels.MatchEqual {
				kept = append(kept, m)
			}
		}
		v.LabelMatchers = kept
		return nil
	})
}

// selector is a selector of a rule.
type selector struct {
	text   string // without offset and @
	metric string // "" where the name is not one
	// needed tells that the rule has no result where the selector has none.
	needed bool
}

// selectors lists an expression's selectors, each once.
func selectors(e parser.Expr) []selector {
	var out []selector
	at := map[string]int{}
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		s := describe(v)
		s.needed = needed(append(path, n))
		if i, seen := at[s.text]; seen {
			out[i].needed = out[i].needed || s.needed
			return nil
		}
		at[s.text] = len(out)
		out = append(out, s)
		return nil
	})
	return out
}

func describe(v *parser.VectorSelector) selector {
	bare := parser.VectorSelector{Name: v.Name, LabelMatchers: v.LabelMatchers}
	s := selector{text: bare.String()}
	for _, m := range v.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			s.metric = m.Value
		}
	}
	return s
}

// needed tells whether what ends the path is no side of an or, no exclusion and not
// what absent asks for.
func needed(path []parser.Node) bool {
	for i, n := range path[:len(path)-1] {
		switch n := n.(type) {
		case *parser.BinaryExpr:
			if n.Op == parser.LOR || n.Op == parser.LUNLESS && path[i+1] == parser.Node(n.RHS) {
				return false
			}
		case *parser.Call:
			if n.Func.Name == "absent" || n.Func.Name == "absent_over_time" {
				return false
			}
		}
	}
	return true
}
