// Package expose answers HTTP on the exporter: the newest value of every series as
// Prometheus text or OpenMetrics, and whether the process is healthy and ready.
//
// Ticks and the schema come in through small interfaces; it keeps no state but a
// cache of what does not change between scrapes, reads no kernel file, and never
// makes a tick wait.
package expose
