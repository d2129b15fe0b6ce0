package ruler

import (
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// reaches tells for how long after its time a sample can change each group's results:
// as far as its rules look back, over the rules whose results they read.
func reaches(groups []*rules.Group, lookback time.Duration) []time.Duration {
	byName := map[string][]parser.Expr{}
	for _, g := range groups {
		for _, r := range g.Rules() {
			if rec, ok := r.(*rules.RecordingRule); ok {
				byName[rec.Name()] = append(byName[rec.Name()], rec.Query())
			}
		}
	}
	r := reach{lookback: lookback, rules: byName, known: map[string]time.Duration{}}
	out := make([]time.Duration, len(groups))
	for i, g := range groups {
		for _, rule := range g.Rules() {
			if rec, ok := rule.(*rules.RecordingRule); ok {
				out[i] = max(out[i], r.of(rec.Query()))
			}
		}
	}
	return out
}

type reach struct {
	lookback time.Duration
	rules    map[string][]parser.Expr
	known    map[string]time.Duration // of recorded metrics; 0 while it is looked for
}

// of is how far an expression looks back.
func (r *reach) of(e parser.Expr) time.Duration {
	longest := time.Duration(0)
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		d := v.OriginalOffset + r.lookback
		for _, p := range path {
			switch p := p.(type) {
			case *parser.MatrixSelector:
				d += p.Range
			case *parser.SubqueryExpr:
				d += p.Range + p.OriginalOffset
			}
		}
		for _, m := range v.LabelMatchers {
			if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
				d += r.recorded(m.Value)
			}
		}
		longest = max(longest, d)
		return nil
	})
	return longest
}

// recorded is how far the rules that record a metric look back.
func (r *reach) recorded(name string) time.Duration {
	if d, ok := r.known[name]; ok {
		return d
	}
	r.known[name] = 0 // a metric that is recorded from itself ends here
	longest := time.Duration(0)
	for _, e := range r.rules[name] {
		longest = max(longest, r.of(e))
	}
	r.known[name] = longest
	return longest
}
