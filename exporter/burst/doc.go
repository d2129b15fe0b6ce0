// Package burst keeps what a scrape cannot see: how the rates of single ticks were
// spread between two scrapes, as histograms since the start, and the highest and
// lowest of them since the same scraper came last.
//
// In: ticks, as the tick loop's sink, and the loop's own times. Out: snapshots,
// and requests of remote write made of them. It never reads a clock or the kernel,
// takes no memory per tick once every series has shown how far it moves, and holds its
// lock for one tick or one snapshot.
package burst
