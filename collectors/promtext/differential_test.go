package promtext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// line is what one line holds, as text that can be compared.
type line string

// ours is what the parser makes of an exposition.
func ours(b []byte, f Format, strict bool) (out []line, err error) {
	p := Parser{Strict: strict}
	p.Reset(b, f)
	for {
		e, err := p.Next()
		switch {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return out, err
		}
		switch e {
		case TypeLine:
			out = append(out, line(fmt.Sprintf("type %q %d", p.Name, p.Type)))
		case HelpLine:
			out = append(out, line(fmt.Sprintf("help %q %q", p.Name, p.Help())))
		case UnitLine:
			out = append(out, line(fmt.Sprintf("unit %q %q", p.Name, p.Text)))
		case Sample:
			name, ls, err := p.Labels(nil)
			if err != nil {
				return out, err
			}
			var all []labels.Label
			for _, l := range append(ls, Label{"__name__", name}) {
				all = append(all, labels.Label(l))
			}
			out = append(out, sampleLine(labels.New(all...), p.Value, p.Time, p.Timed, p.Exemplar))
		}
	}
}

func sampleLine(ls labels.Labels, v float64, ms int64, timed, exemplar bool) line {
	if !timed {
		ms = 0
	}
	return line(fmt.Sprintf("sample %s %x at %d %v, exemplar %v", ls, math.Float64bits(v), ms, timed, exemplar))
}

var theirTypes = map[model.MetricType]Type{model.MetricTypeCounter: Counter, model.MetricTypeGauge: Gauge, model.MetricTypeHistogram: Histogram,
	model.MetricTypeGaugeHistogram: GaugeHistogram, model.MetricTypeSummary: Summary, model.MetricTypeInfo: Info, model.MetricTypeStateset: StateSet}

// theirs is what Prometheus makes of it: its parser, and what its scrape loop refuses
// of what the parser lets pass.
func theirs(b []byte, f Format) (out []line, err error) {
	st := labels.NewSymbolTable()
	p := textparse.NewPromParser(bytes.Clone(b), st, false)
	if f == OpenMetrics {
		p = textparse.NewOpenMetricsParser(bytes.Clone(b), st)
	}
	for {
		e, err := p.Next()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, err
		}
		switch e {
		case textparse.EntryType:
			name, t := p.Type()
			out = append(out, line(fmt.Sprintf("type %q %d", name, theirTypes[t])))
		case textparse.EntryHelp:
			name, text := p.Help()
			out = append(out, line(fmt.Sprintf("help %q %q", name, text)))
		case textparse.EntryUnit:
			name, text := p.Unit()
			out = append(out, line(fmt.Sprintf("unit %q %q", name, text)))
		case textparse.EntrySeries:
			_, ts, v := p.Series()
			var ls labels.Labels
			p.Labels(&ls)
			if _, dup := ls.HasDuplicateLabelNames(); dup || !ls.IsValid(model.UTF8Validation) || ls.Get("__name__") == "" {
				return out, errors.New("labels")
			}
			ls = ls.WithoutEmpty()
			ms := int64(0)
			if ts != nil {
				ms = *ts
			}
			var ex exemplar.Exemplar
			out = append(out, sampleLine(ls, v, ms, ts != nil, p.Exemplar(&ex)))
		}
	}
}

// compare fails the test where the parsers differ, but for what is known.
func compare(t *testing.T, b []byte, f Format) {
	t.Helper()
	if bytes.IndexByte(b, 0) >= 0 {
		return // a line that begins with a zero is the end to Prometheus, and zeros elsewhere are passed over
	}
	if f == Text {
		for l := range bytes.Lines(b) {
			if l = bytes.TrimRight(l, "\n"); len(l) > 0 && (l[0] == ' ' || l[0] == '\t') {
				return // blanks before a name are a part of it to Prometheus
			}
		}
	}
	want, wantErr := theirs(b, f)
	got, gotErr := ours(b, f, false)
	if (wantErr == nil) != (gotErr == nil) {
		t.Fatalf("%q:\ngot  %v\nwant %v", b, gotErr, wantErr)
	}
	if wantErr != nil {
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%q (-want +got):\n%s", b, d)
	}
}

