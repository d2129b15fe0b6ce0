package rulecheck

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// world is ten minutes of series, asked about at their end.
const world = `load 15s
  cpu{instance="r1",mode="idle"} 0+1x40
  cpu{instance="r1",mode="user"} 0+2x40
  limit{instance="r1"} 100x40
  limit{instance="r2"} 100x40
  other{host="r1"} 5x40
`

type engine struct {
	engine *promql.Engine
	store  storage.Queryable
	end    time.Time
	asked  int
}

func (e *engine) Series(ctx context.Context, selector string) (bool, error) {
	e.asked++
	m, err := parser.NewParser(parser.Options{}).ParseMetricSelector(selector)
	if err != nil {
		return false, err
	}
	q, err := e.store.Querier(0, e.end.UnixMilli())
	if err != nil {
		return false, err
	}
	defer q.Close()
	set := q.Select(ctx, false, nil, m...)
	return set.Next(), set.Err()
}

func (e *engine) Result(ctx context.Context, expr string) (bool, error) {
	q, err := e.engine.NewInstantQuery(ctx, e.store, nil, expr, e.end)
	if err != nil {
		return false, err
	}
	defer q.Close()
	r := q.Exec(ctx)
	if v, ok := r.Value.(promql.Vector); ok {
		return len(v) > 0, r.Err
	}
	return true, r.Err
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	s := promqltest.LoadedStorage(t, world)
	t.Cleanup(func() { s.Close() })
	return &engine{store: s, end: time.UnixMilli(600_000),
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true})}
}

