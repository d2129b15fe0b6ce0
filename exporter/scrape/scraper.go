package scrape

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/collectors/promtext"
)

// Config is what a Scraper needs. It is not changed after New.
type Config struct {
	Targets   []Target
	MaxSeries int   // of all targets
	MaxBytes  int64 // of one answer, once it is expanded
	// Schema names the slots of the rows. The scraper alone adds to it.
	Schema *collectors.Schema
	// Append takes a row: its number from 1, its monotonic time in ns, bit i for target
	// i, and the value of every slot, as collectors.Row has them. It must not keep the
	// slices. Seal is told that what comes is not to share a frame with what came.
	Append func(seq uint64, mono int64, read uint64, values []int64, present []uint64)
	Seal   func()
	// Delivered is the number of the first row that some receiver does not have yet.
	Delivered func() uint64
	// Now is the monotonic time in ns, Wall turns it into Unix ms.
	Now  func() int64
	Wall func(mono int64) int64
	// Instance is what the device is called: it stands in the instance label of a
	// target that has none of its own, in place of a host that is this one everywhere.
	Instance string
	Version  string // for the User-Agent
	// Transport is for tests; nil is plain net/http.
	Transport http.RoundTripper
	Logger    *slog.Logger
}

// Scraper asks the targets. Run is to be called once; the functions of SelfMetrics
// may be called from any goroutine.
type Scraper struct {
	cfg     Config
	targets []*target

	mu    sync.Mutex // guards the table, and what each target keeps of its series
	table *table
	text  promtext.Parser

	stats stats
}

// target is one target with what is kept of it. Its own goroutine alone uses it.
type target struct {
	Target
	name    string // in logs
	fetcher *fetcher
	reading *reading
	report  []int // slots of up and the scrape_ series
	down    time.Time
	old     bool // said that its samples are too old
}

// New makes a scraper. Rows begin with those of its first scrapes.
func New(c Config) (*Scraper, error) {
	switch {
	case len(c.Targets) > MaxTargets:
		return nil, fmt.Errorf("--scrape.url: %d targets, at most %d can be", len(c.Targets), MaxTargets)
	case c.MaxSeries < 1 || c.MaxBytes < 1:
		return nil, errors.New("scrape: MaxSeries and MaxBytes are needed")
	case c.Schema == nil || c.Append == nil || c.Seal == nil || c.Delivered == nil || c.Now == nil || c.Wall == nil || c.Logger == nil:
		return nil, errors.New("scrape: Schema, Append, Seal, Delivered, Now, Wall and Logger are needed")
	}
	s := &Scraper{cfg: c, table: newTable(&c)}
	s.table.seq = 1
	s.table.dropped = &s.stats.dropped
	metrics := reportMetrics()
	for i := range c.Targets {
		t := &target{Target: c.Targets[i], name: c.Targets[i].name()}
		var err error
		if t.fetcher, err = newFetcher(&t.Target, &c); err != nil {
			return nil, fmt.Errorf("--scrape.url: %s: %w", t.name, err)
		}
		labels := t.labels(c.Instance)
		t.reading = newReading(s.table, i, labels)
		t.reading.ignore = t.IgnoreTimes
		for _, m := range metrics {
			t.report = append(t.report, c.Schema.Add(uint8(i), m, slices.Clone(labels)...))
		}
		s.targets = append(s.targets, t)
	}
	s.table.row.Grow(c.Schema.Len())
	return s, nil
}

