package tier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"go.uber.org/goleak"

	"github.com/ticktier/ticktier/adapter/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	minute = int64(60_000)
	five   = 5 * minute
	hour   = 60 * minute
	day    = 24 * hour
)

// epoch is where the tests' time starts: the edge of a day.
var epoch = time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC).UnixMilli()

func testSeed() uint64 {
	if s, err := strconv.ParseUint(os.Getenv("TEST_SEED"), 10, 64); err == nil {
		return s
	}
	return uint64(time.Now().UnixNano())
}

func seed(t *testing.T) *rand.Rand {
	t.Helper()
	s := testSeed()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("TEST_SEED=%d", s)
		}
	})
	return rand.New(rand.NewPCG(s, 3))
}

// bench is a store with its driver and a clock of its own.
type bench struct {
	t            *testing.T
	dir          string
	raw          *store.Raw
	fine, coarse *store.Buckets
	d            *Driver
	now          int64
	retention    time.Duration
	fineOptions  store.BucketsOptions
	options      store.BucketsOptions // of the hours
	config       Config
	gate         *gate
}

func newBench(t *testing.T) *bench {
	b := makeBench(t)
	b.open()
	t.Cleanup(b.close)
	return b
}

// makeBench is a bench that is not open yet.
func makeBench(t *testing.T) *bench {
	return &bench{
		t: t, dir: t.TempDir(), now: epoch, retention: 48 * time.Hour,
		fineOptions: store.BucketsOptions{Resolution: five, BlockRange: 2 * hour, MergeRange: day},
		options:     store.BucketsOptions{Resolution: hour, BlockRange: day, MergeRange: 5 * day},
		config: Config{
			RetentionFine: 14 * 24 * time.Hour, RetentionCoarse: 90 * 24 * time.Hour,
			Interval: time.Minute, Lag: 30 * time.Second, OutOfOrderWindow: 24 * time.Hour,
		},
	}
}

func (b *bench) open() {
	b.t.Helper()
	if err := b.start(store.OS{}); err != nil {
		b.t.Fatal(err)
	}
}

// start opens everything on a file system. What it opened is closed where it fails.
func (b *bench) start(fs store.FS) (err error) {
	logger := slog.New(slog.DiscardHandler)
	var opened []func() error
	defer func() {
		for _, f := range slices.Backward(opened) {
			if err != nil {
				err = errors.Join(err, f())
			}
		}
	}()
	c := b.config
	b.raw, err = store.OpenRaw(filepath.Join(b.dir, "raw"), store.RawOptions{Retention: b.retention, OutOfOrderWindow: c.OutOfOrderWindow, Logger: logger})
	if err != nil {
		return err
	}
	opened = append(opened, b.raw.Close)
	for _, t := range []struct {
		to   **store.Buckets
		name string
		o    store.BucketsOptions
	}{{&b.fine, "5m", b.fineOptions}, {&b.coarse, "1h", b.options}} {
		t.o.FS, t.o.Logger = fs, logger
		if *t.to, err = store.OpenBuckets(filepath.Join(b.dir, t.name), t.o); err != nil {
			return err
		}
		opened = append(opened, (*t.to).Close)
	}
	b.gate = &gate{Raw: b.raw, allowed: math.MinInt64, most: math.MinInt64}
	c.Raw, c.Fine, c.Coarse = b.gate, b.fine, b.coarse
	c.Journal, c.FS = filepath.Join(b.dir, "late.journal"), fs
	c.Now, c.Logger = func() time.Time { return time.UnixMilli(b.now) }, logger
	b.d, err = New(c)
	return err
}

func (b *bench) close() {
	b.t.Helper()
	for _, f := range []func() error{b.d.journal.close, b.coarse.Close, b.fine.Close, b.raw.Close} {
		if err := f(); err != nil {
			b.t.Error(err)
		}
	}
}

func (b *bench) reopen() { b.close(); b.open() }

