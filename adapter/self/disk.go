package self

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// disk is a collector of a file system's room.
type disk struct {
	dir        string
	free, size *prometheus.Desc
}

// Disk returns a collector of the room in the file system that holds dir. Where it
// cannot be read, a scrape says so and has the rest.
func Disk(dir string) prometheus.Collector {
	return &disk{
		dir:  dir,
		free: prometheus.NewDesc("ticktier_adapter_disk_free_bytes", "Room left in the file system with the data directory, for one who is not root.", nil, nil),
		size: prometheus.NewDesc("ticktier_adapter_disk_size_bytes", "Size of the file system with the data directory.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (d *disk) Describe(c chan<- *prometheus.Desc) {
	c <- d.free
	c <- d.size
}

// Collect implements prometheus.Collector.
func (d *disk) Collect(c chan<- prometheus.Metric) {
	var s unix.Statfs_t
	if err := unix.Statfs(d.dir, &s); err != nil {
		c <- prometheus.NewInvalidMetric(d.free, fmt.Errorf("look at the room of %s: %w", d.dir, err))
		return
	}
	c <- prometheus.MustNewConstMetric(d.free, prometheus.GaugeValue, float64(s.Bavail)*float64(s.Bsize))
	c <- prometheus.MustNewConstMetric(d.size, prometheus.GaugeValue, float64(s.Blocks)*float64(s.Bsize))
}
