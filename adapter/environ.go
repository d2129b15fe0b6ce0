package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// envPrefix begins every environment variable that is a flag.
const envPrefix = "TICKTIER_ADAPTER_"

// unknownVariables are the variables that begin like ours and are no flag's, of no
// verb: most likely they are mistyped.
func unknownVariables(app *kong.Application, environ []string) []string {
	known := map[string]bool{}
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if f, ok := node.(*kong.Flag); ok {
			for _, name := range f.Envs {
				known[name] = true
			}
		}
		return next(nil)
	})
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, envPrefix) && !known[name] {
			out = append(out, name)
		}
	}
	return out
}