// labels are those that all series of the target get, sorted.
func (t *Target) labels(device string) []collectors.Label {
	out := slices.Clone(t.Labels)
	for _, l := range []collectors.Label{{Name: "job", Value: "scrape"}, {Name: "instance", Value: instance(t.URL.Scheme, t.URL.Hostname(), t.URL.Port(), device)}} {
		if !slices.ContainsFunc(out, func(o collectors.Label) bool { return o.Name == l.Name }) {
			out = append(out, l)
		}
	}
	out = slices.DeleteFunc(out, func(l collectors.Label) bool { return l.Value == "" })
	slices.SortFunc(out, func(a, b collectors.Label) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// instance is host and port. A host that is this one on every device gives way to the
// device's own name: series of a whole fleet would be one.
func instance(scheme, host, port, device string) string {
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	if ip := net.ParseIP(host); device != "" && (host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())) {
		host = device
	}
	return net.JoinHostPort(host, port)
}

// Run scrapes until ctx ends, each target at its interval and all of them spread over
// it.
func (s *Scraper) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for i, t := range s.targets {
		share := (float64(i) + rand.Float64()) / float64(len(s.targets))
		first := time.Now().Add(time.Duration(share * float64(t.Interval)))
		wg.Go(func() { s.run(ctx, t, first) })
	}
	wg.Wait()
	return nil
}

// run scrapes one target. A scrape takes its interval at most, and then the next
// follows at once: none is missed.
func (s *Scraper) run(ctx context.Context, t *target, next time.Time) {
	defer t.fetcher.close()
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s.scrape(ctx, t)
		next = next.Add(max(1, time.Since(next)/t.Interval) * t.Interval)
		timer.Reset(time.Until(next))
	}
}

// scrape asks a target once and appends the row.
func (s *Scraper) scrape(ctx context.Context, t *target) {
	mono := s.cfg.Now()
	body, form, err := t.fetcher.fetch(ctx)
	if ctx.Err() != nil {
		return // at the end nobody is down
	}
	took := s.cfg.Now() - mono

	s.mu.Lock()
	// Rows are in the order of their times. Where another target's began later and
	// was over sooner, this one's is between when it began and now.
	mono = max(mono, s.table.last+int64(time.Millisecond))
	s.table.last = mono
	r := t.reading
	r.begin(mono)
	if err == nil {
		err = s.read(r, body, form)
	}
	s.store(t, mono, took, err)
	s.mu.Unlock()

	s.stats.scrapes.Add(1)
	if err != nil {
		s.stats.failed.Add(1)
	}
	t.outcome(s.cfg.Logger, err)
}

// read reads an answer. s.mu is held.
func (s *Scraper) read(r *reading, body []byte, form Format) error {
	var err error
	switch form {
	case Protobuf:
		err = r.protobuf(body)
	case OpenMetrics:
		err = r.text(&s.text, body, promtext.OpenMetrics)
	default:
		err = r.text(&s.text, body, promtext.Text)
	}
	r.fam = family{} // lets go of the body
	s.stats.exemplars.Add(r.exemplars)
	s.stats.native.Add(r.native)
	return err
}

// outcome writes a line to the log where the target goes or comes back.
func (t *target) outcome(log *slog.Logger, err error) {
	switch {
	case err != nil && t.down.IsZero():
		t.down = time.Now()
		log.Warn("target cannot be scraped", "target", t.name, "reason", bounded(err))
	case err == nil && !t.down.IsZero():
		log.Info("target can be scraped again", "target", t.name, "after", time.Since(t.down).Round(time.Millisecond))
		t.down = time.Time{}
	}
}

