package tier

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/storage"

	"github.com/ticktier/ticktier/adapter/fold"
	"github.com/ticktier/ticktier/adapter/store"
)

// Raw is what the driver asks of the raw samples.
type Raw interface {
	Querier(mint, maxt int64) (storage.Querier, error)
	MinTime() int64
	MaxTime() int64
	AllowDelete(t int64)
	Size() int64
	DropOver(bytes, t int64) (freed int64)
	OnLate(res int64, watermark func() int64, mark func([]store.Late) error)
}

// Config says what to drive.
type Config struct {
	Raw          Raw
	Fine, Coarse *store.Buckets // five minutes and an hour
	// RetentionFine and RetentionCoarse are counted back from the newest sample; 0
	// keeps for ever.
	RetentionFine, RetentionCoarse time.Duration
	// Keeps are the series whose hours are kept for a time of their own.
	Keeps []store.Keep
	// MaxBytes is what all tiers together may take on disk; 0 for as much as they need.
	// RawNeeds is how far back raw samples stay all the same.
	MaxBytes int64
	RawNeeds time.Duration
	// Hold, where it says so, has a cycle do nothing: there is no room to write blocks
	// in. May be nil.
	Hold func() bool
	// Interval is the time between two cycles; Lag is how long after its end a
	// window is left open for samples on their way.
	Interval, Lag time.Duration
	// OutOfOrderWindow is how much older than the newest a sample may be.
	OutOfOrderWindow time.Duration
	Journal          string   // path of the journal of late windows
	FS               store.FS // that the journal is written to; nil: the operating system's
	Now              func() time.Time
	Logger           *slog.Logger
	Registerer       prometheus.Registerer
}

// Driver folds. Run drives it; nothing else may write to the tiers.
type Driver struct {
	Config
	cycle   sync.Mutex // held while blocks may come or go
	journal *journal
	folder  *fold.Folder              // of Fine's resolution, reused
	merger  *fold.Folder              // of Coarse's
	hist    *histogram.FloatHistogram // reused
	// claimed is the time before which every window has been, or is being, folded:
	// a sample before it is late.
	claimed atomic.Int64
	m       *metrics
	failing bool // the last cycle failed; Run's own
	tight   bool // what has to be kept takes more than MaxBytes
	// lostHours are to be merged again by the next cycle.
	lostHours []redo
}

// New opens the journal and has the store tell of late samples from here on.
func New(c Config) (*Driver, error) {
	if c.FS == nil {
		c.FS = store.OS{}
	}
	j, dropped, err := openJournal(c.Journal, c.FS)
	if err != nil {
		return nil, err
	}
	if dropped > 0 {
		c.Logger.Warn("damaged tail of the journal of late windows cut off", "bytes", dropped)
	}
	d := &Driver{
		Config: c, journal: j,
		folder: fold.NewFolder(c.Fine.Resolution()), merger: fold.NewFolder(c.Coarse.Resolution()),
	}
	d.claimed.Store(c.Fine.Watermark())
	if err := d.markHoles(); err != nil {
		return nil, errors.Join(err, j.close())
	}
	d.m = newMetrics(c.Registerer, d.pending, map[string]func() float64{
		c.Fine.Name(): d.lag(c.Fine), c.Coarse.Name(): d.lag(c.Coarse),
	})
	c.Raw.OnLate(c.Fine.Resolution(), d.claimed.Load, d.markLate)
	d.allowDelete()
	return d, nil
}

// markHoles marks the windows that no block holds though raw samples reach back to
// them, and notes the hours that are missing: a block that was lost or set aside
// is made again, and its raw samples stay until it is. Where nothing was ever
// there, folding it again finds nothing.
func (d *Driver) markHoles() error {
	if d.Raw.MaxTime() == math.MinInt64 || d.Fine.Watermark() == math.MinInt64 {
		return nil
	}
	var windows []int64
	oldest := fold.Window(d.Raw.MinTime(), d.Fine.Resolution())
	for _, r := range d.Fine.Holes(oldest, d.Fine.Durable()) {
		for w := max(r.From, oldest); w < r.To; w += d.Fine.Resolution() {
			windows = append(windows, w)
		}
	}
	if d.Coarse.Watermark() != math.MinInt64 && d.Fine.MinTime() != math.MaxInt64 {
		for _, r := range d.Coarse.Holes(d.Fine.MinTime(), d.Coarse.Durable()) {
			d.lostHours = append(d.lostHours, redo{span: span{r.From, r.To}})
		}
	}
	return d.journal.mark(whole(windows))
}

