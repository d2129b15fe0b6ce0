package receive

import "time"

// The defaults of Config. Each bounds what one request, or all of them together, can
// make the adapter hold.
const (
	// defaultMaxBodyBytes is what vmagent's largest block and Prometheus' largest
	// accepted body are; an exporter's push of 500 series × 50 ticks is 0.2 MiB.
	defaultMaxBodyBytes = 32 << 20
	// defaultMaxDecodedBytes is four times the body: what snappy makes of remote
	// write 1.0, which repeats every label. Snappy alone could claim 21 times.
	defaultMaxDecodedBytes = 128 << 20
	// defaultDecodeBudget is two requests of the largest size, or thousands of
	// ordinary ones, at the same time.
	defaultDecodeBudget = 256 << 20
	// defaultMaxSamples bounds what the store's appender buffers for one request:
	// about 50 bytes a sample, so 200 MiB.
	defaultMaxSamples = 4 << 20
	// defaultMaxAhead is what Prometheus allows a sender's clock to be ahead.
	defaultMaxAhead = 10 * time.Minute
	// defaultBodyTimeout is how long a body may take: 32 MiB at 9 Mbit/s.
	defaultBodyTimeout = 30 * time.Second
	// defaultQueueTimeout is how long a request waits for memory before it is told
	// to come back.
	defaultQueueTimeout = 5 * time.Second
	// defaultMaxSeries bounds the cache of resolved label sets, at about 100 bytes
	// each beyond the labels the TSDB holds anyway.
	defaultMaxSeries = 500_000
	// defaultMaxFamilies bounds the metadata map. node_exporter has about 700
	// families; this leaves room for a fleet of mixed exporters.
	defaultMaxFamilies = 20_000
)

// Limits that no setting changes.
const (
	// maxLabels is four times what Mimir accepts by default.
	maxLabels = 128
	// maxNameBytes and maxValueBytes bound one label.
	maxNameBytes  = 1 << 10
	maxValueBytes = 64 << 10
	// maxLabelSetBytes bounds all names and values of one series.
	maxLabelSetBytes = 128 << 10
	// maxCachedLabelSetBytes: larger label sets are resolved by the store each time.
	maxCachedLabelSetBytes = 4 << 10
	// maxSymbols bounds the symbol table of one request, 24 bytes each: a request
	// for 100,000 series with two values of their own each needs 200,000.
	maxSymbols = 1 << 20
	// commitEvery is how many series are committed together. A commit of the TSDB takes
	// time and memory that grow with the square of the series that get their first late
	// sample in it.
	commitEvery = 2500
	// maxRequestSeries bounds the series, and the metadata, of one request: about 150
	// bytes each while it is stored.
	maxRequestSeries = 1 << 20
	// largeFactor is how many times its decompressed size a request of more than
	// keepBytes may take until it is stored, so that few of them are at it at a time.
	largeFactor = 4
	// maxBuckets bounds each list of a native histogram. A histogram at the finest
	// schema over 16 orders of magnitude has 13,600 buckets.
	maxBuckets = 1 << 14
	// heavy is how many samples a histogram or an exemplar counts for: what it costs
	// in memory.
	heavy = 8
	// maxHelpBytes and maxUnitBytes: longer texts are cut.
	maxHelpBytes = 1 << 10
	maxUnitBytes = 64
	// keepBytes is the largest buffer that goes back to the pool.
	keepBytes = 1 << 20
	// freeBytes is what a request may read before it needs a share of the budget.
	freeBytes = 64 << 10
	// retryAfter is told with every 503.
	retryAfter = 5 * time.Second
)
