// Package journal keeps the newest events in memory: what happened at a moment and is
// no value of a series, such as the records of the kernel's log.
//
// Events come in from the sources as they read, and go out by number to whoever
// serves or sends them. It never allocates once it holds one event, never waits for a
// reader, and keeps nothing on disk.
package journal
