// Package rulecheck says which selectors of rule files match no series, and which
// rules can never fire.
//
// In come rule groups and the answers of a Prometheus HTTP API, out go findings. A
// rule can never fire where its thresholds contradict each other, or where its
// expression without its thresholds has no result: then no value of the series that
// exist makes it fire.
//
// It never judges what a rule's author meant, and never changes anything.
package rulecheck
