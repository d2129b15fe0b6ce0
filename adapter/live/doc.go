// Package live hands the ticks of a device to whoever watches it, as server-sent
// events, once a second.
//
// In come the names of devices that pushed; out go events with the samples that are
// new since the last one. An event is read, built and compressed once, for all that
// watch the same device; what nobody watches costs nothing. A viewer that does not
// take its events is cut off, and comes again by itself.
//
// It never reads the store itself, and keeps no samples.
package live
