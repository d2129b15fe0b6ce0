package store

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges are the tier's own metrics. The tier is a constant label, so that every
// tier may register its own.
func (b *Buckets) gauges() prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("ticktier_adapter_"+name, help, nil, prometheus.Labels{"tier": b.Name()})
	}
	return tierCollector{
		b:             b,
		blocks:        desc("store_blocks", "Blocks of a folded tier."),
		bytes:         desc("store_block_bytes", "Size of a folded tier's blocks."),
		buckets:       desc("store_block_buckets", "Buckets in a folded tier's blocks."),
		perBucket:     desc("store_bytes_per_bucket", "What a bucket in a folded tier's blocks takes, index included."),
		written:       desc("store_written_bytes_total", "Bytes of blocks written, those that replace or merge others included."),
		memorySeries:  desc("store_memory_series", "Series of a folded tier with buckets in memory."),
		memoryBuckets: desc("store_memory_buckets", "Buckets of a folded tier in memory."),
		memoryBytes:   desc("store_memory_bytes", "What a folded tier's buckets in memory take, without their labels."),
		watermark:     desc("fold_watermark_timestamp_seconds", "Every window that ends at or before this time is folded."),
	}
}

type tierCollector struct {
	b *Buckets

	blocks, bytes, buckets, perBucket, written, memorySeries, memoryBuckets, memoryBytes, watermark *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c tierCollector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c tierCollector) Collect(ch chan<- prometheus.Metric) {
	b := c.b
	b.mu.RLock()
	var bytes, buckets float64
	for _, blk := range b.blocks {
		bytes += float64(blk.Size())
		buckets += float64(blk.Meta().Stats.NumSamples)
	}
	blocks := len(b.blocks)
	memSeries, memBuckets, memBytes := b.mem.size()
	b.mu.RUnlock()
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	gauge(c.blocks, float64(blocks))
	gauge(c.bytes, bytes)
	gauge(c.buckets, buckets)
	if buckets > 0 {
		gauge(c.perBucket, bytes/buckets)
	}
	ch <- prometheus.MustNewConstMetric(c.written, prometheus.CounterValue, float64(b.written.Load()))
	gauge(c.memorySeries, float64(memSeries))
	gauge(c.memoryBuckets, float64(memBuckets))
	gauge(c.memoryBytes, float64(memBytes))
	if w := b.Watermark(); w != math.MinInt64 {
		gauge(c.watermark, float64(w)/1000)
	}
}
