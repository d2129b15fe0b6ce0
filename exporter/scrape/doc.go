// Package scrape asks what else serves metrics on the device: targets in, rows out.
// Every target has a goroutine that asks it at its interval, reads what it answers
// (OpenMetrics 1.0, Prometheus' text format 0.0.4, or its protobuf form), and appends
// one row with every series of every target, of which those of this target were read
// now: what a tick is to a kernel source. With it come up and the scrape_ series that
// a Prometheus adds. A series that is gone is absent from the row, and all of a
// target's are where it could not be scraped: whoever sends the rows makes staleness
// markers of that.
//
// What a target sends is hostile until it was read: bodies, series and labels are
// bounded, and one that is not as it should be counts as a whole as down. It never
// holds up the ticks, follows no redirect, uses no proxy, and writes no credential to
// a log or a label. Exemplars and the native parts of histograms are counted and left
// out; see docs/decisions.
package scrape
