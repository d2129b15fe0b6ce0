// Package promtext reads the text forms in which metrics are exposed: Prometheus'
// text format 0.0.4 and OpenMetrics 1.0. It goes through a whole exposition line by
// line and says what each line holds. What it accepts and makes of it is what
// Prometheus' own parsers do, but for the little that doc comments name: bytes that
// come from elsewhere may be anything.
//
// In goes the whole exposition as bytes, which it neither copies nor changes. Out
// come slices of it. It allocates only where labels are asked for, and for errors; it
// knows no network, no clock and no series.
package promtext
