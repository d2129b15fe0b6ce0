package rulecheck

import (
	"fmt"
	"math"

	"github.com/prometheus/prometheus/promql/parser"
)

// bounds are the values that a rule's thresholds leave to one expression.
type bounds struct {
	low, high         float64
	openLow, openHigh bool // the edge itself is not among them
}

func (b bounds) empty() bool {
	return b.low > b.high || b.low == b.high && (b.openLow || b.openHigh)
}

// contradiction says which thresholds cannot be met together, "" where they can.
func contradiction(e parser.Expr) string {
	all := map[string]bounds{}
	why := ""
	conjuncts(e, func(base parser.Expr, op parser.ItemType, limit float64) {
		key := base.String()
		b, ok := all[key]
		if !ok {
			b = known(base)
		}
		b = b.cut(op, limit)
		all[key] = b
		if b.empty() && why == "" {
			why = fmt.Sprintf("no value of %s meets every threshold", key)
		}
	})
	return why
}

// known is what an expression's value can be.
func known(e parser.Expr) bounds {
	if c, ok := bare(e).(*parser.Call); ok {
		switch c.Func.Name {
		case "vector":
			if n, ok := bare(c.Args[0]).(*parser.NumberLiteral); ok {
				return bounds{low: n.Val, high: n.Val}
			}
		case "absent", "absent_over_time":
			return bounds{low: 1, high: 1}
		}
	}
	return bounds{low: math.Inf(-1), high: math.Inf(1)}
}

func (b bounds) cut(op parser.ItemType, limit float64) bounds {
	switch op {
	case parser.GTR, parser.GTE:
		if open := op == parser.GTR; limit > b.low || limit == b.low && open {
			b.low, b.openLow = limit, open
		}
	case parser.LSS, parser.LTE:
		if open := op == parser.LSS; limit < b.high || limit == b.high && open {
			b.high, b.openHigh = limit, open
		}
	case parser.EQLC:
		b = b.cut(parser.GTE, limit).cut(parser.LTE, limit)
	case parser.NEQ:
		if b.low == b.high && b.low == limit {
			b.openLow = true
		}
	}
	return b
}

// conjuncts calls f for each comparison with a number that must hold for e to have a
// result.
func conjuncts(e parser.Expr, f func(base parser.Expr, op parser.ItemType, limit float64)) {
	n, ok := bare(e).(*parser.BinaryExpr)
	if !ok {
		return
	}
	switch {
	case n.Op == parser.LAND && plain(n):
		conjuncts(n.LHS, f)
		conjuncts(n.RHS, f)
	case n.Op == parser.LAND || n.Op == parser.LUNLESS:
		conjuncts(n.LHS, f)
	case n.Op.IsComparisonOperator() && !n.ReturnBool:
		if v, ok := number(n.RHS); ok {
			f(base(n.LHS), n.Op, v)
			conjuncts(n.LHS, f)
		} else if v, ok := number(n.LHS); ok {
			f(base(n.RHS), mirrored(n.Op), v)
			conjuncts(n.RHS, f)
		}
	}
}

// plain tells that both sides of an "and" are about the same series.
func plain(n *parser.BinaryExpr) bool {
	return n.VectorMatching == nil || !n.VectorMatching.On && len(n.VectorMatching.MatchingLabels) == 0
}

// base is what a chain of comparisons with numbers compares.
func base(e parser.Expr) parser.Expr {
	n, ok := bare(e).(*parser.BinaryExpr)
	if !ok || !n.Op.IsComparisonOperator() || n.ReturnBool {
		return bare(e)
	}
	if _, ok := number(n.RHS); ok {
		return base(n.LHS)
	}
	if _, ok := number(n.LHS); ok {
		return base(n.RHS)
	}
	return e
}

func number(e parser.Expr) (float64, bool) {
	switch n := bare(e).(type) {
	case *parser.NumberLiteral:
		return n.Val, true
	case *parser.UnaryExpr:
		v, ok := number(n.Expr)
		if n.Op == parser.SUB {
			v = -v
		}
		return v, ok
	case *parser.BinaryExpr:
		return arithmetic(n)
	}
	return 0, false
}

func arithmetic(n *parser.BinaryExpr) (float64, bool) {
	l, okl := number(n.LHS)
	r, okr := number(n.RHS)
	if !okl || !okr {
		return 0, false
	}
	switch n.Op {
	case parser.ADD:
		return l + r, true
	case parser.SUB:
		return l - r, true
	case parser.MUL:
		return l * r, true
	case parser.DIV:
		return l / r, true
	case parser.POW:
		return math.Pow(l, r), true
	}
	return 0, false
}

// bare is e without parentheses.
func bare(e parser.Expr) parser.Expr {
	for {
		p, ok := e.(*parser.ParenExpr)
		if !ok {
			return e
		}
		e = p.Expr
	}
}

func mirrored(op parser.ItemType) parser.ItemType {
	switch op {
	case parser.GTR:
		return parser.LSS
	case parser.GTE:
		return parser.LTE
	case parser.LSS:
		return parser.GTR
	case parser.LTE:
		return parser.GTE
	}
	return op
}