var textSeeds = []string{
	"", "\n", "\n\n", "a 1\n", "a 1", "a{} 1\n", "a 1 1700000000000\n", "a 1 -5\n", "a 1 +5\n", "a 1 5 6\n", "a 1 99999999999999999999\n",
	"a{b=\"c\"} 2\na{b=\"d\"} 3\n", "a{b=\"c\",} 2\n", "a{b=\"c\",,} 2\n", "a{,b=\"c\"} 2\n", "a{b=\"c\" d=\"e\"} 2\n", "a { b = \"c\" , d = \"e\" } 2\n",
	"a{b=\"\\\"\\\\\\n\\x\"} 1\n", "a{b=\"\\\n\"} 1\n", "a{b=\"x\ny\"} 1\n", "a{b=\"\xff\"} 1\n", "a{b=\"\"} 1\n", "a{b=\"1\",b=\"2\"} 1\n", "a{b=c} 1\n",
	"a{b=\"c} 1\n", "a{b=\"c\" 1\n", "a{b} 1\n", "a{} {} 1\n", "{\"a\"} 1\n", "{\"a.b\",\"c d\"=\"e\"} 1\n", "{\"a\\\"b\"} 1\n", "{b=\"c\",\"a\"} 1\n",
	"{\"a\",\"b\"} 1\n", "a{\"b\"} 1\n", "{} 1\n", "{\"\"} 1\n", "{\"a\",\"\"=\"x\"} 1\n", "{\"a\xff\"} 1\n", "{\"a\" b=\"c\"} 1\n", "{\"a\nb\"} 1\n",
	"a NaN\nb +Inf\nc -Inf\nd inf\ne nan\nf Infinity\n", "a 0x1p3\n", "a 1_000\n", "a 0x10\n", "a 1e999\n", "a 1e-999\n", "a .5\n", "a 5.\n", "a -\n", "a +1\n",
	"a+1\n", "a-1\n", "a\n", "1a 1\n", "a:b:c 1\n", ":a 1\n", "a.b 1\n", "é 1\n", "a\t1\t2\n", "a 1 \n", "a 1\t\n", "a 1\r\n", "# TYPE a counter\r\n",
	"# HELP a text \\n \\\\ \\\" \\x\n", "# HELP a\n", "# HELP a \n", "# HELP\n", "# HELP a! \n", "# HELP a  \n", "# HELP a \t \n", "# HELP \n", "# HELP 1 x\n", "# HELP  a   b\n", "# HELP a\tb\n", "# HELP a \xff\n",
	"# HELP \"a.b\" x\n", "# HELP \"a.b\"x\n", "#HELP a b\n", "# HELPa b\n", "#\n", "#x\n", "# x\n", "# comment # TYPE\n", "#\tTYPE\ta\tgauge\n",
	"# TYPE a counter\na 1\n", "# TYPE a counter \n", "# TYPE a  counter\n", "# TYPE a unknown\n", "# TYPE a untyped\n", "# TYPE a info\n", "# TYPE a\n", "# TYPE a gauge\n# TYPE a counter\n",
	"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_bucket{le=\"1e6\"} 1\nh_bucket{le=\"x\"} 1\nh_sum 3\nh_count 2\n",
	"# TYPE s summary\ns{quantile=\"0.5\"} 1\ns{quantile=\"1\"} 2\ns_sum 1\ns_count 2\nother{quantile=\"1\"} 3\n",
	"a 1\na 1\n", "b 1\na 1\nb{x=\"1\"} 1\n", "# EOF\n", "a 1\n# EOF\nb 2\n", "a 1 # {x=\"y\"} 1\n", "a{__name__=\"b\"} 1\n", "{__name__=\"b\"} 1\n", "a{b=\"c\"}1\n", "a{b=\"c\"}{\n", "{\n", "a{\n", "a{\"b\n",
	"a{b=\"c\\\"} 1\n", "a{b=\"c\\", "\ta 1\n", "  \n", "a{a=\"1\",b=\"2\"} 1\n", "a{x:y=\"1\"} 1\n", "a{1=\"1\"} 1\n", "a{_=\"1\"} 1\n",
}