func check(t *testing.T, ask Asker, rules ...rulefmt.Rule) []string {
	t.Helper()
	set := map[string]*rulefmt.RuleGroups{"f.yml": {Groups: []rulefmt.RuleGroup{{Name: "g", Interval: model.Duration(time.Minute), Rules: rules}}}}
	var done int
	r, err := Check(t.Context(), set, ask, func(d, of int) {
		if done++; d != done || of != len(rules) {
			t.Errorf("progress tells %d of %d at rule %d of %d", d, of, done, len(rules))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Rules != len(rules) {
		t.Errorf("%d rules were looked at, want %d", r.Rules, len(rules))
	}
	out := []string{}
	for _, f := range r.Findings {
		if f.File != "f.yml" || f.Group != "g" || f.Rule == "" {
			t.Errorf("a finding does not say where: %+v", f)
		}
		out = append(out, string(f.Kind)+": "+f.Why)
	}
	return out
}

func TestCheck(t *testing.T) {
	ask := newEngine(t)
	for _, tc := range []struct {
		name, expr string
		want       []string
	}{
		{"a threshold far away is no fault", `limit > 1e9`, nil},
		{"a threshold on the left", `1e9 < limit`, nil},
		{"a join", `rate(cpu{mode="user"}[5m]) > on(instance) group_left() limit`, nil},
		{"an absent that is there", `absent(limit{instance="r1"}) == 1 and on(instance) cpu`, nil},
		{"an exclusion that matches nothing", `limit unless on(instance) gone`, []string{"selector: no series matches gone"}},
		{"one side of an or", `gone > 1 or limit > 1e9`, []string{"selector: no series matches gone"}},
		{"thresholds that a value can meet", `limit > 10 and limit < 20 and limit != 15`, nil},
		{"a subquery younger than its step", `max_over_time(limit[1d:15m]) > 1e9`, nil},
		{"a subquery over a threshold", `count_over_time((limit > 1e9)[5m:1m]) > 3`, nil},
		{"bool", `(limit > bool 1e9) == 1`, nil},

		{"a selector that matches nothing", `rate(gone{a="b"}[5m]) > 1`,
			[]string{`selector: no series matches gone{a="b"}`, `never: can never fire: it needs gone{a="b"}`}},
		{"a label no series has", `limit{instance="r9"} > 1`,
			[]string{`selector: no series matches limit{instance="r9"}`, `never: can never fire: it needs limit{instance="r9"}`}},
		{"a join over labels that differ", `(cpu / on(instance) group_left() other) > 1`,
			[]string{`never: can never fire: its selectors match, but this has no result: cpu / on (instance) group_left () other`}},
		{"the smallest part is named", `sum by (instance) (cpu * on(host, instance) group_left() other) > 1 and on(instance) limit`,
			[]string{`never: can never fire: its selectors match, but this has no result: cpu * on (host, instance) group_left () other`}},
		{"no side of an or", `gone or gone2`, []string{"selector: no series matches gone", "selector: no series matches gone2",
			"never: can never fire: without the selectors that match nothing, this has no result: gone or gone2"}},
		{"thresholds that contradict each other", `limit > 20 and limit < 10`,
			[]string{`never: can never fire: no value of limit meets every threshold`}},
		{"the same in a chain, mirrored, at the edge", `10 > (limit >= 10)`,
			[]string{`never: can never fire: no value of limit meets every threshold`}},
		{"a constant", `vector(1) > 1`, []string{`never: can never fire: no value of vector(1) meets every threshold`}},
		{"absent is 1 or nothing", `absent(gone) > 2 * 1`,
			[]string{"selector: no series matches gone", `never: can never fire: no value of absent(gone) meets every threshold`}},
		{"thresholds of joined series are none of one", `limit > 20 and on() limit < 10`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.want == nil {
				tc.want = []string{}
			}
			if diff := cmp.Diff(tc.want, check(t, ask, rulefmt.Rule{Alert: "A", Expr: tc.expr})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.expr, diff)
			}
		})
	}
}

func TestRecordedSeries(t *testing.T) {
	ask := newEngine(t)
	got := check(t, ask,
		rulefmt.Rule{Record: "instance:cpu:rate5m", Expr: "sum by (instance) (rate(cpu[5m]))"},
		rulefmt.Rule{Record: "instance:gone:sum", Expr: "sum(gone)"},
		rulefmt.Rule{Alert: "Busy", Expr: "instance:cpu:rate5m > 1"},
		rulefmt.Rule{Alert: "Second", Expr: `ALERTS{alertname="Busy"} == 1`})
	want := []string{
		"selector: no series matches gone", "never: records nothing: it needs gone",
		"unjudged: needs instance:cpu:rate5m, which other rules make and which is not stored yet",
		`unjudged: needs ALERTS{alertname="Busy"}, which other rules make and which is not stored yet`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	asked := ask.asked
	check(t, ask, rulefmt.Rule{Alert: "A", Expr: "limit > 1"}, rulefmt.Rule{Alert: "B", Expr: "limit offset 1m > 2"})
	if ask.asked != asked+1 {
		t.Errorf("one selector was asked for %d times", ask.asked-asked)
	}
}

type broken struct{ series, result error }

func (b broken) Series(context.Context, string) (bool, error) { return true, b.series }
func (b broken) Result(context.Context, string) (bool, error) { return false, b.result }

func TestQuestionsNotAnswered(t *testing.T) {
	set := map[string]*rulefmt.RuleGroups{"f.yml": {Groups: []rulefmt.RuleGroup{{Name: "g", Rules: []rulefmt.Rule{{Alert: "A", Expr: "x > 1"}}}}}}
	down := errors.New("connection refused")
	if _, err := Check(t.Context(), set, broken{series: down}, nil); !errors.Is(err, down) || !strings.Contains(err.Error(), "A of f.yml") {
		t.Errorf("error %v, want %v with the rule", err, down)
	}
	// One expression that is too much for the server leaves the others.
	r, err := Check(t.Context(), set, broken{result: errors.New("too many samples")}, nil)
	if err != nil || len(r.Findings) != 1 || r.Findings[0].Kind != Unjudged {
		t.Errorf("findings %+v, error %v", r.Findings, err)
	}
}

func TestSelectorsKeepTheirMatchers(t *testing.T) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(`{__name__=~"a|b", x="1"} offset 5m > 1`)
	if err != nil {
		t.Fatal(err)
	}
	s := selectors(e)
	if len(s) != 1 || s[0].metric != "" || !s[0].needed {
		t.Fatalf("%+v", s)
	}
	m, err := parser.NewParser(parser.Options{}).ParseMetricSelector(s[0].text)
	if err != nil || len(m) != 2 || m[0].Type == labels.MatchEqual && m[1].Type == labels.MatchEqual {
		t.Errorf("%s: %v, %v", s[0].text, m, err)
	}
}
