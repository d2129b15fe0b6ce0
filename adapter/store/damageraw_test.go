package store

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// A chunk that rots while its block is open is told with the block, once in the log and
// in the counter.
func TestRottenRawBlockIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "raw")
	const hour = int64(time.Hour / time.Millisecond)
	for at := range int64(3) { // blocks of two hours, alike but for their times
		w, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), dir, 2*hour)
		if err != nil {
			t.Fatal(err)
		}
		app := w.AppenderV2(t.Context())
		for i := range int64(100) {
			if _, err := app.Append(0, labels.FromStrings("__name__", "x"), 0, at*2*hour+i*1000, float64(i*i), nil, nil, storage.AOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var log strings.Builder
	reg := prometheus.NewRegistry()
	r, err := OpenRaw(dir, RawOptions{Logger: slog.New(slog.NewTextHandler(&log, nil)), Registerer: reg})
	if err != nil {
		t.Fatal(err)
	}
	b := r.db.Blocks()[1]
	spoil(t, filepath.Join(b.Dir(), "chunks", "000001"))
	q, err := r.Querier(0, 6*hour)
	if err != nil {
		t.Fatal(err)
	}
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", "x"))
	for set.Next() {
		it := set.At().Iterator(nil)
		for it.Next() != chunkenc.ValNone {
		}
		err = it.Err()
	}
	if err == nil {
		t.Fatal("the spoilt chunk is read")
	}
	for range 2 {
		named := r.Damaged(t.Context(), err)
		if named == nil || !strings.Contains(named.Error(), b.Meta().ULID.String()+" with the samples from 1970-01-01T02:00:00Z") || !strings.Contains(named.Error(), b.Dir()+" to the quarantine folder") {
			t.Errorf("%v is told as: %v", err, named)
		}
	}
	if named := r.Damaged(t.Context(), errors.New("cannot populate chunk 8 from block x: another reason")); named != nil {
		t.Errorf("another error is told as %v", named)
	}
	if n := strings.Count(log.String(), "is damaged"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &log)
	}
	hole := []Range{{2 * hour, b.MaxTime()}}
	if diff := cmp.Diff(hole, r.Holes()); diff != "" {
		t.Errorf("holes (-want +got):\n%s", diff)
	}
	if v := testutil.ToFloat64(r.rotten.damaged); v != 1 {
		t.Errorf("counted %v", v)
	}

	// Moved away, it leaves a hole that is known after a start.
	if err := errors.Join(q.Close(), r.Close(), os.Mkdir(quarantineOf(dir), 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(b.Dir(), filepath.Join(quarantineOf(dir), filepath.Base(b.Dir()))); err != nil {
		t.Fatal(err)
	}
	if r, err = OpenRaw(dir, RawOptions{Logger: quiet()}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hole, r.Holes()); diff != "" {
		t.Errorf("holes after a start (-want +got):\n%s", diff)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// spoil changes a byte in the middle of a file in place.
func spoil(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	at := len(all) / 2
	if _, err := f.WriteAt([]byte{all[at] ^ 0x5a}, int64(at)); err != nil {
		t.Fatal(err)
	}
}
