package store

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// Whether there are native histograms is known after a restart too.
func TestNativeHistogramsAreKnown(t *testing.T) {
	dir := t.TempDir()
	open := func() *Raw {
		r, err := OpenRaw(dir, RawOptions{OutOfOrderWindow: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	put := func(r *Raw, at int64, h *histogram.Histogram) {
		t.Helper()
		app := r.AppenderV2(t.Context())
		if _, err := app.Append(0, labels.FromStrings("__name__", "x"), 0, at, 1, h, nil, storage.AppendV2Options{}); err != nil {
			t.Fatal(err)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	r := open()
	put(r, 1000, nil)
	if r.NativeHistograms() {
		t.Error("floats only, but there are said to be histograms")
	}
	put(r, 2000, &histogram.Histogram{Count: 1, ZeroCount: 1, ZeroThreshold: 0.1})
	if !r.NativeHistograms() {
		t.Error("a histogram was not noted")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open()
	defer r.Close() //nolint:errcheck // the test is over
	if !r.NativeHistograms() {
		t.Error("a histogram was forgotten")
	}
}