func (b *bench) cycle() {
	b.t.Helper()
	if err := b.d.Cycle(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

type sample struct {
	t int64
	v float64
}

func (b *bench) push(l labels.Labels, ss ...sample) {
	b.t.Helper()
	app := b.raw.AppenderV2(context.Background())
	for _, s := range ss {
		if _, err := app.Append(0, l, 0, s.t, s.v, nil, nil, storage.AOptions{}); err != nil {
			b.t.Fatalf("append %s at %d: %v", l, s.t-epoch, err)
		}
	}
	if err := app.Commit(); err != nil {
		b.t.Fatal(err)
	}
}

// read is what a tier has of an aggregate: by series, by the start of the window.
func read(t *testing.T, tier *store.Buckets, agg store.Agg) map[string]map[int64]float64 {
	t.Helper()
	q, err := tier.Querier(math.MinInt64/4, math.MaxInt64/4, agg, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	out := map[string]map[int64]float64{}
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	for set.Next() {
		m := map[int64]float64{}
		it := set.At().Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			at, v := it.At()
			if _, twice := m[at+1-tier.Resolution()]; twice {
				t.Errorf("tier %s: %s has two buckets at %d", tier.Name(), set.At().Labels(), at)
			}
			m[at+1-tier.Resolution()] = v
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
		out[set.At().Labels().String()] = m
	}
	if set.Err() != nil {
		t.Fatal(set.Err())
	}
	return out
}

// model is what was pushed.
type model map[string][]sample

func (m model) add(l labels.Labels, ss ...sample) { m[l.String()] = append(m[l.String()], ss...) }

func (m model) merge(other model) {
	for k, ss := range other {
		m[k] = append(m[k], ss...)
	}
}

func (m model) clone() model {
	c := model{}
	for k, ss := range m {
		c[k] = slices.Clone(ss)
	}
	return c
}

// want computes an aggregate from all samples before a time, by brute force.
func (m model) want(res, before int64, agg store.Agg) map[string]map[int64]float64 {
	out := map[string]map[int64]float64{}
	for k, ss := range m {
		ss = slices.Clone(ss)
		slices.SortFunc(ss, func(a, b sample) int { return int(a.t - b.t) })
		ws := map[int64]float64{}
		for _, s := range ss {
			w := s.t - s.t%res
			if w+res > before || value.IsStaleNaN(s.v) {
				continue
			}
			old, ok := ws[w]
			switch agg {
			case store.Count:
				ws[w] = old + 1
			case store.Sum:
				ws[w] = old + s.v
			case store.Min:
				if !ok || s.v < old {
					ws[w] = s.v
				}
			case store.Max:
				if !ok || s.v > old {
					ws[w] = s.v
				}
			case store.Last:
				ws[w] = s.v
			}
		}
		if len(ws) > 0 {
			out[k] = ws
		}
	}
	return out
}

func (b *bench) check(m model, when string) {
	b.t.Helper()
	for _, agg := range []store.Agg{store.Count, store.Sum, store.Min, store.Max, store.Last} {
		for _, tier := range []*store.Buckets{b.fine, b.coarse} {
			want := m.want(tier.Resolution(), tier.Watermark(), agg)
			got := read(b.t, tier, agg)
			if d := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0), cmpopts.EquateEmpty()); d != "" {
				b.t.Fatalf("%s, tier %s, aggregate %d (want -, got +): %s", when, tier.Name(), agg, d)
			}
		}
	}
}

func TestFoldsWhatIsClosed(t *testing.T) {
	b := newBench(t)
	m := model{}
	l := labels.FromStrings("__name__", "up")
	for i := range int64(200) {
		s := sample{epoch + 7*minute + i*10_000, float64(i)}
		b.push(l, s)
		m.add(l, s)
	}
	b.now = epoch + 20*minute + 29_000 // the lag is 30 s
	b.cycle()
	if w := b.fine.Watermark(); w != epoch+15*minute {
		t.Errorf("watermark at %d min, want 15", (w-epoch)/minute)
	}
	if p := b.d.pending(); p != 0 {
		t.Errorf("%v windows pending", p)
	}
	b.now += 2_000
	if p := b.d.pending(); p != 1 {
		t.Errorf("%v windows pending, want 1", p)
	}
	b.cycle()
	if w := b.fine.Watermark(); w != epoch+20*minute {
		t.Errorf("watermark at %d min, want 20", (w-epoch)/minute)
	}
	b.check(m, "after two cycles")
}

// A clock that is years ahead closes no window but that of the newest sample.
func TestClockAhead(t *testing.T) {
	b := newBench(t)
	b.push(labels.FromStrings("__name__", "up"), sample{epoch, 1}, sample{epoch + 61*minute, 1})
	b.now = epoch + 10*365*day
	b.cycle()
	if w := b.fine.Watermark(); w != epoch+65*minute {
		t.Errorf("watermark at %d min, want 65", (w-epoch)/minute)
	}
	if n := read(t, b.fine, store.Count); len(n) != 1 {
		t.Errorf("got %v", n)
	}
}

func TestLateSamples(t *testing.T) {
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprint("cut ", cut), func(t *testing.T) {
			b := newBench(t)
			m := model{}
			one, two := labels.FromStrings("__name__", "m", "i", "1"), labels.FromStrings("__name__", "m", "i", "2")
			n := int64(90)
			if cut {
				n = 26 * 60
			}
			for i := range n {
				s := sample{epoch + i*minute, float64(i % 17)}
				b.push(one, s)
				m.add(one, s)
			}
			b.now = epoch + n*minute + 30_000
			b.cycle()
			b.check(m, "in order")
			at := b.now - 23*hour
			if !cut {
				at = epoch + 20*minute
			}
			for i := range int64(100) {
				s := sample{at + i*30_000 + 7, float64(i)}
				b.push(two, s)
				m.add(two, s)
			}
			if b.d.pending() == 0 {
				t.Fatal("late samples left nothing to do")
			}
			b.reopen() // the marks are on file
			b.cycle()
			b.check(m, "late")
			if p := b.d.pending(); p != 0 {
				t.Errorf("%v windows pending", p)
			}
			b.reopen()
			b.cycle()
			b.check(m, "reopened")
		})
	}
}

