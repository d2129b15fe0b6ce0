package access

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// lookEvery is how often files are looked at for changes.
const lookEvery = time.Second

// watched is a file that is read again when it changes. What it said last stays where
// it is wrong or gone. Safe for concurrent use.
type watched[T any] struct {
	path   string
	name   string // in the log and the metrics
	parse  func([]byte) (*T, error)
	logger *slog.Logger
	good   prometheus.Gauge

	now atomic.Pointer[T]

	mu   sync.Mutex
	seen os.FileInfo // guarded by mu: nil before the first read
	fail string      // guarded by mu: what is wrong with it, said once
}

func watch[T any](path, name string, parse func([]byte) (*T, error), logger *slog.Logger, good prometheus.Gauge) (*watched[T], error) {
	w := &watched[T]{path: path, name: name, parse: parse, logger: logger, good: good}
	if err := w.read(); err != nil {
		return nil, err
	}
	w.good.Set(1)
	return w, nil
}

// read reads the file as it is. Callers hold mu or are alone.
func (w *watched[T]) read() error {
	f, err := os.Open(w.path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return err
	}
	w.seen = info
	v, err := w.parse(b)
	if err != nil {
		return fmt.Errorf("%s: %w", w.path, err)
	}
	w.now.Store(v)
	return nil
}

// reload reads the file again, where it must or where it looks changed.
func (w *watched[T]) reload(must bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !must {
		info, err := os.Stat(w.path)
		if err == nil && w.seen != nil && os.SameFile(info, w.seen) && info.ModTime().Equal(w.seen.ModTime()) && info.Size() == w.seen.Size() {
			return nil
		}
	}
	err := w.read()
	if err == nil {
		w.good.Set(1)
		w.fail = ""
		w.logger.Info("file read again", "file", w.name, "path", w.path)
		return nil
	}
	w.good.Set(0)
	if text := err.Error(); text != w.fail || must {
		w.fail = text
		w.logger.Error("file cannot be taken; what it said before goes on to hold", "file", w.name, "err", err)
	}
	return err
}

// look looks for changes until ctx is done.
func look(ctx context.Context, reload func(must bool) error) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = reload(false) // it is logged
		}
	}
}
