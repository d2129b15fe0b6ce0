// Package backfill moves old samples into an adapter: it reads files and directories
// that other programs wrote, in the order of time, and hands the samples on in batches,
// recent ones to be stored raw and old ones to be folded.
//
// It owns the reading of OpenMetrics and remote-write files. It does not know where the
// samples go: Sink does.
package backfill