// bounded is the text of an error that may hold what a target sent.
func bounded(err error) string {
	const most = 300
	s := err.Error()
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// reportMetrics are up and what else a Prometheus adds of a scrape.
func reportMetrics() []*collectors.Metric {
	var out []*collectors.Metric
	for _, m := range [...]struct{ name, help, unit string }{
		{"up", "Whether the target could be scraped.", ""},
		{"scrape_duration_seconds", "How long the scrape took.", "seconds"},
		{"scrape_samples_scraped", "Samples that the target exposed.", ""},
		{"scrape_samples_post_metric_relabeling", "Samples of these that were kept.", ""},
		{"scrape_series_added", "Series that the scrape before did not have.", ""},
	} {
		out = append(out, &collectors.Metric{Name: m.name, Help: m.help, Unit: m.unit, Type: collectors.Gauge, Kind: collectors.Float})
	}
	return out
}

// store puts what was read into the row and appends it. s.mu is held.
func (s *Scraper) store(t *target, mono, took int64, err error) {
	tab, r := s.table, t.reading
	up := 1.0
	if err != nil {
		up = 0
		r.points = r.points[:0]
		r.round++ // what was seen of it is not to count
	} else {
		n, oldest := s.keep(r, t.MaxAge, mono)
		t.sayOld(s.cfg.Logger, n, oldest)
	}
	s.end(r, mono)
	values := [...]float64{up, float64(took) / 1e9, float64(r.samples), float64(r.samples), float64(r.added)}
	for i, slot := range t.report {
		tab.row.Set(slot, int64(math.Float64bits(values[i])))
	}
	tab.alive[r.target] = len(r.prev)
	alive := 0
	for _, n := range tab.alive {
		alive += n
	}
	s.stats.series.Store(int64(alive))
	s.stats.slots.Store(int64(tab.schema.Len()))
	tab.commit(r.target, mono)
}

// ahead is how far a sample's own time may be ahead of the clock.
const ahead = 10 * time.Minute

// keep puts the points into the row, and returns how many it left out because their
// own time is longer ago than maxAge, and the oldest time of these in Unix ms.
func (s *Scraper) keep(r *reading, maxAge time.Duration, mono int64) (tooOld int, oldest int64) {
	row := &s.table.row
	first := s.cfg.Wall(s.cfg.Now()) - maxAge.Milliseconds()
	newest := s.cfg.Wall(s.cfg.Now()) + ahead.Milliseconds()
	for i := range r.points {
		p := &r.points[i]
		at := p.s.slot
		if p.s.shape&started != 0 {
			if p.start > s.cfg.Wall(mono) || p.start < 0 {
				p.start = 0 // by a clock that is ahead
			}
			row.Set(p.s.startAt(), p.start)
		}
		if p.s.shape&timed != 0 {
			ms := p.time
			row.Clear(at)
			switch {
			case ms > newest:
				s.stats.dropped.ahead.Add(1)
				continue
			case ms < first:
				if tooOld++; tooOld == 1 || ms < oldest {
					oldest = ms
				}
				continue
			case ms <= p.s.last:
				if ms < p.s.last {
					s.stats.dropped.old.Add(1)
				}
				continue
			}
			p.s.last = ms
			row.Set(p.s.timeAt(), ms)
		}
		row.Set(at, int64(math.Float64bits(p.value)))
	}
	s.stats.dropped.tooOld.Add(uint64(tooOld))
	return tooOld, oldest
}

// sayOld writes a line to the log where samples of the target begin to be too old.
func (t *target) sayOld(log *slog.Logger, n int, oldest int64) {
	if n > 0 && !t.old {
		log.Warn("target has samples with times that are too old, they are left out and counted", "target", t.name, "samples", n,
			"oldest", time.UnixMilli(oldest).UTC(), "max_age", t.MaxAge)
	}
	t.old = t.old || n > 0
}

// end ends the series that the last scrape had and this one has not.
func (s *Scraper) end(r *reading, mono int64) {
	for i := range r.points {
		r.points[i].s.alive = true
	}
	for _, x := range r.prev {
		if x.seen != r.round && x.slot >= 0 {
			s.table.row.Clear(x.slot)
			s.table.end(x, s.table.seq, mono)
		}
	}
	r.prev = r.prev[:0]
	for i := range r.points {
		r.prev = append(r.prev, r.points[i].s)
	}
	if len(r.points) > 0 {
		r.good = r.round
		r.clean()
	}
}

// clean forgets the names of series that the last scrape did not have.
func (r *reading) clean() {
	for key, e := range r.entries {
		if e.seen != r.round {
			delete(r.entries, key)
		}
	}
}
