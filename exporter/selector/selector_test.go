package selector

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/ticktier/ticktier/collectors"
)

// selectorCases are selectors that PromQL takes too.
var selectorCases = []string{
	`up`, ` up `, `a:b{}`, `{job="x"}`, `up{job="x",cpu!="0"}`, `up{job=~"x|y",cpu!~"0.*",}`, "up{ job = 'it\\'s' , a=`raw\\` }",
	`{__name__="b"}`, `{__name__=~"node_.*"}`, `a{x="\"<\\"}`, `a{x="\x41\u00e9\n"}`, `a{x="\303\251"}`, `a_total{cpu=""}`, `a{cpu!=""}`,
}

func TestSelectorsSelect(t *testing.T) {
	a := &collectors.Series{Metric: &collectors.Metric{Name: "a"}, Labels: []collectors.Label{{Name: "cpu", Value: "0"}, {Name: "x", Value: "é\n"}}}
	for s, want := range map[string]bool{
		`a`: true, `b`: false, `a{cpu="0"}`: true, `a{cpu="1"}`: false, `{cpu!="1"}`: true, `{cpu=~"0|1"}`: true, `{cpu=~"1"}`: false,
		`{cpu!~"[1-9]"}`: true, `a{mode=""}`: true, `a{mode!=""}`: false, `a{x=~"é."}`: true, `a{x=~"é"}`: false, `{__name__=~"a|b"}`: true,
	} {
		sel, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := sel.Selects(a); got != want {
			t.Errorf("%s selects: %v, want %v", s, got, want)
		}
	}
}

func TestSelectorsRefused(t *testing.T) {
	for _, s := range []string{
		"", " ", "1a", "a b", "a{", "a{}x", "a{b}", "a{b=}", "a{b=c}", `a{b="c}`, `a{b="c" d="e"}`, `a{,}`, `a{b=~"("}`, `a{b="\q"}`,
		`a{__name__="b"}`, `a{b="c"`, `a{b=="c"}`, "a{b='\n'}", `a[5m]`, `sum(a)`, `a{b="c"} offset 5m`, `a{b:c="d"}`,
	} {
		if _, err := Parse(s); err == nil {
			t.Errorf("%s was taken", s)
		}
	}
}

// FuzzSelector compares with PromQL: what its parser takes means the same here.
// It refuses selectors of every series, which are good here, and knows names in
// quotes, which are not.
func FuzzSelector(f *testing.F) {
	for _, s := range selectorCases {
		f.Add(s, "job", "x")
	}
	p := parser.NewParser(parser.Options{})
	f.Fuzz(func(t *testing.T, s, name, value string) {
		sel, err := Parse(s)
		ms, promErr := p.ParseMetricSelector(s)
		switch {
		case promErr == nil && err != nil && !strings.Contains(s, `{"`) && plainSelector(s):
			t.Fatalf("%q: %v; PromQL takes it", s, err)
		case promErr != nil || err != nil || !plainSelector(s):
			return
		}
		series := collectors.Series{Metric: &collectors.Metric{Name: "a"}, Labels: []collectors.Label{{Name: name, Value: value}}}
		if name == "__name__" || name == "" {
			series.Labels = nil
		}
		want := true
		for _, m := range ms {
			v := ""
			switch {
			case m.Name == "__name__":
				v = "a"
			case len(series.Labels) > 0 && m.Name == name:
				v = strings.ToValidUTF8(value, "\uFFFD")
			}
			want = want && m.Matches(v)
		}
		if got := sel.Selects(&series); got != want {
			t.Fatalf("%q selects %v: %v, PromQL says %v", s, series.Labels, got, want)
		}
	})
}

// plainSelector leaves out what PromQL has beyond selectors: names in quotes,
// comments, and keywords.
func plainSelector(s string) bool {
	if strings.ContainsAny(s, "#") {
		return false
	}
	if i := strings.IndexAny(s, "\"'`"); i >= 0 {
		head := strings.TrimRight(s[:i], " \t\r\n")
		return strings.HasSuffix(head, "=") || strings.HasSuffix(head, "~")
	}
	return true
}
