package store

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
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"go.uber.org/goleak"

	"github.com/ticktier/ticktier/adapter/fold"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	res   = int64(300_000)
	block = int64(7_200_000)
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// seed is TEST_SEED or the time, printed when a test fails.
func seed(t testing.TB) *rand.Rand {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if e := os.Getenv("TEST_SEED"); e != "" {
		s, _ = strconv.ParseUint(e, 10, 64)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("TEST_SEED=%d", s)
		}
	})
	return rand.New(rand.NewPCG(s, 2))
}

// buckets folds random samples of the windows of [from, to).
func buckets(r *rand.Rand, from, to int64) []fold.Bucket {
	f := fold.NewFolder(res)
	v := float64(r.IntN(1000))
	for t := from + r.Int64N(5000); t < to; t += 20_000 + r.Int64N(40_000) {
		switch r.IntN(30) {
		case 0:
			v = float64(r.IntN(10))
		case 1:
			f.Add(t, math.Float64frombits(value.StaleNaN))
			continue
		case 2:
			t += 900_000
		}
		v += float64(r.IntN(100))
		if t < to {
			f.Add(t, v)
		}
	}
	return slices.Clone(f.Buckets())
}

var sameBits = cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })

func TestAggrChunkRoundTrip(t *testing.T) {
	r := seed(t)
	for range 200 {
		want := fold.Settle(buckets(r, 0, 1+r.Int64N(block)), res)
		if len(want) == 0 {
			continue
		}
		lacks := fold.Parts(r.IntN(4))
		for i := range want {
			want[i].Drop(lacks)
		}
		c, err := encodeAggr(want, res)
		if err != nil {
			t.Fatal(err)
		}
		if c.NumSamples() != len(want) {
			t.Errorf("%d samples, want %d", c.NumSamples(), len(want))
		}
		got, err := c.decode(nil, res, colAll)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, sameBits); d != "" {
			t.Fatal(d)
		}
	}
}

// The counter sub-chunk is Thanos': the first raw sample, the running total at the
// end of each window, and once more the last raw value.
func TestCounterSubChunk(t *testing.T) {
	f := fold.NewFolder(100)
	for _, s := range [][2]float64{{10, 5}, {90, 9}, {110, 2}, {150, 4}, {220, 1}} {
		f.Add(int64(s[0]), s[1])
	}
	c, err := encodeAggr(f.Buckets(), 100)
	if err != nil {
		t.Fatal(err)
	}
	rest := c.b
	var sub []byte
	for range subCounter + 1 {
		if sub, rest, err = cutSub(rest); err != nil {
			t.Fatal(err)
		}
	}
	it, err := new(decoder).xor(sub)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for it.Next() == chunkenc.ValFloat {
		at, v := it.At()
		got = append(got, fmt.Sprint(at, ":", v))
	}
	if d := cmp.Diff([]string{"10:5", "99:9", "199:13", "299:14", "299:1"}, got); d != "" {
		t.Error(d)
	}
}

// What a bucket costs: the figure of FORMAT.md.
func TestBytesPerBucket(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	walk := func(digits float64) func() float64 {
		v := 40.0
		return func() float64 {
			v = max(0, v+r.NormFloat64())
			return math.Round(v*digits) / digits
		}
	}
	total := 0.0
	count := func() float64 { total += float64(r.IntN(100_000)); return total }
	for _, tc := range []struct {
		name  string
		next  func() float64
		lacks fold.Parts
	}{
		{"counter", count, fold.PartSum}, {"counter of unknown type", count, 0},
		{"gauge, one decimal", walk(10), fold.PartCounter}, {"gauge, whole", walk(1), fold.PartCounter},
		{"gauge, three decimals", walk(1000), fold.PartCounter}, {"gauge of unknown type", walk(10), 0},
	} {
		f := fold.NewFolder(res)
		for at := int64(0); at < 288*res; at += 30_000 {
			f.Add(at, tc.next())
		}
		bs := f.Buckets()
		for i := range bs {
			bs[i].Drop(tc.lacks)
		}
		c, err := encodeAggr(bs, res)
		if err != nil {
			t.Fatal(err)
		}
		per := float64(len(c.b)) / float64(len(bs))
		t.Logf("%-24s %5.2f bytes a bucket", tc.name, per)
		if per > 50 {
			t.Errorf("%s: %.1f bytes a bucket", tc.name, per)
		}
	}
}