var openMetricsSeeds = []string{
	"", "# EOF", "# EOF\n", "# EOF\n\n", "# EOF x", "# EOFx\n", "a 1\n", "a 1\n# EOF", "a 1\n# EOF\nb 1\n", "a 1", "\n# EOF\n", "#\n# EOF\n", "# x\n# EOF\n",
	"# TYPE a counter\n# HELP a b\n# UNIT a \na_total 1\na_created 5\n# EOF\n", "# TYPE a_seconds gauge\n# UNIT a_seconds seconds\na_seconds 1\n# EOF\n",
	"# UNIT a seconds\n# EOF\n", "# UNIT seconds seconds\n# EOF\n", "# UNIT _seconds seconds\n# EOF\n", "# UNIT aseconds seconds\n# EOF\n", "# UNIT a\n# EOF\n", "# HELP a\n# EOF\n", "# HELP a \n# EOF\n",
	"# HELP a \\\" \\n \\\\ \\x\n# EOF\n", "# HELP a \xff\n# EOF\n", "# TYPE a untyped\n# EOF\n", "# TYPE a unknown\n# EOF\n", "# TYPE a info\n# TYPE b stateset\n# TYPE c gaugehistogram\n# EOF\n",
	"# TYPE  a gauge\n# EOF\n", "# TYPE a  gauge\n# EOF\n", "# TYPE a gauge \n# EOF\n", "# TYPE a gauge", "# HELP \"a.b\" x\n# EOF\n", "# HELP \"a.b\"x\n# EOF\n",
	"a 1 2\n# EOF\n", "a 1 1.5\n# EOF\n", "a 1 -1.5\n# EOF\n", "a 1 1e3\n# EOF\n", "a 1 NaN\n# EOF\n", "a 1 +Inf\n# EOF\n", "a 1 2 3\n# EOF\n", "a  1\n# EOF\n", "a 1 \n# EOF\n", "a 1  2\n# EOF\n", "a\t1\n# EOF\n", " a 1\n# EOF\n",
	"a{b=\"c\"} 1\n# EOF\n", "a{b=\"c\",} 1\n# EOF\n", "a{b=\"c\" ,d=\"e\"} 1\n# EOF\n", "a{b=\"c\"d=\"e\"} 1\n# EOF\n", "a {b=\"c\"} 1\n# EOF\n", "a{ b=\"c\"} 1\n# EOF\n", "a{b=\"c\"}1\n# EOF\n", "a{} 1\n# EOF\n", "{} 1\n# EOF\n", "a{b=\"x\ny\"} 1\n# EOF\n",
	"a{b=\"\\\"\\\\\\n\\x\"} 1\n# EOF\n", "{\"a.b\"} 1\n# EOF\n", "{\"a.b\",\"c\"=\"d\"} 1\n# EOF\n", "{\"a\",\"b\"} 1\n# EOF\n", "a{\"b\"} 1\n# EOF\n", "{\"a\nb\"} 1\n# EOF\n", "{b=\"c\",\"a\"} 1\n# EOF\n", "{\"a\"b=\"c\"} 1\n# EOF\n",
	"a_total 1 # {x=\"y\"} 2\n# EOF\n", "a_total 1 # {x=\"y\"} 2 3.5\n# EOF\n", "a_total 1 5 # {x=\"y\",} 2 3.5\n# EOF\n", "a_total 1 # {} 2\n# EOF\n", "a_total 1 # {x=\"y\"}\n# EOF\n", "a_total 1 # {x=\"y\"} 2 NaN\n# EOF\n",
	"a_total 1 # {x=\"y\"} 2 3 4\n# EOF\n", "a_total 1 #{x=\"y\"} 2\n# EOF\n", "a_total 1 # x\n# EOF\n", "a_total 1 # {\"x\"} 2\n# EOF\n", "a_total 1 # {\"x\"=\"y\"} 2\n# EOF\n", "a_total 1 # {x=\"\xff\"} 2\n# EOF\n", "a_total 1 # {x=\"y\"} 2", "a_total 1 # {x=\"y\nz\"} 2\n# EOF\n",
	"# TYPE h histogram\nh_bucket{le=\"1\"} 1 # {t=\"u\"} 0.5\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 3\nh_created 1.5\n# EOF\n", "a NaN\nb +Inf\n# EOF\n", "a 0x1p3\n# EOF\n", "a 1_0\n# EOF\n", "a 1\r\n# EOF\n", "a 1\nfoo\n# EOF\n", "a{\"x\\\ny\"=\"1\"} 1\n# EOF\n",
	"{\"\"} 1\n# EOF\n", "a{__name__=\"b\"} 1\n# EOF\n", "# HELP \"a\nb\" x\n# EOF\n",
}

