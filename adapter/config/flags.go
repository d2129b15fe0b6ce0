package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Flags are all flags by name with their values, for the status API. The
// configuration holds no secrets: they are in files.
func (c *Config) Flags() map[string]string {
	out := map[string]string{}
	addFlags(out, reflect.ValueOf(c).Elem())
	return out
}

func addFlags(out map[string]string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			addFlags(out, v.Field(i))
			continue
		}
		name := f.Tag.Get("name")
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		out[name] = fmt.Sprint(v.Field(i).Interface())
	}
}
