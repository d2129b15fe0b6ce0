// Package seed makes up the history of a fleet: devices with a day and a night,
// walks, spikes, counters with resets, and gaps. The same seed gives the same
// samples. It fills a data directory through adapter/store, as pushes and folds
// would have over months, for measurements and for trying things out.
//
// It never touches a directory that holds samples already.
package seed