func TestAsPrometheus(t *testing.T) {
	for _, s := range textSeeds {
		compare(t, []byte(s), Text)
	}
	for _, s := range openMetricsSeeds {
		compare(t, []byte(s), OpenMetrics)
	}
	good := 0
	for _, s := range textSeeds {
		if lines, err := ours([]byte(s), Text, false); err == nil && len(lines) > 0 {
			good++
		}
	}
	if good < 40 {
		t.Errorf("only %d texts hold anything", good)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range textSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		compare(t, b, Text)
		if lenient, err := ours(b, Text, true); err == nil {
			all, err := ours(b, Text, false)
			if err != nil || !cmp.Equal(lenient, all) {
				t.Errorf("%q: strict takes %v, and not strict %v, %v", b, lenient, all, err)
			}
		}
	})
}

func FuzzOpenMetrics(f *testing.F) {
	for _, s := range openMetricsSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { compare(t, b, OpenMetrics) })
}

func TestStrict(t *testing.T) {
	for _, s := range []string{"a 1", "a{b=\"\\x\"} 1\n", "a{b=\"1\" c=\"2\"} 1\n", "a+1\n", "{\"a\"} 1\n", "a{\"b\"=\"c\"} 1\n"} {
		if _, err := ours([]byte(s), Text, false); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		if _, err := ours([]byte(s), Text, true); err == nil {
			t.Errorf("%q: no error, though strict", s)
		}
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	if _, err := ours([]byte("a 1\n\nb x\n"), Text, false); err == nil || !strings.HasPrefix(err.Error(), "line 3: ") {
		t.Error(err)
	}
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		name, family string
		t            Type
		want         bool
	}{
		{"a_total", "a", Counter, true}, {"a", "a", Counter, true}, {"a_total", "a_total", Counter, true}, {"a_bucket", "a", Histogram, true},
		{"a", "a", Summary, true}, {"a_sum", "a", Gauge, false}, {"ab", "a", Gauge, false}, {"a_info", "a", Info, true}, {"b", "a", Gauge, false},
	} {
		if got := Of(c.name, c.family, c.t); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestAllocations goes through an exposition that was seen before.
func TestAllocations(t *testing.T) {
	text := []byte("# HELP a b\n# TYPE a counter\na{b=\"c\",d=\"e\"} 12345.678\na{b=\"d\"} 1e9 1700000000000\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 7\n")
	var p Parser
	n := testing.AllocsPerRun(100, func() {
		p.Reset(text, Text)
		for {
			if _, err := p.Next(); err != nil {
				return
			}
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
