// Package frame is the codec for a run of ticks: a key row with every value, then
// one row per tick with only what changed. FORMAT.md beside it has the bytes.
//
// It is pure: no I/O, no clock, no locks, and it imports no other package of the
// project. Every byte it decodes is taken as hostile.
package frame
