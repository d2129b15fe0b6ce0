// Package spool keeps on disk the ticks that a ring has to give up before every
// receiver has them. In come sealed frames, with what is needed to understand them
// after a restart: the series of their slots and the table that turns monotonic
// into wall time. Out go the ticks again, in order, of this session and of those
// before it, and a position for each receiver that survives a kill.
//
// While receivers keep up nothing is written. Segments are checksummed, a torn tail
// is cut, what is damaged is set aside in quarantine/, a disk that is full or broken
// leaves the exporter with its memory until it is good again, and what has to be
// dropped is counted with its time range. FORMAT.md has the bytes.
//
// It never waits for a disk on the goroutine that samples, never refuses to start
// because of what it finds, and never removes what a receiver may yet take while
// there is room.
package spool
