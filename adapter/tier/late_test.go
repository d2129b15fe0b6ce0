package tier

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/ticktier/ticktier/adapter/store"
)

func counted(t testing.TB, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// Late samples have their own series folded again and no other, in memory and in a
// block, over a start too; and the hours are right.
func TestLateFoldsOnlyItsSeries(t *testing.T) {
	b := newBench(t)
	m := model{}
	var ls []labels.Labels
	for i := range 20 {
		ls = append(ls, labels.FromStrings("__name__", "m", "i", strconv.Itoa(i)))
	}
	for at := epoch; at < epoch+27*hour; at += 5 * minute {
		for i := range ls {
			s := sample{at, float64((at/minute)*int64(i+1)%971) + 1}
			b.push(ls[i], s)
			m.add(ls[i], s)
		}
	}
	b.now = epoch + 27*hour + minute
	b.cycle()
	b.check(m, "in order")
	for n, at := range []int64{epoch + 26*hour, epoch + 5*hour} {
		s := sample{at + 17, 5}
		l := ls[3+n]
		b.push(l, s)
		m.add(l, s)
		if n == 1 {
			b.reopen()
		}
		before := counted(t, b.d.m.samples)
		late, err := b.d.foldLateNow()
		if err != nil {
			t.Fatal(err)
		}
		if got := counted(t, b.d.m.samples) - before; got != 2 || late != 1 {
			t.Errorf("%v samples of %d windows folded again, want 2 of 1", got, late)
		}
		b.cycle()
		b.check(m, fmt.Sprint("late ", n))
	}
}

// foldLateNow folds again what is late and nothing else. The windows stay marked.
func (d *Driver) foldLateNow() (windows int, err error) {
	d.Fine.Start(d.Raw.MinTime())
	done, _, err := d.foldLate(context.Background(), d.journal.take())
	return len(done), err
}

// A sample of a transaction that began before its window was folded may be late by the
// time of the commit: the window is folded again, whosever it is.
func TestLateByTheCommit(t *testing.T) {
	b := newBench(t)
	m := model{}
	l, other := labels.FromStrings("__name__", "m"), labels.FromStrings("__name__", "n")
	for _, s := range []sample{{epoch, 1}, {epoch + 10*minute, 2}} {
		b.push(other, s)
		m.add(other, s)
	}
	app := b.raw.AppenderV2(t.Context())
	s := sample{epoch + minute, 7}
	if _, err := app.Append(0, l, 0, s.t, s.v, nil, nil, storage.AOptions{}); err != nil {
		t.Fatal(err)
	}
	m.add(l, s)
	b.now = epoch + 10*minute + 31_000
	b.cycle()
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	if b.d.journal.len() != 1 {
		t.Errorf("%d windows are late, want 1", b.d.journal.len())
	}
	b.cycle()
	b.check(m, "after the commit")
}

// A server's clock that jumps back closes no window again and none too early, and one
// that jumps ahead and back loses nothing.
func TestClockJumps(t *testing.T) {
	b := newBench(t)
	m := model{}
	l := labels.FromStrings("__name__", "m")
	push := func(at int64) {
		s := sample{at, float64(at / 1000 % 97)}
		b.push(l, s)
		m.add(l, s)
	}
	for i, jump := range []int64{0, -3 * hour, 0, 40 * day, -40 * day, 0, 5 * minute, -five, 0} {
		for at := epoch + int64(i)*3*five; at < epoch+int64(i+1)*3*five; at += 10_000 {
			push(at)
		}
		newest := epoch + int64(i+1)*3*five - 10_000
		b.now = newest + 10_000 + 31_000 + jump
		was := b.fine.Watermark()
		b.cycle()
		if w := b.fine.Watermark(); w < was || w > newest-newest%five+five {
			t.Errorf("jump by %d s: watermark from %d to %d s, the newest sample is at %d s", jump/1000, (was-epoch)/1000, (w-epoch)/1000, (newest-epoch)/1000)
		}
		if jump <= 0 && b.fine.Watermark() > max(was, b.now-30_000) {
			t.Errorf("jump by %d s: a window was closed that the clock had open", jump/1000)
		}
		b.check(m, fmt.Sprint("jump ", i))
		// What comes for the window that a clock closed too early is late, and folded.
		push(newest + 5_000)
	}
	b.cycle()
	b.check(m, "at the end")
}

// Samples at both edges of windows and a millisecond beside them, sent twice.
func TestWindowEdges(t *testing.T) {
	b := newBench(t)
	m := model{}
	l := labels.FromStrings("__name__", "m")
	for edge := epoch; edge <= epoch+3*hour; edge += five {
		for k, off := range []int64{-1, 0, 1} {
			if edge+off < epoch {
				continue
			}
			s := sample{edge + off, float64(edge/minute%13 + int64(k))}
			b.push(l, s)
			b.push(l, s)
			m.add(l, s)
		}
	}
	b.now = epoch + 4*hour
	b.cycle()
	b.check(m, "pushed")
	// Again after they were folded, and in a block.
	for _, s := range m[l.String()] {
		app := b.raw.AppenderV2(t.Context())
		_, err := app.Append(0, l, 0, s.t, s.v, nil, nil, storage.AOptions{})
		if err != nil {
			t.Log(err)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	b.cycle()
	b.check(m, "pushed again")
	if n := read(t, b.fine, store.Count)[l.String()][epoch+five]; n != 3 {
		t.Errorf("%v samples in a window with its edges, want 3", n)
	}
}

// The metrics say how far behind each tier is and what its buckets take.
func TestTierMetrics(t *testing.T) {
	b := makeBench(t)
	reg := prometheus.NewRegistry()
	b.config.Registerer, b.fineOptions.Registerer, b.options.Registerer = reg, reg, reg
	b.open()
	t.Cleanup(b.close)
	l := labels.FromStrings("__name__", "m")
	for i := range int64(3 * 60) {
		b.push(l, sample{epoch + i*minute, float64(i)})
	}
	b.now = epoch + 3*hour + 47_000
	b.cycle()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "tier" {
					got[f.GetName()+" "+l.GetValue()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
	}
	size := float64(b.fine.Size())
	for name, want := range map[string]float64{
		"fold_lag_seconds 5m": 47, "fold_lag_seconds 1h": 47, "store_block_buckets 5m": 24, "store_bytes_per_bucket 5m": size / 24,
		"store_written_bytes_total 5m": size, "store_memory_buckets 5m": 12, "store_memory_buckets 1h": 3,
	} {
		if g := got["ticktier_adapter_"+name]; g != want {
			t.Errorf("%s is %v, want %v", name, g, want)
		}
	}
}

// BenchmarkRefold folds two windows again, for late samples of one of many series or of
// all, in memory and in a block.
func BenchmarkRefold(b *testing.B) {
	raw, fine, d, sets := benchDriver(b, 2000)
	defer closeAll(b, raw, fine, d)
	fine.Start(epoch)
	for _, where := range []string{"memory", "block"} {
		if where == "block" {
			fine.Advance(epoch + 2*hour)
			if err := cutAll(fine); err != nil {
				b.Fatal(err)
			}
		}
		for _, c := range []struct {
			name string
			set  seriesSet
		}{{"all", nil}, {"one", seriesSet{store.LateHash(sets[7]): {}}}} {
			b.Run(where+"/"+c.name, func(b *testing.B) {
				for b.Loop() {
					if err := d.foldSpan(context.Background(), redo{span{epoch, epoch + 2*five}, c.set}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
