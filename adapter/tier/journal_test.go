package tier

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/adapter/store"
)

func open(t *testing.T, path string) (*journal, int64) {
	t.Helper()
	j, dropped, err := openJournal(path, store.OS{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.close() })
	return j, dropped
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Random marks, takes and clears, with reopenings: a series of a window is dirty until
// it was taken, cleared, and not marked in between; a window is dirty with all of its
// series once that was marked, until it is cleared.
func TestJournalModel(t *testing.T) {
	r := seed(t)
	path := filepath.Join(t.TempDir(), "j")
	j, _ := open(t, path)
	type key struct {
		w int64
		h uint64 // 0: all
	}
	dirty, since := map[key]bool{}, map[key]bool{}
	var taken []late
	expect := func() map[int64]seriesSet {
		want := map[int64]seriesSet{}
		for k := range dirty {
			if want[k.w] == nil {
				want[k.w] = seriesSet{}
			}
			want[k.w][k.h] = struct{}{}
		}
		for w, s := range want {
			if _, all := s[0]; all {
				want[w] = nil
			}
		}
		return want
	}
	for range 20_000 {
		switch r.IntN(12) {
		case 0:
			taken, since = j.take(), map[key]bool{}
			got := map[int64]seriesSet{}
			for _, l := range taken {
				got[l.window] = l.series
			}
			if d := cmp.Diff(expect(), got); d != "" {
				t.Fatal(d)
			}
		case 1:
			var ws []int64
			for _, l := range taken {
				ws = append(ws, l.window)
				all := dirty[key{l.window, 0}]
				for k := range dirty {
					again := since[k] || all && since[key{l.window, 0}]
					if k.w == l.window && !again {
						delete(dirty, k)
					}
				}
			}
			must(t, j.done(ws))
			taken = nil
		case 2:
			if r.IntN(50) == 0 {
				must(t, j.close())
				var dropped int64
				if j, dropped = open(t, path); dropped != 0 {
					t.Fatalf("%d bytes dropped", dropped)
				}
				taken = nil
			}
		default:
			l := store.Late{Window: r.Int64N(300) * 1000, Series: []uint64{1 + r.Uint64N(5), 1 + r.Uint64N(5)}}
			if l.All = r.IntN(10) == 0; l.All {
				l.Series = nil
				for k := range dirty { // as before a series is not told from all
					if k.w == l.Window {
						delete(dirty, k)
					}
				}
				dirty[key{l.Window, 0}], since[key{l.Window, 0}] = true, true
			}
			must(t, j.mark([]store.Late{l}))
			for _, h := range l.Series {
				if dirty[key{l.Window, 0}] {
					h = 0
				}
				dirty[key{l.Window, h}], since[key{l.Window, h}] = true, true
			}
		}
		if want := expect(); j.len() != len(want) {
			t.Fatalf("%d windows, want %d", j.len(), len(want))
		}
	}
	must(t, j.close())
	j, _ = open(t, path)
	got := map[int64]seriesSet{}
	for _, l := range j.take() {
		got[l.window] = l.series
	}
	if d := cmp.Diff(expect(), got); d != "" {
		t.Error(d)
	}
}

// A window with too many series, and any more windows once there are too many in all,
// are folded again with all of theirs.
func TestJournalIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, _ := open(t, path)
	many := store.Late{Window: 1000}
	for h := range uint64(maxWindowSeries + 1) {
		many.Series = append(many.Series, h)
	}
	must(t, j.mark([]store.Late{many}))
	for w := range int64(maxLateSeries/1000 + 2) {
		must(t, j.mark([]store.Late{{Window: 2000 + w, Series: many.Series[:1000]}}))
	}
	check := func() {
		t.Helper()
		taken := j.take()
		if taken[0].series != nil || taken[len(taken)-1].series != nil {
			t.Error("series of a window are remembered beyond the bound")
		}
		if len(taken[1].series) != 1000 || j.dirty.series > maxLateSeries {
			t.Errorf("%d series of a window, %d of all", len(taken[1].series), j.dirty.series)
		}
	}
	check()
	must(t, j.close())
	j, _ = open(t, path)
	check()
	for _, l := range j.take() {
		must(t, j.done([]int64{l.window}))
	}
	if j.len() != 0 || j.dirty.series != 0 {
		t.Errorf("%d windows and %d series are left", j.len(), j.dirty.series)
	}
}

// A write that fails is made up for by the next.
func TestJournalWriteFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	fs := newCrashFS(t, rand.New(rand.NewPCG(1, 1)), 0)
	j, _, err := openJournal(path, fs)
	must(t, err)
	fs.stopAt = fs.n
	l := []store.Late{{Window: 1000, Series: []uint64{7}}}
	if err := j.mark(l); err == nil {
		t.Fatal("no error")
	}
	fs.stopAt = 0
	must(t, j.mark(l))
	must(t, j.close())
	again, _ := open(t, path)
	if d := cmp.Diff([]late{{1000, seriesSet{7: {}}}}, again.take(), cmp.AllowUnexported(late{})); d != "" {
		t.Error(d)
	}
}

func TestJournalTornTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, _ := open(t, path)
	must(t, j.mark([]store.Late{{Window: 1000, Series: []uint64{1}}, {Window: 2000, All: true}, {Window: 3000, Series: []uint64{3}}}))
	must(t, j.close())
	full, err := os.ReadFile(path)
	must(t, err)
	for n := range full {
		must(t, os.WriteFile(path, full[:n], 0o666))
		j, dropped := open(t, path)
		records := max(0, n-len(journalMagic)) / recordSize
		if j.len() != records {
			t.Errorf("cut at %d: %d windows, want %d", n, j.len(), records)
		}
		if torn := n > 0 && (n < len(journalMagic) || (n-len(journalMagic))%recordSize > 0); torn != (dropped > 0) {
			t.Errorf("cut at %d: %d bytes dropped", n, dropped)
		}
		must(t, j.mark(whole([]int64{9000})))
		must(t, j.close())
		again, _ := open(t, path)
		if again.len() != records+1 {
			t.Errorf("cut at %d and marked: %d windows, want %d", n, again.len(), records+1)
		}
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(journalMagic))
	f.Add(appendRecord([]byte(journalMagic), 300_000, 1, kindMark))
	f.Add(appendRecord([]byte(journalMagic), 300_000, 0, kindMarkAll))
	f.Add(appendRecord(appendRecord([]byte(journalMagic), -1, 5, kindMark), -1, 0, kindClear))
	f.Fuzz(func(t *testing.T, b []byte) {
		j := journal{dirty: lateWindows{byStart: map[int64]*lateWindow{}}}
		if good := j.replay(b); good > len(b) || j.dirty.records() > 2*good/recordSize {
			t.Errorf("%d windows with %d series from %d good of %d bytes", j.len(), j.dirty.series, good, len(b))
		}
	})
}

func BenchmarkMark(b *testing.B) {
	j, _, err := openJournal(filepath.Join(b.TempDir(), "j"), store.OS{})
	if err != nil {
		b.Fatal(err)
	}
	defer j.close()
	r := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		if err := j.mark([]store.Late{{Window: r.Int64N(1000), Series: []uint64{1}}}); err != nil {
			b.Fatal(err)
		}
	}
}
