package fleet

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config is what a Fleet needs. Zero values mean the defaults.
type Config struct {
	// Path is the file the devices are kept in; "" keeps them in memory only.
	Path       string
	Logger     *slog.Logger          // may be nil
	Registerer prometheus.Registerer // may be nil
	Now        func() time.Time      // the wall clock; nil is time.Now

	// MaxDevices bounds the devices known. When there are as many, others are counted
	// and not known: what is known is never dropped for what is new.
	MaxDevices int
	// DownAfter is how long a device may be silent and be up.
	DownAfter time.Duration
	// Clones says what becomes of the second of two senders that push as one device;
	// RefuseClones.
	Clones Clones
	// SaveInterval is how often the file is written, if anything changed.
	SaveInterval time.Duration
}

const (
	defaultMaxDevices = 10_000
	// defaultDownAfter is twelve pushes of an exporter at its default interval.
	defaultDownAfter    = time.Minute
	defaultSaveInterval = time.Minute
)

// Fleet is the devices known. It is safe for concurrent use.
type Fleet struct {
	cfg     Config
	metrics *metrics

	mu      sync.Mutex
	devices map[string]*Device // guarded by mu
	gates   map[string]*gate   // guarded by mu, by device
	// absences are when the adapter was down, oldest first; not changed after New.
	absences []Span
	dirty    bool // guarded by mu: something is not in the file
	full     atomic.Bool
}

// New returns a Fleet that knows what the file knows. A damaged file is moved aside
// and reported, and the Fleet starts empty; only a file that cannot be read at all is
// an error.
func New(cfg Config) (*Fleet, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.MaxDevices == 0 {
		cfg.MaxDevices = defaultMaxDevices
	}
	if cfg.DownAfter == 0 {
		cfg.DownAfter = defaultDownAfter
	}
	if cfg.SaveInterval == 0 {
		cfg.SaveInterval = defaultSaveInterval
	}
	if cfg.Clones == "" {
		cfg.Clones = RefuseClones
	}
	f := &Fleet{cfg: cfg, devices: map[string]*Device{}, gates: map[string]*gate{}}
	if cfg.Path != "" {
		if err := f.load(); err != nil {
			return nil, err
		}
	}
	f.metrics = newMetrics(cfg.Registerer, f)
	return f, nil
}

// Pushed notes a push. It does not block on anything but other pushes.
func (f *Fleet) Pushed(p Push) {
	if !validInstance(p.Device) {
		f.metrics.unknown.Inc()
		return
	}
	if !f.note(&p) {
		f.metrics.unknown.Inc()
		if !f.full.Swap(true) {
			f.cfg.Logger.Warn("too many devices; new ones are counted and not listed", "max", f.cfg.MaxDevices)
		}
	}
}

// note tells whether the device is known, or could be made known.
func (f *Fleet) note(p *Push) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.devices[p.Device]
	if d == nil {
		if len(f.devices) >= f.cfg.MaxDevices {
			return false
		}
		d = &Device{Instance: strings.Clone(p.Device)}
		f.devices[d.Instance] = d
	}
	d.observe(p, f.cfg.DownAfter, f.absences)
	f.dirty = true
	return true
}

// Devices returns a copy of what is known, ordered by instance.
func (f *Fleet) Devices() []Device {
	f.mu.Lock()
	list := make([]Device, 0, len(f.devices))
	for _, d := range f.devices {
		c := *d
		c.Outages = slices.Clone(d.Outages)
		list = append(list, c)
	}
	f.mu.Unlock()
	slices.SortFunc(list, func(a, b Device) int { return strings.Compare(a.Instance, b.Instance) })
	return list
}

// Device returns a copy of what is known of one.
func (f *Fleet) Device(instance string) (Device, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.devices[instance]
	if d == nil {
		return Device{}, false
	}
	c := *d
	c.Outages = slices.Clone(d.Outages)
	return c, true
}

// Retire forgets a device, and tells whether it was known. Its series end; if it pushes
// again it is known again, as new.
func (f *Fleet) Retire(instance string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, known := f.devices[instance]
	delete(f.devices, instance)
	delete(f.gates, instance)
	f.dirty = f.dirty || known
	if len(f.devices) < f.cfg.MaxDevices {
		f.full.Store(false)
	}
	return known
}

// Silent tells whether a device is known and has been silent for long: what it last
// said is not its present state.
func (f *Fleet) Silent(instance string) bool {
	now := f.cfg.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.devices[instance]
	return d != nil && !f.up(d, now)
}

// Down is when the adapter was down before it started, as far as it is known.
func (f *Fleet) Down() Span {
	if n := len(f.absences); n > 0 {
		return f.absences[n-1]
	}
	return Span{}
}

// smallFleet is from how many devices on a tenth of them is more than one.
const smallFleet = 10

// Lag is how late what is pushed comes: with nine of ten devices that are up, what they
// pushed last was no older. With fewer than ten it is the median, the lower of two: one
// device that is late would decide alone for all.
func (f *Fleet) Lag() time.Duration {
	now := f.cfg.Now()
	f.mu.Lock()
	lags := make([]float64, 0, len(f.devices))
	for _, d := range f.devices {
		if f.up(d, now) {
			lags = append(lags, max(0, d.LagSeconds+d.IntervalSeconds))
		}
	}
	f.mu.Unlock()
	if len(lags) == 0 {
		return 0
	}
	slices.Sort(lags)
	at := (len(lags)*9+9)/10 - 1
	if len(lags) < smallFleet {
		at = (len(lags) - 1) / 2
	}
	return time.Duration(lags[at] * float64(time.Second))
}

// Names returns the devices' instance labels in order.
func (f *Fleet) Names() []string {
	var names []string
	for _, d := range f.Devices() {
		names = append(names, d.Instance)
	}
	return names
}

// up tells whether the device has pushed lately enough.
func (f *Fleet) up(d *Device, now time.Time) bool { return now.Sub(d.LastPush) <= f.cfg.DownAfter }

// Run writes the file every SaveInterval, and once more when ctx is done. A file that
// cannot be written is reported and tried again; only at the end it is an error.
func (f *Fleet) Run(ctx context.Context) error {
	if f.cfg.Path == "" {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(f.cfg.SaveInterval)
	defer tick.Stop()
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return f.save()
		case <-tick.C:
		}
		err := f.save()
		switch {
		case err != nil:
			f.metrics.saveFailures.Inc()
			if failed++; failed == 1 {
				f.cfg.Logger.Error("the list of devices is kept in memory until it can be written", "err", err)
			}
		case failed > 0:
			f.cfg.Logger.Info("the list of devices is written again", "failures", failed)
			failed = 0
		}
	}
}
