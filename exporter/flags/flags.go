package flags

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// ErrHelp is returned by Parse where -h or --help was given.
var ErrHelp = pflag.ErrHelp

// helpWidth is where lines of help are broken.
const helpWidth = 100

// Set is the flags of one program, or of one of its verbs. Fill it in, then Parse
// once. Not safe for concurrent use.
type Set struct {
	prefix string // of environment variables
	all    *pflag.FlagSet
	groups []*group
	given  map[string]bool // by name, once it is parsed
}

// group is flags that help shows under one title.
type group struct {
	title string
	help  *pflag.FlagSet // never parsed: only its usage is printed
}

// New makes a set whose flags can also be set in the environment, by variables that
// begin with prefix; without a prefix they cannot.
func New(prefix string) *Set {
	s := &Set{prefix: prefix, all: pflag.NewFlagSet("", pflag.ContinueOnError)}
	s.all.SetOutput(io.Discard)
	s.all.Usage = func() {}
	return s
}

// Struct adds a flag for each exported field of the struct that p points to. Its
// tags are
//
//	name         the flag's name; without it, the field's in small letters
//	help         what it is for
//	default      its value where it is not given
//	placeholder  what help shows in place of a value
//	enum         the values there are, with commas between
//	filled       that a value which was given must not be empty
//	negatable    of a bool: that help shows it with [no-]
//	group        the title to show it under, by a name that titles has
//
// A []string is given by repeating its flag. A field of a type that flags cannot be
// of, and a default that is no value, are errors of the program: it panics.
func (s *Set) Struct(p any, titles map[string]string) {
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		name := f.Tag.Get("name")
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		val := valueOf(v.Field(i).Addr().Interface())
		if val == nil {
			panic(fmt.Sprintf("BUG: flags: --%s is of type %s", name, f.Type))
		}
		if choices := f.Tag.Get("enum"); choices != "" {
			val = enum{val, strings.Split(choices, ",")}
		}
		if _, ok := f.Tag.Lookup("filled"); ok {
			val = filled{val}
		}
		def := f.Tag.Get("default")
		if def != "" {
			if err := val.Set(def); err != nil {
				panic(fmt.Sprintf("BUG: flags: default of --%s: %v", name, err))
			}
		}
		_, negatable := f.Tag.Lookup("negatable")
		s.add(&flag{name: name, help: f.Tag.Get("help"), def: def, placeholder: f.Tag.Get("placeholder"),
			title: titles[f.Tag.Get("group")], negatable: negatable, value: val})
	}
}

// Switch adds a --[no-]name that has *p's present value where it is not given.
func (s *Set) Switch(p *bool, name, help, title string) {
	s.add(&flag{name: name, help: help, title: title, negatable: true, value: (*boolValue)(p)})
}

// Func adds a --name whose values are given to set; def is what help shows as its
// value where it is not given.
func (s *Set) Func(set func(string) error, name, help, def, placeholder, title string) {
	s.add(&flag{name: name, help: help, def: def, placeholder: placeholder, title: title, value: funcValue(set)})
}

// Hidden adds a flag that help does not show and the environment does not set, such
// as another program's name for it. One that is a switch may do without a value, and
// has a --no-name for which set is given false.
func (s *Set) Hidden(set func(string) error, name string, isSwitch bool) {
	s.register(s.all, name, funcValue(set), isSwitch).Hidden = true
	if isSwitch {
		not := func(v string) error {
			b, err := parseBool(v)
			if err != nil {
				return err
			}
			return set(strconv.FormatBool(!b))
		}
		s.register(s.all, "no-"+name, funcValue(not), true).Hidden = true
	}
}

// Given tells whether a flag, or its variable, was given when the set was parsed.
func (s *Set) Given(name string) bool { return s.given[name] }

type flag struct {
	name, help, def, placeholder, title string
	negatable                           bool
	value                               pflag.Value
}

func (s *Set) add(f *flag) {
	_, isBool := f.value.(*boolValue)
	s.register(s.all, f.name, f.value, isBool)
	shown, help := f.name, f.help
	if isBool {
		s.register(s.all, "no-"+f.name, (*notValue)(f.value.(*boolValue)), true).Hidden = true
		if f.negatable {
			shown = "[no-]" + f.name
		}
	} else {
		shown += "=" + f.placeholder
		if f.def != "" {
			help = strings.TrimSuffix(help, ".") + " (" + f.def + ")."
		}
	}
	i := slices.IndexFunc(s.groups, func(g *group) bool { return g.title == f.title })
	if i < 0 {
		i = len(s.groups)
		h := pflag.NewFlagSet("", pflag.ContinueOnError)
		h.SortFlags = false
		s.groups = append(s.groups, &group{f.title, h})
	}
	s.groups[i].help.VarPF(shownValue{}, shown, "", help).NoOptDefVal = "true"
}

func (s *Set) register(to *pflag.FlagSet, name string, v pflag.Value, isBool bool) *pflag.Flag {
	f := to.VarPF(v, name, "", "")
	if isBool {
		f.NoOptDefVal = "true"
	}
	return f
}

// Parse reads arguments and, for flags that they do not have, an environment of
// NAME=VALUE; an empty value counts as none, but for a flag whose value must not be
// empty. It returns what was no flag. The error
// is ErrHelp, or names the flag or the variable that is wrong.
func (s *Set) Parse(args, environ []string) ([]string, error) {
	if err := s.all.Parse(args); err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	var errs []error
	s.given = map[string]bool{}
	s.all.VisitAll(func(f *pflag.Flag) {
		no := s.all.Lookup("no-" + f.Name)
		s.given[f.Name] = f.Changed || no != nil && no.Changed
		name := s.env(f.Name)
		value, ok := env[name]
		if _, fill := f.Value.(filled); value == "" && !fill {
			return
		}
		if !ok || s.prefix == "" || f.Hidden || s.given[f.Name] {
			return
		}
		s.given[f.Name] = true
		if err := f.Value.Set(value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	})
	return s.all.Args(), errors.Join(errs...)
}

// env is the variable for a flag.
func (s *Set) env(flag string) string {
	return s.prefix + strings.NewReplacer("-", "_", ".", "_", "[]", "").Replace(strings.ToUpper(flag))
}

// Unknown are the variables of an environment that begin like ours and are no
// flag's: most likely they are mistyped.
func (s *Set) Unknown(environ []string) []string {
	known := map[string]bool{}
	s.all.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known[s.env(f.Name)] = true
		}
	})
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, s.prefix) && !known[name] {
			out = append(out, name)
		}
	}
	return out
}

// Help writes what flags there are, by group.
func (s *Set) Help(w io.Writer) {
	for _, g := range s.groups {
		title := g.title
		if title == "" {
			title = "Flags"
		}
		fmt.Fprintf(w, "\n%s:\n%s", title, g.help.FlagUsagesWrapped(helpWidth))
	}
}

// valueOf is the flag value for a field, nil for a type that flags cannot be of.
func valueOf(p any) pflag.Value {
	switch p := p.(type) {
	case *bool:
		return (*boolValue)(p)
	case *string:
		return (*stringValue)(p)
	case *int:
		return (*intValue)(p)
	case *float64:
		return (*floatValue)(p)
	case *time.Duration:
		return (*durationValue)(p)
	case *[]string:
		return (*listValue)(p)
	case encoding.TextUnmarshaler:
		return textValue{p}
	}
	return nil
}

func parseBool(s string) (bool, error) {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", s)
	}
	return b, nil
}
