// Package tick reads the kernel sources on a schedule of slots and hands each tick
// to a sink. It owns the tick thread, one goroutine for each blocking source, the
// row of newest values and the clock. In come the sources to read; out go ticks, by
// Sink, and what the loop knows of itself, as self metrics.
//
// It never queues: a slot that cannot be read is missed and counted, and the number
// of the next tick shows the hole. It formats, keeps and sends nothing.
package tick
