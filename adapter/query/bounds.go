package query

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// maxExprBytes bounds an expression: the parser is not part of a query's time.
	maxExprBytes = 128 << 10
	// maxExprDepth bounds its parentheses, for each of which the parser looks at all
	// that it contains.
	maxExprDepth = 500
	// maxSubquerySteps bounds a subquery, for whose steps the engine makes room (16
	// bytes each) before it counts a sample: half an hour by milliseconds, or half a
	// year by ten seconds.
	maxSubquerySteps = 2_000_000
)

// refuseText refuses the expressions in a request that would keep the parser busy.
func refuseText(form url.Values) error {
	for _, name := range [...]string{"query", "match[]"} {
		for _, text := range form[name] {
			if len(text) > maxExprBytes {
				return fmt.Errorf("invalid parameter %q: the expression has %d bytes, of at most %d", name, len(text), maxExprBytes)
			}
			if d := depth(text); d > maxExprDepth {
				return fmt.Errorf("invalid parameter %q: the expression is nested %d deep, of at most %d", name, d, maxExprDepth)
			}
		}
	}
	return nil
}

// depth is how deep parentheses are nested, those in strings counted too.
func depth(text string) (deepest int) {
	n := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[', '{':
			n++
			deepest = max(deepest, n)
		case ')', ']', '}':
			n--
		}
	}
	return deepest
}

// refuseSteps refuses a statement with a subquery of too many steps.
func (e *Engine) refuseSteps(stmt *parser.EvalStmt) error {
	whole := grid{first: stmt.Start.UnixMilli(), last: stmt.End.UnixMilli(), step: ms(stmt.Interval)}
	var found error
	parser.Inspect(stmt.Expr, func(node parser.Node, path []parser.Node) error {
		sub, ok := node.(*parser.SubqueryExpr)
		if !ok || found != nil {
			return found
		}
		g := whole
		for _, n := range path {
			switch outer := n.(type) {
			case *parser.StepInvariantExpr:
				g.last = g.first
			case *parser.SubqueryExpr:
				g = e.subquery(g, outer)
			}
		}
		if steps := e.subquery(g, sub).n(); steps > maxSubquerySteps {
			found = fmt.Errorf("a subquery of %d steps, of at most %d: take a longer step or a shorter range (%s)", steps, maxSubquerySteps, shown(sub.String()))
		}
		return found
	})
	return found
}

// shown is the beginning of an expression.
func shown(expr string) string {
	const most = 120
	if len(expr) <= most {
		return expr
	}
	return strings.ToValidUTF8(expr[:most], "") + "…"
}
