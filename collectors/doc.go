// Package collectors reads the kernel: one file per kernel source, text in,
// numbers out. A source keeps its files open, reads each with one pread into a
// buffer that grew to fit, parses without allocating, and sets raw 64-bit values
// in the slots of a Schema. Names and labels are node_exporter's.
//
// It knows neither the clock nor the schedule, keeps no history, and never logs
// from a read more than once per change of state. Only the exporter imports it.
package collectors