// whole has all series of windows folded again.
func whole(windows []int64) []store.Late {
	list := make([]store.Late, len(windows))
	for i, w := range windows {
		list[i] = store.Late{Window: w, All: true}
	}
	return list
}

func (d *Driver) markLate(list []store.Late) error {
	d.m.late.Add(float64(len(list)))
	return d.journal.mark(list)
}

// Run folds until ctx is done, then closes the journal.
func (d *Driver) Run(ctx context.Context) error {
	t := time.NewTicker(d.Interval)
	defer t.Stop()
	for {
		err := d.Cycle(ctx)
		switch {
		case ctx.Err() != nil:
			return d.journal.close()
		case err != nil && !d.failing:
			d.Logger.Error("folding failed, will be tried again", "err", err)
		case err == nil && d.failing:
			d.Logger.Info("folding works again")
		}
		if d.failing = err != nil; d.failing {
			d.m.failures.Inc()
		}
		select {
		case <-ctx.Done():
			return d.journal.close()
		case <-t.C:
		}
	}
}

// span is a stretch of time, [from, to), aligned to Fine's windows.
type span struct{ from, to int64 }

// redo is a span of some series, or of all where it names none.
type redo struct {
	span
	series seriesSet
}

// Cycle folds what is closed and what is late, has blocks cut, and applies
// retention. A cycle that fails leaves everything to the next.
func (d *Driver) Cycle(ctx context.Context) error {
	d.cycle.Lock()
	defer d.cycle.Unlock()
	runtime.LockOSThread()
	start, used := time.Now(), threadTime()
	defer func() {
		d.m.seconds.Observe(time.Since(start).Seconds())
		d.m.cpu.Add(max(0, threadTime()-used))
		runtime.UnlockOSThread()
	}()
	if d.Raw.MaxTime() == math.MinInt64 || d.Hold != nil && d.Hold() {
		return nil
	}
	d.Fine.Start(d.Raw.MinTime())
	again, err := d.setAside()
	if err != nil {
		return err
	}
	d.lostHours = append(d.lostHours, again...)
	late, changed, lateErr := d.foldLate(ctx, d.journal.take())
	if err := d.foldClosed(ctx); err != nil {
		return errors.Join(lateErr, err)
	}
	if err := d.mergeHours(ctx, slices.Concat(changed, d.lostHours)); err != nil {
		return errors.Join(lateErr, err)
	}
	d.lostHours = nil
	if err := d.journal.done(late); err != nil {
		return errors.Join(lateErr, err)
	}
	if err := cutAll(d.Fine); err != nil {
		return err
	}
	if err := cutAll(d.Coarse); err != nil {
		return err
	}
	d.allowDelete()
	if err := d.retain(); err != nil {
		return errors.Join(lateErr, err)
	}
	if err := d.merge(); err != nil {
		return errors.Join(lateErr, err)
	}
	return lateErr
}

// setAside has damaged blocks moved out of the way. Their windows are marked to be
// folded again from what raw samples there still are, and it returns the spans
// whose hours are to be merged again.
func (d *Driver) setAside() (hours []redo, err error) {
	fine, err := d.Fine.SetAside()
	if err != nil {
		return nil, err
	}
	for _, r := range fine {
		var windows []int64
		from := max(r.From, fold.Window(d.Raw.MinTime(), d.Fine.Resolution()))
		for w := from; w < min(r.To, d.Fine.Watermark()); w += d.Fine.Resolution() {
			windows = append(windows, w)
		}
		if err := d.journal.mark(whole(windows)); err != nil {
			return nil, err
		}
	}
	coarse, err := d.Coarse.SetAside()
	for _, r := range coarse {
		hours = append(hours, redo{span: span{r.From, r.To}})
	}
	return hours, err
}

// closed is the time before which no window waits for samples any more: what the
// clock says, but not past the window of the newest sample, so that a clock that
// is ahead closes nothing.
func (d *Driver) closed() int64 {
	res := d.Fine.Resolution()
	maxt := d.Raw.MaxTime()
	if maxt == math.MinInt64 {
		return math.MinInt64
	}
	return min(fold.Window(d.Now().Add(-d.Lag).UnixMilli(), res), fold.Window(maxt, res)+res)
}

