package query

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// The rule by which Prometheus' own scripts are put to buckets of five minutes and of
// an hour: all times of a script, those in its expressions too, are stretched so that
// the interval at which it loads samples is one window, or two of them are; and every
// sample comes a millisecond earlier, so that what a script evaluates at a sample's own
// time finds it in the bucket that ends there. The samples are folded as they always
// are, and raw ones are gone. An answer is that of the same raw samples, unless a
// warning or an info says that buckets cannot give it. Left out are expressions with
// times that are no whole windows then.
func TestScriptsOnBuckets(t *testing.T) {
	t.Parallel()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/prometheus/prometheus").Output()
	if err != nil {
		t.Skipf("the module's source is not at hand: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "promql/promqltest/testdata/*.test"))
	if err != nil || len(files) == 0 {
		t.Skip("the module was downloaded without its scripts")
	}
	for _, c := range []struct{ res, per int64 }{{5 * minute, 1}, {hour, 1}, {5 * minute, 2}, {hour, 2}} {
		t.Run(fmt.Sprint(c.res/minute, "m of ", c.per), func(t *testing.T) {
			t.Parallel()
			var (
				mu  sync.Mutex
				all tallied
			)
			t.Run("all", func(t *testing.T) {
				for _, f := range files {
					t.Run(filepath.Base(f), func(t *testing.T) {
						t.Parallel()
						text, err := os.ReadFile(f)
						if err != nil {
							t.Fatal(err)
						}
						s := &script{t: t, res: c.res, per: c.per}
						s.run(string(text))
						mu.Lock()
						defer mu.Unlock()
						all.add(s.tallied)
					})
				}
			})
			t.Logf("%d answers equal, %d refused by both, %d the same in spite of what was announced, %d differ as announced, %d left out",
				all.equal, all.refused, all.close, all.announced, all.left)
			if all.equal < 300 || all.equal+all.close < 800 || all.announced == 0 {
				t.Error("hardly any script was compared")
			}
		})
	}
}

// tallied is how many expressions came out how.
type tallied struct{ equal, refused, close, announced, left int }

func (a *tallied) add(b tallied) {
	a.equal += b.equal
	a.refused += b.refused
	a.close += b.close
	a.announced += b.announced
	a.left += b.left
}

// script runs one file.
type script struct {
	t   *testing.T
	res int64
	per int64 // samples in a window
	tallied

	unit   int64 // what is one window, in ms of the script; 0 before the first load
	loaded []loadedSeries
	tiers  *scriptTiers // over what is loaded; nil when that changed
	// ends are the evaluation times at which a tier knows already that a series ended:
	// its marker is alone in the window that begins there.
	ends []int64
	huge bool // something is loaded that leaves no room for other addends
}

// loadedSeries is a line below "load".
type loadedSeries struct {
	lset   labels.Labels
	values []parser.SequenceValue
	step   int64 // ms of the script
}

var (
	loadLine    = regexp.MustCompile(`^load(?:_with_nhcb)?\s+(\S+)$`)
	instantLine = regexp.MustCompile(`^eval(?:_fail|_warn)? instant at (\S+)\s+(.*)$`)
	rangeLine   = regexp.MustCompile(`^eval range from (\S+) to (\S+) step (\S+)\s+(.*)$`)
)

// scriptParser parses everything that the scripts may hold.
func scriptParser() parser.Parser { return parser.NewParser(promqltest.TestParserOpts) }

func (s *script) run(text string) {
	step := int64(0) // of the load that lines belong to
	for line := range strings.Lines(text) {
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		line = strings.TrimSpace(line)
		m := loadLine.FindStringSubmatch(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case line == "clear":
			*s = script{t: s.t, res: s.res, per: s.per, tallied: s.tallied}
			step = 0
		case m != nil:
			step = scriptTime(m[1])
			s.unit, s.tiers = s.per*divisor(s.unit/s.per, step), nil
		case indented && step > 0:
			s.load(line, step)
		default:
			step = 0
			s.eval(line)
		}
	}
}

// divisor is the greatest common one.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// scriptTime is in ms, negative where text is none.
func scriptTime(text string) int64 {
	d, err := model.ParseDuration(text)
	if err != nil {
		return -1
	}
	return ms(time.Duration(d))
}

func (s *script) load(line string, step int64) {
	lset, values, err := scriptParser().ParseSeriesDesc(line)
	if err != nil {
		s.left++ // start timestamps, which buckets do not keep
		return
	}
	s.loaded = append(s.loaded, loadedSeries{lset, values, step})
}

// windows is a stretch of time in ms of the script as one in windows of the tier.
func (s *script) windows(t int64) (ms int64, whole bool) {
	if s.unit == 0 {
		return t, t >= 0
	}
	return t * s.res / s.unit, t%s.unit == 0
}

// stretch stretches the times in an expression, and reports whether all are whole
// windows.
func (s *script) stretch(expr parser.Expr) bool {
	all := true
	scale := func(d time.Duration) time.Duration {
		t, whole := s.windows(ms(d))
		all = all && whole
		return msToDuration(t)
	}
	at := func(ts *int64) *int64 {
		if ts == nil {
			return nil
		}
		t, whole := s.windows(*ts)
		all = all && whole
		t += base
		return &t
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			n.OriginalOffset, n.Timestamp = scale(n.OriginalOffset), at(n.Timestamp)
			all = all && n.OriginalOffsetExpr == nil
		case *parser.MatrixSelector:
			n.Range = scale(n.Range)
			all = all && n.RangeExpr == nil
		case *parser.SubqueryExpr:
			if n.Step == 0 {
				n.Step = time.Minute // which is the default that the scripts were written for
			}
			n.Range, n.Step, n.OriginalOffset, n.Timestamp = scale(n.Range), scale(n.Step), scale(n.OriginalOffset), at(n.Timestamp)
			all = all && n.RangeExpr == nil && n.StepExpr == nil && n.OriginalOffsetExpr == nil
		}
		return nil
	})
	return all
}

// eval puts the expression of an "eval" line to both.
func (s *script) eval(line string) {
	var text string
	var times [3]int64
	whole := true
	read := func(i int, what string) {
		t, ok := s.windows(scriptTime(what))
		times[i], whole = t, whole && ok
	}
	if m := instantLine.FindStringSubmatch(line); m != nil {
		read(0, m[1])
		times[1], text = times[0], m[2]
	} else if m := rangeLine.FindStringSubmatch(line); m != nil {
		read(0, m[1])
		read(1, m[2])
		read(2, m[3])
		text = m[4]
	} else {
		return
	}
	expr, err := scriptParser().ParseExpr(text)
	if err != nil || !whole || !s.stretch(expr) {
		s.left++
		return
	}
	s.compare(expr.String(), base+times[0], base+times[1], times[2])
}

func (s *script) compare(expr string, start, end, step int64) {
	s.t.Helper()
	if s.tiers == nil {
		s.tiers = newScriptTiers(s)
	}
	want, saidRaw, err := evaluated(s.tiers.raw, expr, start, end, step)
	got, said, err2 := evaluated(s.tiers.folded, expr, start, end, step)
	if (err == nil) != (err2 == nil) {
		s.t.Errorf("%s: raw samples: %v, buckets: %v", expr, err, err2)
		return
	}
	if err != nil {
		s.refused++
		return
	}
	said = without(said, saidRaw)
	announced := strings.Contains(said, "an estimate") || strings.Contains(said, "not exact") ||
		s.per > 1 && strings.Contains(said, "reads the average")
	if cmp.Diff(want, got, near(1e-9)) != "" && strings.Contains(said, "ends with its last bucket") {
		// info() may have looked at another time than it was asked at.
		announced = announced || len(s.ends) > 0 && strings.Contains(expr, "info(")
		for _, at := range s.ends {
			forget(want, at)
			forget(got, at)
		}
	}
	diff := cmp.Diff(want, got, near(1e-9))
	switch {
	case diff != "" && s.huge && s.per > 1 && strings.Contains(expr, "_over_time("):
		// A window's sum is one number: beside 1e100 there is no room for a 1, and
		// what cancels with another window has lost it.
		s.announced++
	case diff == "" && announced:
		s.close++
	case diff == "":
		s.equal++
	case announced:
		s.announced++
		s.t.Logf("%s from %d to %d min: %s", expr, (start-base)/minute, (end-base)/minute, said)
	default:
		s.t.Errorf("%s from %d to %d step %d min, said %q\n-raw +buckets:\n%s", expr, (start-base)/minute, (end-base)/minute, step/minute, said, diff)
	}
}
