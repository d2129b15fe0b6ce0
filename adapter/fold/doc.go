// Package fold turns the raw samples of a series into buckets, and buckets of one
// resolution into buckets of a coarser one. A window is half-open, [start,
// start+resolution), and aligned to the Unix epoch.
//
// It is pure: no I/O, no clock, no locks, and it imports no other package of the
// project. It neither decides which windows are closed nor where buckets go.
package fold
