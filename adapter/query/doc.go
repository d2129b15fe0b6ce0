// Package query owns the Prometheus HTTP query API over raw samples and folded
// tiers. Requests come in as HTTP; PromQL is evaluated by Prometheus' own engine
// and answered through its own API package.
//
// A query is planned once, after it is parsed: for every selector and every
// stretch of time one source is chosen, the coarsest tier that still gives the
// answer the step and the range ask for, then finer ones where that tier is not
// folded yet, then whatever still exists where it has expired. A selector that
// reads raw samples only stays as it was written. Where a folded tier is read, a
// range function such as rate or avg_over_time is computed here, from the matching
// aggregates of the buckets and from raw samples, one answer for every evaluation
// time, and the engine is handed those answers (rewrite.go); so an expression means
// the same at every tier, and ranges may span tiers.
//
// Buckets are half-open windows [start, start+resolution). A PromQL range (t-r, t]
// reads them as [t-r, t): exact where both ends are window edges, in proportion to
// the overlap where they are not.
//
// The package never writes, folds or deletes anything, and never decides how long a
// tier is kept.
package query