// Samples of several days pushed with old times, by series with jitter, gaps,
// resets and late ones, with reopenings at random.
func TestDays(t *testing.T) {
	r := seed(t)
	b := newBench(t)
	m := model{}
	b.now = epoch + 4*day
	var ls []labels.Labels
	for i := range 5 {
		ls = append(ls, labels.FromStrings("__name__", "m_total", "i", strconv.Itoa(i)))
	}
	vs := make([]float64, len(ls))
	for at := epoch + 11*minute; at < epoch+3*day; at += minute {
		for i, l := range ls {
			switch r.IntN(200) {
			case 0:
				vs[i] = 0
			case 1:
				continue
			case 2:
				s := sample{at, math.Float64frombits(value.StaleNaN)}
				b.push(l, s)
				continue
			}
			vs[i] += float64(r.IntN(100))
			t := at + r.Int64N(20_000)
			if r.IntN(300) == 0 {
				t = max(epoch, t-r.Int64N(23*hour))
			}
			if slices.ContainsFunc(m[l.String()], func(s sample) bool { return s.t == t }) {
				continue
			}
			s := sample{t, vs[i]}
			b.push(l, s)
			m.add(l, s)
		}
		if r.IntN(500) == 0 {
			b.cycle()
		}
		if r.IntN(1500) == 0 {
			b.reopen()
		}
	}
	b.cycle()
	b.check(m, "all pushed")
	if b.coarse.Durable() < epoch+2*day {
		t.Errorf("hours are cut up to %d h only", (b.coarse.Durable()-epoch)/hour)
	}
	b.reopen()
	b.cycle()
	b.check(m, "reopened")
}

func TestRetention(t *testing.T) {
	b := newBench(t)
	l := labels.FromStrings("__name__", "m")
	m := model{}
	for i := range int64(20 * 24 * 4) {
		s := sample{epoch + i*15*minute, 1}
		b.push(l, s)
		m.add(l, s)
		if i%96 == 0 {
			b.now = s.t
			b.cycle()
		}
	}
	b.now = epoch + 20*day + minute
	b.cycle()
	if got := b.fine.MinTime(); got < epoch+5*day || got > epoch+6*day {
		t.Errorf("oldest five minutes at day %v, want about 6", float64(got-epoch)/float64(day))
	}
	if got := b.coarse.MinTime(); got != epoch {
		t.Errorf("oldest hour at %v h, want 0", (got-epoch)/hour)
	}
	want := m.want(hour, b.coarse.Watermark(), store.Count)
	if d := cmp.Diff(want, read(t, b.coarse, store.Count)); d != "" {
		t.Error(d)
	}
}

// gate records what raw may delete.
type gate struct {
	*store.Raw
	allowed, most int64
}

func (g *gate) AllowDelete(t int64) {
	g.allowed, g.most = t, max(g.most, t)
	g.Raw.AllowDelete(t)
}

// Raw samples may go only when their buckets are in blocks and no late sample
// waits to be folded.
func TestRawIsKeptUntilDurable(t *testing.T) {
	b := newBench(t)
	g := b.gate
	l := labels.FromStrings("__name__", "m")
	for i := range int64(7 * 60) {
		b.push(l, sample{epoch + i*minute, 1})
	}
	b.now = epoch + 7*hour + minute
	b.cycle()
	if g.allowed != epoch+6*hour {
		t.Errorf("deletable before %d h, want 6", (g.allowed-epoch)/hour)
	}
	b.push(l, sample{epoch + 3*hour + 1, 1})
	b.d.allowDelete()
	if g.allowed != epoch+3*hour {
		t.Errorf("deletable before %d h with a late sample, want 3", (g.allowed-epoch)/hour)
	}
}

func TestRunStops(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.d.Run(ctx); err != nil {
		t.Error(err)
	}
	var err error
	if b.d.journal, _, err = openJournal(b.d.Journal, store.OS{}); err != nil {
		t.Fatal(err)
	}
}

