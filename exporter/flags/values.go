package flags

import (
	"encoding"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// The types of flags. String is what pflag needs for a default, which help has from
// its own words.
type (
	boolValue     bool
	notValue      bool
	stringValue   string
	intValue      int
	floatValue    float64
	durationValue time.Duration
	listValue     []string
	textValue     struct{ encoding.TextUnmarshaler }
	funcValue     func(string) error
	shownValue    struct{}
	filled        struct{ pflag.Value }
	enum          struct {
		pflag.Value
		choices []string
	}
)

func (v *boolValue) Set(s string) error {
	b, err := parseBool(s)
	if err == nil {
		*v = boolValue(b)
	}
	return err
}
func (v *boolValue) String() string   { return "" }
func (v *boolValue) Type() string     { return "bool" }
func (v *boolValue) IsBoolFlag() bool { return true }

// Set takes the flag's value turned over: it is the flag's "no-".
func (v *notValue) Set(s string) error {
	b, err := parseBool(s)
	if err == nil {
		*v = notValue(!b)
	}
	return err
}
func (v *notValue) String() string { return "" }
func (v *notValue) Type() string   { return "bool" }

func (v *stringValue) Set(s string) error { *v = stringValue(s); return nil }
func (v *stringValue) String() string     { return "" }
func (v *stringValue) Type() string       { return "string" }

func (v *intValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is no whole number", s)
	}
	*v = intValue(n)
	return nil
}
func (v *intValue) String() string { return "" }
func (v *intValue) Type() string   { return "int" }

func (v *floatValue) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("%q is no number", s)
	}
	*v = floatValue(f)
	return nil
}
func (v *floatValue) String() string { return "" }
func (v *floatValue) Type() string   { return "float" }

func (v *durationValue) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is no time, such as 1h30m, 5s or 100ms", s)
	}
	*v = durationValue(d)
	return nil
}
func (v *durationValue) String() string { return "" }
func (v *durationValue) Type() string   { return "duration" }

// Set adds to the list.
func (v *listValue) Set(s string) error { *v = append(*v, s); return nil }
func (v *listValue) String() string     { return "" }
func (v *listValue) Type() string       { return "list" }

func (v textValue) Set(s string) error { return v.UnmarshalText([]byte(s)) }
func (v textValue) String() string     { return "" }
func (v textValue) Type() string       { return "text" }

func (v funcValue) Set(s string) error { return v(s) }
func (v funcValue) String() string     { return "" }
func (v funcValue) Type() string       { return "func" }

func (e enum) Set(s string) error {
	if !slices.Contains(e.choices, s) {
		return fmt.Errorf("%q is none of %s", s, strings.Join(e.choices, ", "))
	}
	return e.Value.Set(s)
}

// Set refuses what is empty, or as empty as a list of nothing.
func (f filled) Set(s string) error {
	if strings.Trim(s, " ,\t\n") == "" {
		return errors.New("is empty: give it a value, or leave it out")
	}
	return f.Value.Set(s)
}

func (shownValue) Set(string) error { return nil }
func (shownValue) String() string   { return "" }
func (shownValue) Type() string     { return "bool" }
