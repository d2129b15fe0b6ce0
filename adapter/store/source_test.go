package store

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// A directory with blocks and nothing else is a source, as promtool makes it; an empty
// one is not.
func TestSourceOfBlocksOnly(t *testing.T) {
	dir, tmp := t.TempDir(), t.TempDir()
	if _, err := OpenSource(dir, tmp); err == nil || !strings.Contains(err.Error(), "neither blocks nor") {
		t.Errorf("an empty directory: %v", err)
	}
	const hour = int64(time.Hour / time.Millisecond)
	w, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), dir, 2*hour)
	if err != nil {
		t.Fatal(err)
	}
	app := w.AppenderV2(t.Context())
	for _, at := range []int64{1, hour} {
		if _, err := app.Append(0, labels.FromStrings("__name__", "x"), 0, at, 1, nil, nil, storage.AOptions{}); err != nil {
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
	s, err := OpenSource(dir, tmp)
	if err != nil {
		t.Fatal(err)
	}
	if from, to := s.Times(); from != 1 || to != hour {
		t.Errorf("times %d and %d", from, to)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
