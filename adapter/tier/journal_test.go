package tier

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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

// Random marks, takes and clears, with reopenings: a window is dirty until it was
// taken, cleared, and not marked in between.
func TestJournalModel(t *testing.T) {
	r := seed(t)
	path := filepath.Join(t.TempDir(), "j")
	j, _ := open(t, path)
	dirty := map[int64]bool{}
	var taken []int64
	since := map[int64]bool{}
	for range 20_000 {
		switch r.IntN(12) {
		case 0:
			taken, since = j.take(), map[int64]bool{}
		case 1:
			must(t, j.done(taken))
			for _, w := range taken {
				if !since[w] {
					delete(dirty, w)
				}
			}
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
			ws := []int64{r.Int64N(300) * 1000, r.Int64N(300) * 1000}
			must(t, j.mark(ws))
			for _, w := range ws {
				dirty[w], since[w] = true, true
			}
		}
		if j.len() != len(dirty) {
			t.Fatalf("%d windows, want %d", j.len(), len(dirty))
		}
	}
	must(t, j.close())
	j, _ = open(t, path)
	var want []int64
	for w := range dirty {
		want = append(want, w)
	}
	slices.Sort(want)
	if d := cmp.Diff(want, j.take(), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

func TestJournalTornTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, _ := open(t, path)
	must(t, j.mark([]int64{1000, 2000, 3000}))
	must(t, j.close())
	whole, err := os.ReadFile(path)
	must(t, err)
	for n := range whole {
		must(t, os.WriteFile(path, whole[:n], 0o666))
		j, dropped := open(t, path)
		records := max(0, n-len(journalMagic)) / recordSize
		if j.len() != records {
			t.Errorf("cut at %d: %d windows, want %d", n, j.len(), records)
		}
		if torn := n > 0 && (n < len(journalMagic) || (n-len(journalMagic))%recordSize > 0); torn != (dropped > 0) {
			t.Errorf("cut at %d: %d bytes dropped", n, dropped)
		}
		must(t, j.mark([]int64{9000}))
		must(t, j.close())
		again, _ := open(t, path)
		if again.len() != records+1 {
			t.Errorf("cut at %d and marked: %d windows, want %d", n, again.len(), records+1)
		}
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(journalMagic))
	f.Add(appendRecord([]byte(journalMagic), 300_000, kindMark))
	f.Add(appendRecord(appendRecord([]byte(journalMagic), -1, kindMark), -1, kindClear))
	f.Fuzz(func(t *testing.T, b []byte) {
		j := journal{dirty: map[int64]bool{}}
		if good := j.replay(b); good > len(b) || len(j.dirty)*recordSize > good {
			t.Errorf("%d windows from %d good of %d bytes", len(j.dirty), good, len(b))
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
		if err := j.mark([]int64{r.Int64N(1000)}); err != nil {
			b.Fatal(err)
		}
	}
}