func FuzzAggrChunk(f *testing.F) {
	c, err := encodeAggr(fold.Settle(buckets(rand.New(rand.NewPCG(1, 1)), 0, block), res), res)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.b)
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &aggrChunk{b}
		c.NumSamples()
		bs, err := c.decode(nil, res, colAll)
		if err != nil && len(bs) > 1<<16 {
			t.Errorf("%d buckets from a malformed chunk", len(bs))
		}
	})
}

func openTest(t *testing.T, dir string) *Buckets {
	t.Helper()
	b, err := OpenBuckets(dir, BucketsOptions{Resolution: res, BlockRange: block, Logger: quiet(),
		Counter: func(m string) bool { return m == "c_total" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// read returns what a querier gives, by series.
func read(t *testing.T, b *Buckets, mint, maxt int64, agg Agg, fill int64, ms ...*labels.Matcher) map[string][]string {
	t.Helper()
	q, err := b.Querier(mint, maxt, agg, fill)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if len(ms) == 0 {
		ms = append(ms, labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+"))
	}
	out := map[string][]string{}
	set := q.Select(t.Context(), true, nil, ms...)
	for set.Next() {
		it := set.At().Iterator(nil)
		key := set.At().Labels().String()
		for it.Next() == chunkenc.ValFloat {
			at, v := it.At()
			s := fmt.Sprint(v)
			if value.IsStaleNaN(v) {
				s = "stale"
			}
			out[key] = append(out[key], fmt.Sprint(at, ":", s))
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
	}
	if set.Err() != nil {
		t.Fatal(set.Err())
	}
	return out
}

func bucketAt(w int64, v float64) fold.Bucket {
	f := fold.NewFolder(res)
	f.Add(w+1000, v)
	f.Add(w+2000, v+2)
	return f.Buckets()[0]
}

func TestAggregates(t *testing.T) {
	b := openTest(t, t.TempDir())
	b.Start(0)
	f := fold.NewFolder(res)
	for _, s := range [][2]float64{{0, 10}, {1000, 14}, {2000, 3}, {300_000, 5}, {310_000, math.Float64frombits(value.StaleNaN)}} {
		f.Add(int64(s[0]), s[1])
	}
	g, c := labels.FromStrings("__name__", "g"), labels.FromStrings("__name__", "c_total")
	b.Put(g, 0, 2*res, f.Buckets())
	b.Put(c, 0, 2*res, f.Buckets())
	for _, cut := range []bool{false, true} {
		if cut {
			if err := b.Cut(block); err != nil {
				t.Fatal(err)
			}
		}
		for _, tc := range []struct {
			name string
			agg  Agg
			fill int64
			want []string
		}{
			{"count", Count, 0, []string{"299999:3", "599999:1"}},
			{"sum", Sum, 0, []string{"299999:27", "599999:5"}},
			{"min", Min, 0, []string{"299999:3", "599999:5"}},
			{"max", Max, 0, []string{"299999:14", "599999:5"}},
			{"last", Last, 0, []string{"299999:3", "599999:5"}},
			{"resets", Resets, 0, []string{"299999:1", "599999:0"}},
			// 10 → 14, reset, 3, then 5: what was counted until the reset is 14.
			{"counter", Counter, 0, []string{"1:10", "1999:14", "2000:3", "300000:5"}},
			{"value of a gauge", Value, 0, []string{"299999:9", "599999:5", "600000:stale"}},
			{"value, filled", Value, 100_000, []string{"99999:9", "199999:9", "299999:9", "399999:5", "499999:5", "599999:5", "600000:stale"}},
		} {
			t.Run(fmt.Sprint(tc.name, ", cut ", cut), func(t *testing.T) {
				if d := cmp.Diff(tc.want, read(t, b, 0, block, tc.agg, tc.fill)[g.String()]); d != "" {
					t.Error(d)
				}
			})
		}
		if d := cmp.Diff([]string{"299999:3", "599999:5", "600000:stale"}, read(t, b, 0, block, Value, 0)[c.String()]); d != "" {
			t.Errorf("value of a counter, cut %v: %s", cut, d)
		}
		if d := cmp.Diff([]string{"599999:1"}, read(t, b, 300_000, 600_000, Count, 0)[g.String()]); d != "" {
			t.Errorf("a part, cut %v: %s", cut, d)
		}
		// A counter's first sample lies long before its window's end.
		if d := cmp.Diff([]string{"1:10", "1999:14"}, read(t, b, 0, 1999, Counter, 0)[g.String()]); d != "" {
			t.Errorf("the head of a window, cut %v: %s", cut, d)
		}
	}
}

func TestBackAfterStale(t *testing.T) {
	b := openTest(t, t.TempDir())
	b.Start(0)
	f := fold.NewFolder(res)
	f.Add(10, 1)
	f.Add(res-1, math.Float64frombits(value.StaleNaN))
	f.Add(res, 2)
	l := labels.FromStrings("__name__", "g")
	b.Put(l, 0, 2*res, f.Buckets())
	want := []string{"299999:1", "300000:stale", "599999:2"}
	if d := cmp.Diff(want, read(t, b, 0, block, Value, 0)[l.String()]); d != "" {
		t.Error(d)
	}
}

func TestCutReopenReplaceDrop(t *testing.T) {
	dir := t.TempDir()
	r := seed(t)
	model := map[string]map[int64]fold.Bucket{}
	lsets := map[string]labels.Labels{}
	note := func(l labels.Labels, bs []fold.Bucket) {
		k := l.String()
		lsets[k] = l
		if model[k] == nil {
			model[k] = map[int64]fold.Bucket{}
		}
		for _, x := range bs {
			model[k][x.Start] = x
		}
	}
	check := func(b *Buckets, when string) {
		t.Helper()
		got := read(t, b, 0, 10*block, Sum, 0)
		want := map[string][]string{}
		for k, m := range model {
			for _, w := range slices.Sorted(keys(m)) {
				if m[w].Count > 0 {
					want[k] = append(want[k], fmt.Sprint(w+res-1, ":", m[w].Sum))
				}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s: %s", when, d)
		}
	}
	b := openTest(t, dir)
	b.Start(0)
	for i := range 7 {
		l := labels.FromStrings("__name__", "m", "i", strconv.Itoa(i))
		bs := buckets(r, 0, 2*block+block/2)
		b.Put(l, 0, 3*block, bs)
		note(l, bs)
	}
	b.Advance(2*block + block/2)
	check(b, "in memory")
	for b.Durable() < 2*block {
		if err := b.Cut(b.Watermark()); err != nil {
			t.Fatal(err)
		}
		check(b, "after a cut")
	}
	// Late buckets for a series that is there and for a new one.
	late := labels.FromStrings("__name__", "m", "i", "3")
	fresh := labels.FromStrings("__name__", "a", "i", "new")
	old := model[late.String()][2*res]
	f := fold.NewFolder(res)
	for i := range int64(old.Count) + 2 {
		f.Add(2*res+i*10, 7)
	}
	again := slices.Clone(f.Buckets())
	list := []SeriesBuckets{{fresh, []fold.Bucket{bucketAt(0, 5)}}, {late, again}}
	for _, s := range list {
		note(s.Labels, s.Buckets)
	}
	if err := b.Rewrite(0, 0, 3*res, list); err != nil {
		t.Fatal(err)
	}
	check(b, "after a rewrite")
	// A bucket with fewer samples than the one that is there does not replace it.
	poor := old
	poor.Count, poor.Sum = 0, 0
	poor = bucketAt(2*res, 3)
	poor.Count = 1
	if err := b.Rewrite(0, 2*res, 3*res, []SeriesBuckets{{late, []fold.Bucket{poor}}}); err != nil {
		t.Fatal(err)
	}
	check(b, "after a rewrite with less")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	// What was in memory only is gone, as the contract says.
	for k := range model {
		for w := range model[k] {
			if w >= 2*block {
				delete(model[k], w)
			}
		}
		if len(model[k]) == 0 {
			delete(model, k)
		}
	}
	b = openTest(t, dir)
	if b.Durable() != 2*block || b.Watermark() != 2*block {
		t.Errorf("cut %d, watermark %d after reopening, want %d", b.Durable(), b.Watermark(), 2*block)
	}
	check(b, "reopened")
	b.o.MergeRange = 2 * block
	for i, want := range []bool{true, false} {
		merged, err := b.Merge(2 * block)
		if err != nil || merged != want {
			t.Fatalf("merge %d: %v, %v", i, merged, err)
		}
		check(b, "merged")
	}
	if len(b.blocks) != 1 {
		t.Errorf("%d blocks after a merge, want 1", len(b.blocks))
	}
	extra := []SeriesBuckets{{fresh, []fold.Bucket{bucketAt(block+3*res, 11)}}}
	note(fresh, extra[0].Buckets)
	if err := b.Rewrite(block, block+3*res, block+4*res, extra); err != nil {
		t.Fatal(err)
	}
	check(b, "merged and rewritten")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = openTest(t, dir)
	check(b, "merged and reopened")
	if n := dropBefore(t, b, block); n != 0 {
		t.Errorf("%d blocks dropped that reach past the limit", n)
	}
	if n := dropBefore(t, b, 2*block); n != 1 {
		t.Errorf("%d blocks dropped, want 1", n)
	}
}

func TestDrop(t *testing.T) {
	b := openTest(t, t.TempDir())
	b.Start(0)
	l := labels.FromStrings("__name__", "m")
	for i := range int64(3) {
		b.Put(l, i*block, (i+1)*block, []fold.Bucket{bucketAt(i*block, 1)})
		if err := b.Cut((i + 1) * block); err != nil {
			t.Fatal(err)
		}
	}
	if n := dropBefore(t, b, block); n != 1 {
		t.Errorf("%d blocks dropped, want 1", n)
	}
	if b.MinTime() != block {
		t.Errorf("oldest window %d, want %d", b.MinTime(), block)
	}
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestDamagedBlockIsSetAside(t *testing.T) {
	dir := t.TempDir()
	b := openTest(t, dir)
	b.Start(0)
	l := labels.FromStrings("__name__", "m")
	b.Put(l, 0, block, []fold.Bucket{bucketAt(0, 1)})
	b.Put(l, block, 2*block, []fold.Bucket{bucketAt(block, 2)})
	for range 2 {
		if err := b.Cut(2 * block); err != nil {
			t.Fatal(err)
		}
	}
	first := b.blocks[0].Dir()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(first, "index"), 20); err != nil {
		t.Fatal(err)
	}
	// What a crash leaves of a block being written goes.
	if err := os.Mkdir(filepath.Join(dir, "01AAAAAAAAAAAAAAAAAAAAAAAA"+tmpSuffix), 0o777); err != nil {
		t.Fatal(err)
	}
	b = openTest(t, dir)
	if got := read(t, b, 0, 2*block, Count, 0)[l.String()]; len(got) != 1 {
		t.Errorf("got %v, want the bucket of the good block", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "quarantine", filepath.Base(first))); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"+tmpSuffix))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}

// A querier that was made before a cut misses nothing that the cut moves.
func TestQuerierAcrossCut(t *testing.T) {
	b := openTest(t, t.TempDir())
	b.Start(0)
	l := labels.FromStrings("__name__", "m")
	b.Put(l, 0, block, []fold.Bucket{bucketAt(0, 1), bucketAt(res, 2)})
	q, err := b.Querier(0, block, Count, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Cut(block); err != nil {
		t.Fatal(err)
	}
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, "m"))
	n := 0
	for set.Next() {
		for it := set.At().Iterator(nil); it.Next() != chunkenc.ValNone; n++ {
		}
	}
	if n != 2 {
		t.Errorf("%d buckets, want 2", n)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

func TestLabels(t *testing.T) {
	b := openTest(t, t.TempDir())
	b.Start(0)
	b.Put(labels.FromStrings("__name__", "m", "a", "1"), 0, block, []fold.Bucket{bucketAt(0, 1)})
	if err := b.Cut(block); err != nil {
		t.Fatal(err)
	}
	b.Put(labels.FromStrings("__name__", "m", "b", "2"), block, 2*block, []fold.Bucket{bucketAt(block, 1)})
	q, err := b.Querier(0, 2*block, Count, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	names, _, err := q.LabelNames(t.Context(), nil)
	if d := cmp.Diff([]string{"__name__", "a", "b"}, names); d != "" || err != nil {
		t.Error(d, err)
	}
	values, _, err := q.LabelValues(t.Context(), "b", nil)
	if d := cmp.Diff([]string{"2"}, values); d != "" || err != nil {
		t.Error(d, err)
	}
}

func openRawTest(t *testing.T, dir string) *Raw {
	t.Helper()
	r, err := OpenRaw(dir, RawOptions{Retention: 48 * time.Hour, OutOfOrderWindow: 24 * time.Hour, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestRawLateness(t *testing.T) {
	r := openRawTest(t, t.TempDir())
	var marked []int64
	water := int64(0)
	var fail error
	r.OnLate(res, func() int64 { return water }, func(ls []Late) error {
		for _, l := range ls {
			marked = append(marked, l.Window)
		}
		return fail
	})
	l := labels.FromStrings("__name__", "m")
	push := func(ts ...int64) error {
		app := r.AppenderV2(context.Background())
		for _, ts := range ts {
			if _, err := app.Append(0, l, 0, ts, 1, nil, nil, storage.AOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		return app.Commit()
	}
	base := int64(1_000) * res
	if err := push(base, base+1, base+res, base+5*res); err != nil {
		t.Fatal(err)
	}
	if len(marked) > 0 {
		t.Errorf("marked %v with nothing folded", marked)
	}
	water = base + 3*res
	if err := push(base+2, base+2*res, base+3*res, base+5*res+1); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int64{base, base + 2*res}, marked); d != "" {
		t.Error(d)
	}
	fail = errors.New("disk full")
	if err := push(base + 3); !errors.Is(err, fail) {
		t.Errorf("commit gave %v, want the marking's error", err)
	}
	if r.MaxTime() != base+5*res+1 || r.MinTime() > base {
		t.Errorf("times [%d, %d]", r.MinTime(), r.MaxTime())
	}
}

func TestLockDir(t *testing.T) {
	dir := t.TempDir()
	release, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockDir(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("a second lock: %v, want ErrInUse", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	again, err := LockDir(dir)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}

// What goes wrong on this machine says nothing about a block.
func TestUnreadableIsNotDamaged(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "01AAAAAAAAAAAAAAAAAAAAAAAA")
	if err := os.Mkdir(name, 0o777); err != nil {
		t.Fatal(err)
	}
	if n, err := setAsideRaw(dir, quiet()); n != 1 || err != nil {
		t.Errorf("an empty block: %d set aside, %v", n, err)
	}
	for _, e := range []error{syscall.EMFILE, syscall.EACCES, syscall.ENOMEM} {
		if !ours(fmt.Errorf("open: %w", e)) {
			t.Errorf("%v counts as damage", e)
		}
	}
	if ours(os.ErrNotExist) {
		t.Error("a missing file does not count as damage")
	}
}

func TestInspectAndVerifyRaw(t *testing.T) {
	dir := t.TempDir()
	r := openRawTest(t, dir)
	l := labels.FromStrings("__name__", "m")
	app := r.AppenderV2(context.Background())
	for i := range int64(7 * 60) {
		if _, err := app.Append(0, l, 0, 1000*block+i*60_000, float64(i), nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := r.db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := InspectRaw(dir)
	if err != nil || len(info.Blocks) == 0 || info.HeadBytes == 0 || info.Blocks[0].Buckets == 0 {
		t.Fatalf("got %+v, %v", info, err)
	}
	seen := 0
	if err := VerifyRaw(t.Context(), dir, func() { seen++ }); err != nil || seen != len(info.Blocks) {
		t.Errorf("%d of %d blocks read: %v", seen, len(info.Blocks), err)
	}
	chunk := filepath.Join(dir, info.Blocks[0].ULID, "chunks", "000001")
	b, err := os.ReadFile(chunk)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 0xff
	if err := os.WriteFile(chunk, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := VerifyRaw(t.Context(), dir, func() {}); err == nil {
		t.Error("a damaged chunk reads without an error")
	}
}

// After a failed write to a log nothing is taken, so that nothing is acknowledged
// that a start would cut off.
func TestTorn(t *testing.T) {
	r := openRawTest(t, t.TempDir())
	r.OnLate(res, func() int64 { return 0 }, func([]Late) error { return nil })
	if n := len(r.torn.failures); n != 2 {
		t.Fatalf("%d counters of failed writes found, want those of two logs", n)
	}
	l := labels.FromStrings("__name__", "m")
	app := r.AppenderV2(t.Context())
	if _, err := app.Append(0, l, 0, 1000*block, 1, nil, nil, storage.AOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := app.Commit(); err != nil || r.Cause() != nil {
		t.Fatalf("commit: %v, %v", err, r.Cause())
	}
	why := errors.New("disk full")
	r.Refuse(why)
	<-r.Torn()
	app = r.AppenderV2(t.Context())
	if _, err := app.Append(0, l, 0, 1000*block+1, 1, nil, nil, storage.AOptions{}); !errors.Is(err, ErrTorn) || !errors.Is(err, why) {
		t.Errorf("append: %v", err)
	}
	if err := app.Commit(); !errors.Is(err, ErrTorn) {
		t.Errorf("commit: %v", err)
	}
}

// The oldest time is that of a sample, after a compaction too.
func TestRawMinTimeAfterCompaction(t *testing.T) {
	r := openRawTest(t, t.TempDir())
	l := labels.FromStrings("__name__", "m")
	first := 1000*block + 60_000
	app := r.AppenderV2(context.Background())
	for i := range int64(7 * 60) {
		if _, err := app.Append(0, l, 0, first+i*60_000, float64(i), nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := r.db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.db.Blocks()) == 0 {
		t.Fatal("nothing was compacted")
	}
	if got := r.MinTime(); got != first {
		t.Errorf("oldest time %d min after the first sample", (got-first)/60_000)
	}
}
