// Package follow reads what the exporter's own API gives, exporter/expose/API.md: from
// a running exporter, or from a file that was recorded of one. In: a stream or lines of
// JSON. Out: ticks, with their series.
//
// It never writes, and keeps of the past only what turns counters into rates.
package follow