// foldClosed folds the windows between the watermark and what is closed, one
// block range at a time.
func (d *Driver) foldClosed(ctx context.Context) error {
	to := d.closed()
	from := d.Fine.Watermark()
	// Claimed before anything is looked at: what comes from here on is late.
	d.claimed.Store(max(d.claimed.Load(), to))
	if gap := fold.Window(d.Raw.MinTime(), d.Fine.Resolution()); gap > from {
		from = min(gap, to) // nothing is there before it
	}
	for _, s := range split(span{from, to}, d.Fine.BlockRange()) {
		if err := d.foldSpan(ctx, redo{span: s}); err != nil {
			return err
		}
		d.Fine.Advance(s.to)
	}
	return nil
}

// foldLate folds marked windows again. It returns those that are done and the
// spans it changed; a span that fails is left marked and costs no other.
func (d *Driver) foldLate(ctx context.Context, list []late) (done []int64, changed []redo, err error) {
	size, res := d.Fine.BlockRange(), d.Fine.Resolution()
	for len(list) > 0 {
		block := fold.Window(list[0].window, size)
		n := slices.IndexFunc(list, func(l late) bool { return l.window >= block+size })
		if n < 0 {
			n = len(list)
		}
		s := redo{span{list[0].window, list[n-1].window + res}, list[0].series}
		for _, l := range list[1:n] {
			s.series = s.series.union(l.series)
		}
		if e := d.foldSpan(ctx, s); e != nil {
			err = errors.Join(err, e)
		} else {
			changed = append(changed, s)
			for _, l := range list[:n] {
				done = append(done, l.window)
			}
			d.m.refolded.Add(float64(n))
		}
		list = list[n:]
	}
	return done, changed, err
}

// foldSpan folds raw samples of a span within one block range into memory, or
// into the range's block where that is cut already.
func (d *Driver) foldSpan(ctx context.Context, s redo) error {
	block := fold.Window(s.from, d.Fine.BlockRange())
	windows := float64((s.to - s.from) / d.Fine.Resolution())
	if block >= d.Fine.Durable() {
		defer d.m.windows.Add(windows)
		return d.foldRaw(ctx, s, func(sb store.SeriesBuckets) error {
			d.Fine.Put(sb.Labels, s.from, s.to, sb.Buckets)
			return nil
		})
	}
	var list []store.SeriesBuckets
	err := d.foldRaw(ctx, s, func(sb store.SeriesBuckets) error {
		list = append(list, store.SeriesBuckets{Labels: sb.Labels.Copy(), Buckets: slices.Clone(sb.Buckets)})
		return nil
	})
	if err != nil || len(list) == 0 {
		return err
	}
	d.m.windows.Add(windows)
	return d.Fine.Rewrite(block, s.from, s.to, list)
}

// split cuts a span at the edges of ranges.
func split(s span, size int64) (out []span) {
	for s.from < s.to {
		to := min(s.to, fold.Window(s.from, size)+size)
		out = append(out, span{s.from, to})
		s.from = to
	}
	return out
}

// cutAll cuts the blocks that are complete.
func cutAll(b *store.Buckets) error {
	for b.Watermark() != math.MinInt64 && b.Durable()+b.BlockRange() <= b.Watermark() {
		if err := b.Cut(b.Watermark()); err != nil {
			return err
		}
	}
	return nil
}

// merge merges the blocks of at most one range of each tier, so that a cycle never
// takes long; ranges that late samples may still reach are left alone.
func (d *Driver) merge() error {
	for _, b := range []*store.Buckets{d.Fine, d.Coarse} {
		if _, err := b.Merge(d.Raw.MaxTime() - d.OutOfOrderWindow.Milliseconds()); err != nil {
			return err
		}
	}
	return nil
}

// allowDelete lets raw samples go whose buckets are all in blocks.
func (d *Driver) allowDelete() {
	t := d.Fine.Durable()
	if w, ok := d.journal.oldest(); ok {
		t = min(t, w)
	}
	d.Raw.AllowDelete(t)
}

// pending is the number of windows that are closed or late and not folded.
func (d *Driver) pending() float64 {
	n := d.journal.len()
	if c, w := d.closed(), d.Fine.Watermark(); c > w && c != math.MinInt64 {
		from := max(w, fold.Window(d.Raw.MinTime(), d.Fine.Resolution()))
		n += int(max(0, c-from) / d.Fine.Resolution())
	}
	return float64(n)
}

// lag is how many seconds the clock is ahead of a tier's watermark.
func (d *Driver) lag(b *store.Buckets) func() float64 {
	return func() float64 {
		w := b.Watermark()
		if w == math.MinInt64 {
			return 0
		}
		return float64(d.Now().UnixMilli()-w) / 1000
	}
}
