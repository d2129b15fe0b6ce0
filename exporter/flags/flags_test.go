package flags

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// upper is a TextUnmarshaler.
type upper string

func (u *upper) UnmarshalText(b []byte) error {
	if string(b) != strings.ToUpper(string(b)) {
		return errors.New("not in capitals")
	}
	*u = upper(b)
	return nil
}

type settings struct {
	Rate   int           `help:"A rate." default:"10" placeholder:"HZ"`
	Wait   time.Duration `name:"the.wait-time" help:"A time." default:"5s"`
	Share  float64       `help:"A share." default:"0.5"`
	Name   upper         `help:"A name." default:"ANN"`
	Colour string        `help:"A colour." enum:"red,blue" default:"red" group:"g"`
	URL    []string      `help:"Some." placeholder:"URL"`
	Fast   bool          `help:"Be fast."`
	Dir    string        `help:"A place." filled:""`
	Safe   bool          `help:"Be safe." default:"true" negatable:""`

	hidden int
}

func newSet(s *settings) *Set {
	set := New("X_")
	set.Struct(s, map[string]string{"g": "Looks"})
	return set
}

func TestParse(t *testing.T) {
	defaults := settings{Rate: 10, Wait: 5 * time.Second, Share: 0.5, Name: "ANN", Colour: "red", Safe: true}
	with := func(f func(*settings)) settings {
		s := defaults
		f(&s)
		return s
	}
	for _, c := range []struct {
		name string
		args []string
		env  []string
		want settings
		rest []string
		err  string
	}{
		{name: "nothing", want: defaults},
		{name: "flags", args: []string{"--rate=7", "--the.wait-time", "1m", "--share=1e-3", "--name=BOB", "--colour=blue", "--fast", "--no-safe"},
			want: settings{Rate: 7, Wait: time.Minute, Share: 1e-3, Name: "BOB", Colour: "blue", Fast: true}},
		{name: "a list", args: []string{"--url=a,b c", "--url=d"}, want: with(func(s *settings) { s.URL = []string{"a,b c", "d"} })},
		{name: "environment", env: []string{"X_RATE=7", "X_THE_WAIT_TIME=1m", "X_URL=a b", "X_SAFE=false", "X_NAME=", "Y_SHARE=1"},
			want: with(func(s *settings) { s.Rate, s.Wait, s.URL, s.Safe = 7, time.Minute, []string{"a b"}, false })},
		{name: "flag before environment", args: []string{"--rate=8", "--no-safe", "--url=c"}, env: []string{"X_RATE=7", "X_SAFE=true", "X_URL=a"},
			want: with(func(s *settings) { s.Rate, s.Safe, s.URL = 8, false, []string{"c"} })},
		{name: "a no that is turned over", args: []string{"--no-safe=false"}, want: defaults},
		{name: "the last of two", args: []string{"--no-safe", "--safe"}, want: defaults},
		{name: "a no has no variable", env: []string{"X_NO_SAFE=true"}, want: defaults},
		{name: "rest", args: []string{"a", "--rate=7", "b"}, want: with(func(s *settings) { s.Rate = 7 }), rest: []string{"a", "b"}},
		{name: "unknown", args: []string{"--ratte=1"}, err: "--ratte"},
		{name: "no number", args: []string{"--rate=ten"}, err: `"ten" is no whole number`},
		{name: "no value", args: []string{"--rate"}, err: "--rate"},
		{name: "no share", args: []string{"--share=half"}, err: `"half" is no number`},
		{name: "no time", args: []string{"--the.wait-time=10"}, err: `--the.wait-time`},
		{name: "no choice", args: []string{"--colour=green"}, err: "red, blue"},
		{name: "no name", args: []string{"--name=bob"}, err: "not in capitals"},
		{name: "neither", args: []string{"--safe=maybe"}, err: "neither true nor false"},
		{name: "neither, of a no", args: []string{"--no-safe=maybe"}, err: "neither true nor false"},
		{name: "in the environment", env: []string{"X_RATE=ten", "X_COLOUR=green"}, err: `X_RATE: "ten"`},
		{name: "empty", args: []string{"--dir="}, err: "--dir"},
		{name: "as good as empty", args: []string{"--dir= , "}, err: "is empty"},
		{name: "empty in the environment", env: []string{"X_DIR="}, err: "X_DIR: is empty"},
		{name: "empty, but given", args: []string{"--dir=a"}, env: []string{"X_DIR="}, want: with(func(s *settings) { s.Dir = "a" })},
		{name: "help", args: []string{"--rate=ten", "--help"}, err: "--rate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got settings
			rest, err := newSet(&got).Parse(c.args, c.env)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("the error is %v, want one with %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.hidden != 0 {
				t.Error("a field that is not exported was set")
			}
			if d := cmp.Diff(c.want, got, cmp.AllowUnexported(settings{})); d != "" {
				t.Error(d)
			}
			if strings.Join(rest, " ") != strings.Join(c.rest, " ") {
				t.Errorf("rest is %q, want %q", rest, c.rest)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	var s settings
	set := newSet(&s)
	if _, err := set.Parse([]string{"-h"}, nil); !errors.Is(err, ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	var b strings.Builder
	set.Help(&b)
	for _, want := range []string{"--rate=HZ", "A rate (10).\n", "--[no-]safe", " --fast ", "\nLooks:\n      --colour="} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "no-fast") || strings.Contains(b.String(), "hidden") {
		t.Error(b.String())
	}
}

func TestUnknown(t *testing.T) {
	var s settings
	got := newSet(&s).Unknown([]string{"X_RATE=1", "X_RATTE=1", "X_NO_SAFE=1", "HOME=/"})
	if d := cmp.Diff([]string{"X_RATTE", "X_NO_SAFE"}, got); d != "" {
		t.Error(d)
	}
}

// TestBugs: what a programmer got wrong is found by the first start.
func TestBugs(t *testing.T) {
	for name, p := range map[string]any{
		"type": &struct{ C chan int }{},
		"default": &struct {
			N int `default:"ten"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			New("X_").Struct(p, nil)
		}()
	}
}
