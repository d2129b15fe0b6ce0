// Package rules holds recording and alerting rules as plain Prometheus YAML, each
// file with tests for promtool beside it. README.md says how to load them.
//
// It has no code but a test, which checks that every rule parses, that alerts have
// what their readers need, and that every metric they name exists. It never
// evaluates them: promtool does, in e2e, and adapter/ruler.
package rules
