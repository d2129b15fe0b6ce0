package fleet

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the fleet's own and, as a Collector, those of each device.
type metrics struct {
	fleet        *Fleet
	unknown      prometheus.Counter
	saveFailures prometheus.Counter
	saved        prometheus.Gauge
	known        *prometheus.Desc
	perDevice    []deviceMetric
}

// deviceMetric is a metric with the label instance.
type deviceMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(f *Fleet, d *Device, now time.Time) float64
	// known tells whether there is a value; nil is always.
	known func(d *Device) bool
}

func newMetrics(reg prometheus.Registerer, f *Fleet) *metrics {
	m := &metrics{
		fleet: f,
		unknown: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ticktier_adapter_fleet_unknown_pushes_total",
			Help: "Pushes without a usable instance label, or from devices beyond the number that is kept.",
		}),
		saveFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ticktier_adapter_fleet_save_failures_total", Help: "Attempts to write the list of devices that failed.",
		}),
		saved: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ticktier_adapter_fleet_saved_timestamp_seconds", Help: "When the list of devices was written last.",
		}),
		known: prometheus.NewDesc("ticktier_adapter_fleet_devices", "Devices known.", nil, nil),
	}
	m.add("up", "Whether the device has pushed lately.", prometheus.GaugeValue,
		func(f *Fleet, d *Device, now time.Time) float64 {
			if f.up(d, now) {
				return 1
			}
			return 0
		})
	m.add("last_push_timestamp_seconds", "When the device pushed last, by the adapter's clock.", prometheus.GaugeValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return seconds(d.LastPush) })
	m.add("first_push_timestamp_seconds", "When the device pushed first, by the adapter's clock.", prometheus.GaugeValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return seconds(d.FirstPush) })
	m.add("newest_sample_timestamp_seconds", "Timestamp of the device's newest sample, by its own clock; 0 before the first.", prometheus.GaugeValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 {
			if d.NewestSample.IsZero() {
				return 0
			}
			return seconds(d.NewestSample)
		})
	m.add("lag_seconds", "How much older than the last push its newest sample was; negative where the device's clock is ahead.", prometheus.GaugeValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return d.LagSeconds })
	m.add("clock_skew_seconds", "How much the device's clock is ahead of the adapter's, as of its last push.", prometheus.GaugeValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return d.ClockSkewSeconds })
	m.only(func(d *Device) bool { return d.ClockKnown })
	m.add("lost_ticks_total", "Ticks that the device says it could not keep until they were delivered.", prometheus.CounterValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return float64(d.LostTicks) })
	m.only(func(d *Device) bool { return d.Sender != "" })
	m.add("restarts_total", "New runs of the device's exporter.", prometheus.CounterValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return float64(d.Restarts) })
	m.only(func(d *Device) bool { return d.Sender != "" })
	m.add("push_interval_seconds", "Time between pushes that the device states.", prometheus.GaugeValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return d.IntervalSeconds })
	m.only(func(d *Device) bool { return d.IntervalSeconds > 0 })
	m.add("senders", "Exporters that push as the device: more than one are clones.", prometheus.GaugeValue,
		func(f *Fleet, d *Device, _ time.Time) float64 { return 1 + float64(len(f.clones(d.Instance))) })
	m.add("outages_total", "Times the device was silent for longer than --devices.down-after and came back.", prometheus.CounterValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return float64(d.OutagesTotal) })
	m.add("series", "Series in the device's last push.", prometheus.GaugeValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return float64(d.Series) })
	m.add("pushes_total", "Pushes of the device.", prometheus.CounterValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return float64(d.Pushes) })
	m.add("samples_total", "Samples stored of the device.", prometheus.CounterValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return float64(d.Samples) })
	m.add("rejected_total", "Samples, histograms and exemplars of the device that were refused.", prometheus.CounterValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return float64(d.Rejected) })
	m.add("received_bytes_total", "Bytes pushed by the device, compressed.", prometheus.CounterValue,
		func(_ *Fleet, d *Device, _ time.Time) float64 { return float64(d.Bytes) })
	if reg != nil {
		reg.MustRegister(m, m.unknown, m.saveFailures, m.saved)
	}
	return m
}

func (m *metrics) add(name, help string, kind prometheus.ValueType, value func(*Fleet, *Device, time.Time) float64) {
	m.perDevice = append(m.perDevice, deviceMetric{
		desc: prometheus.NewDesc("ticktier_device_"+name, help, []string{"instance"}, nil), kind: kind, value: value,
	})
}

// only limits the metric that was added last to devices where it is known.
func (m *metrics) only(known func(d *Device) bool) { m.perDevice[len(m.perDevice)-1].known = known }

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// Describe implements prometheus.Collector.
func (m *metrics) Describe(c chan<- *prometheus.Desc) {
	c <- m.known
	for _, d := range m.perDevice {
		c <- d.desc
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(c chan<- prometheus.Metric) {
	now := m.fleet.cfg.Now()
	devices := m.fleet.Devices()
	c <- prometheus.MustNewConstMetric(m.known, prometheus.GaugeValue, float64(len(devices)))
	for i := range devices {
		for _, d := range m.perDevice {
			if d.known != nil && !d.known(&devices[i]) {
				continue
			}
			c <- prometheus.MustNewConstMetric(d.desc, d.kind, d.value(m.fleet, &devices[i], now), devices[i].Instance)
		}
	}
}