// A block that goes bad under a running adapter is set aside and made again from
// raw samples; the hours of a bad day from five minutes.
func TestDamagedBlockIsMadeAgain(t *testing.T) {
	b := newBench(t)
	m := model{}
	l := labels.FromStrings("__name__", "m")
	for i := range int64(26 * 60) {
		s := sample{epoch + i*minute, float64(i % 13)}
		b.push(l, s)
		m.add(l, s)
	}
	b.now = epoch + 26*hour + minute
	b.cycle()
	b.check(m, "whole")
	for _, tier := range []*store.Buckets{b.fine, b.coarse} {
		spoil(t, filepath.Join(b.dir, tier.Name(), tier.Blocks()[0].ULID, "chunks", "000001"))
		q, err := tier.Querier(epoch, epoch+26*hour, store.Max, 0)
		if err != nil {
			t.Fatal(err)
		}
		set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", "m"))
		if !set.Next() {
			t.Fatal("no series")
		}
		it := set.At().Iterator(nil)
		for it.Next() != chunkenc.ValNone {
		}
		if it.Err() == nil {
			t.Errorf("tier %s: a damaged block reads without an error", tier.Name())
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
	b.cycle()
	b.check(m, "made again")
	for _, tier := range []string{"5m", "1h"} {
		if aside, err := os.ReadDir(filepath.Join(b.dir, tier, "quarantine")); err != nil || len(aside) != 1 {
			t.Errorf("tier %s: %d blocks set aside, want 1: %v", tier, len(aside), err)
		}
	}
	b.reopen()
	b.cycle()
	b.check(m, "reopened")
}

// spoil turns bits in the middle of a file around.
func spoil(t *testing.T, file string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	at := info.Size()/2 - 8
	if _, err := f.ReadAt(buf, at); err != nil {
		t.Fatal(err)
	}
	for i := range buf {
		buf[i] ^= 0xff
	}
	if _, err := f.WriteAt(buf, at); err != nil {
		t.Fatal(err)
	}
}

// A raw block that cannot be opened costs its samples, not the start.
func TestDamagedRawBlock(t *testing.T) {
	b := newBench(t)
	l := labels.FromStrings("__name__", "m")
	m := model{}
	for i := range int64(8 * 60) {
		s := sample{epoch + i*minute, 1}
		b.push(l, s)
		m.add(l, s)
	}
	b.now = epoch + 8*hour + minute
	b.cycle()
	for range 100 { // the TSDB compacts beside the test
		if dirs, _ := filepath.Glob(filepath.Join(b.dir, "raw", "01"+strings.Repeat("?", 24), "index")); len(dirs) > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.close()
	dirs, err := filepath.Glob(filepath.Join(b.dir, "raw", "01"+strings.Repeat("?", 24), "index"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no raw block to damage: %v", err)
	}
	if err := os.Truncate(dirs[0], 10); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.cycle()
	b.check(m, "a raw block lost after its buckets were made")
	if aside, err := os.ReadDir(filepath.Join(b.dir, "quarantine")); err != nil || len(aside) != 1 {
		t.Errorf("%d raw blocks set aside, want 1: %v", len(aside), err)
	}
}

// A block that is found damaged at a start is made again from raw samples, and
// they are not deleted before it is.
func TestLostBlockIsMadeAgain(t *testing.T) {
	b := newBench(t)
	m := model{}
	l := labels.FromStrings("__name__", "m")
	for i := range int64(26 * 60) {
		s := sample{epoch + i*minute, float64(i % 13)}
		b.push(l, s)
		m.add(l, s)
	}
	b.now = epoch + 26*hour + minute
	b.cycle()
	b.check(m, "whole")
	blocks := b.fine.Blocks()
	day := b.coarse.Blocks()[0]
	b.close()
	for _, f := range []string{
		filepath.Join(b.dir, "5m", blocks[0].ULID, "index"), filepath.Join(b.dir, "5m", blocks[4].ULID, "meta.json"),
		filepath.Join(b.dir, "1h", day.ULID, "index"),
	} {
		if err := os.Truncate(f, 3); err != nil {
			t.Fatal(err)
		}
	}
	b.open()
	g := b.gate
	if g.allowed > blocks[0].MinTime {
		t.Errorf("raw samples may go before %d h, though no block holds them", (g.allowed-epoch)/hour)
	}
	b.cycle()
	b.check(m, "made again")
	if p := b.d.pending(); p != 0 {
		t.Errorf("%v windows pending", p)
	}
	b.reopen()
	b.cycle()
	b.check(m, "reopened")
}
