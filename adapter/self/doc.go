// Package self keeps the adapter's own metrics as series in its own store, so that
// rules and charts see them without anybody who scrapes: the devices, the adapter's
// parts, and the disk.
//
// In comes what a Gatherer gathers; out go samples. A series that is gone, such as that
// of a retired device, ends with a staleness marker; a stop ends none, because what it
// measures goes on. It never serves anything.
package self
