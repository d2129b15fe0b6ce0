package collectors

import (
	"log/slog"
	"math"
	"time"
)

// Type is what a metric is, in Prometheus' terms.
type Type uint8

// The types that kernel sources have. Untyped is Prometheus' "unknown".
const (
	Untyped Type = iota
	Counter
	Gauge
)

// The types that series of other exporters have besides, numbered as remote write
// numbers them. A histogram's or a summary's series each have the family's type.
const (
	Histogram Type = iota + 3
	GaugeHistogram
	Summary
	Info
	StateSet
)

// A slot of one of these types is no series. It follows the slot of a series, whose
// source it has, and tells something of that series' newest sample, in Unix ms as
// Signed raw values: when its counter started at zero, and when the sample was taken
// where that is not the tick's time. Where a series has both, StartTime comes first.
const (
	StartTime Type = iota + 8
	SampleTime
)

// Companion tells whether slots of the type are no series but tell of one.
func (t Type) Companion() bool { return t == StartTime || t == SampleTime }

// Kind says how the 64 bits of a raw value are to be read.
type Kind uint8

const (
	// Unsigned raw values are uint64: the kernel's counters.
	Unsigned Kind = iota
	// Signed raw values are int64: gauges that may be negative.
	Signed
	// Float raw values are the bits of a float64.
	Float
)

// Metric is one metric family. It is made once, as a package variable or at
// construction, and never changes; series point at it.
type Metric struct {
	Name string
	Help string
	Unit string // OpenMetrics unit ("seconds", "bytes"), or empty
	Type Type
	Kind Kind
	// Mul and Div turn a raw value into the exported one: raw × Mul ÷ Div.
	// Zero means 1. A division is kept a division, because x ÷ 100 is the float
	// nearest to the true value where x × 0.01 is not.
	Mul, Div float64
}

// Value is the exported value of a raw one, in the metric's unit.
func (m *Metric) Value(raw int64) float64 {
	var v float64
	switch m.Kind {
	case Float:
		v = math.Float64frombits(uint64(raw))
	case Signed:
		v = float64(raw)
	default:
		v = float64(uint64(raw))
	}
	if m.Mul != 0 {
		v *= m.Mul
	}
	if m.Div != 0 {
		v /= m.Div
	}
	return v
}

// Label is one label of a series.
type Label struct{ Name, Value string }

// Series is one time series: a metric and the labels that tell its series
// apart, sorted by name. It never changes once it is in a Schema.
type Series struct {
	*Metric
	Labels []Label
	// Source is the index of the source that fills the series, as given to
	// NewOut; bit Source of a tick's Read mask says whether it was read then.
	Source uint8
}

// Env is what a source needs to know of the machine. No source spells a path
// of its own: tests point the roots at a captured tree.
type Env struct {
	Procfs string // usually /proc
	Sysfs  string // usually /sys
	Rootfs string // usually /
	// TextfileDirs are the directories, or patterns of them, with *.prom files.
	TextfileDirs []string
	// PingTargets are HOST or HOST:PORT, at most MaxPingTargets; CheckPingTarget must
	// have passed each.
	PingTargets []string
	// Options are the values of options that were given, by name (see Options). They
	// must have passed CheckOptions.
	Options map[string]string
	// ContainerNetwork allows sources of the network to report a container's own.
	ContainerNetwork bool
	Logger           *slog.Logger
	// Every is the time between two reads of the source; 0 where nobody knows.
	Every time.Duration
	// Event, where set, is told of what happened between two reads, in order. It is
	// called by a source as it reads and must not block.
	Event func(Event)
	// Self is what the "exporter" source reports of this process. Nil leaves out
	// all but what /proc/self tells.
	Self []SelfMetric
}

// Event is something that happened at a moment and is no value: a record of the
// kernel's log.
type Event struct {
	Source string
	// Mono is when, in ns since the machine booted without the time that it slept, by
	// the source's own clock: CLOCK_MONOTONIC, or close to it.
	Mono int64
	// Seq is the source's number of it, and Lost is how many before it, Seq−Lost to
	// Seq−1, the source never saw.
	Seq, Lost uint64
	// Level is syslog's: 0 is the most severe, 7 the least. So is Facility: 0 is the
	// kernel's, the others are what programs wrote into its log.
	Level, Facility int
	// Devices are the network devices that the text names, and Text may be any bytes.
	// Both are valid until the call returns.
	Devices []string
	Text    []byte
}

// SelfMetric is one series about the exporter itself. Read is called once per
// cadence from the tick goroutine: it must not block.
type SelfMetric struct {
	Metric Metric
	Labels []Label
	// Read returns the raw value (see Kind) and whether there is one.
	Read func() (int64, bool)
}

// Source is one kernel source, opened.
type Source interface {
	// Read reads the kernel once and sets the slots of this source in out. It is
	// called from one goroutine at a time and allocates only when a row appears
	// that it has not seen. On error the caller reports every series of the
	// source as absent until the next read that succeeds; the source keeps its
	// last good raw values. A bad row costs that row and is counted, not an
	// error.
	Read(out *Out) error
	// Close releases the files.
	Close() error
}

// Spec describes a source: what it is called, when it is read and why.
type Spec struct {
	Name    string // the collector label, the flag --collector.NAME
	Enabled bool   // read by default
	// Cadence is the shortest time between two reads; 0 is every tick.
	Cadence time.Duration
	// Reason says why the cadence is what it is.
	Reason string
	// Blocking sources may block for longer than a tick: they are read on a
	// goroutine of their own, at most one read outstanding.
	Blocking bool
	// Deadline is how long a read may take before the source is reported as
	// failed for that read.
	Deadline time.Duration
	// Files are the paths it reads, relative to their root, for people.
	Files []string
	// New opens the source. An error means it is not there on this machine; it
	// is retried now and then.
	New func(env Env) (Source, error)
}
