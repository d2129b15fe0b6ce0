package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// Source is samples to be read in the order of time: those of a Prometheus data
// directory, or any that are appended, in whatever order. It keeps what is not in a
// block of that directory in a directory of its own, which Close removes.
type Source struct {
	blocks []*tsdb.Block
	db     *tsdb.DB
	tmp    string
}

// NewSource makes an empty source that keeps its samples in a new directory below tmp.
func NewSource(tmp string) (*Source, error) { return openSource("", tmp) }

// OpenSource opens the blocks and the logs of a Prometheus data directory, in which it
// changes nothing. A Prometheus may be running on it. Blocks alone will do, as promtool
// makes them, and so will logs alone.
func OpenSource(dir, tmp string) (*Source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read a Prometheus data directory: %w", err)
	}
	for _, e := range entries {
		if _, err := ulid.ParseStrict(e.Name()); e.IsDir() && (err == nil || e.Name() == "wal") {
			return openSource(dir, tmp)
		}
	}
	return nil, fmt.Errorf("%s is no Prometheus data directory: it has neither blocks nor a folder wal", dir)
}

func openSource(dir, tmp string) (s *Source, err error) {
	s = &Source{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.tmp, err = os.MkdirTemp(tmp, "ticktier-backfill-"); err != nil {
		return s, fmt.Errorf("make a directory for samples: %w", err)
	}
	if dir != "" {
		if err := s.openBlocks(dir); err != nil {
			return s, err
		}
		if err := copyLogs(dir, s.tmp); err != nil {
			return s, fmt.Errorf("read the logs of %s: %w", dir, err)
		}
	}
	o := tsdb.DefaultOptions()
	o.RetentionDuration, o.StripeSize, o.NoLockfile = 0, stripes, true
	o.OutOfOrderTimeWindow = (100 * 365 * 24 * time.Hour).Milliseconds()
	if s.db, err = tsdb.Open(s.tmp, slog.New(slog.DiscardHandler), prometheus.NewRegistry(), o, nil); err != nil {
		return s, fmt.Errorf("read samples: %w", err)
	}
	return s, nil
}

func (s *Source) openBlocks(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := ulid.ParseStrict(e.Name()); err != nil || !e.IsDir() {
			continue
		}
		b, err := tsdb.OpenBlock(slog.New(slog.DiscardHandler), filepath.Join(dir, e.Name()), nil, nil)
		if errors.Is(err, fs.ErrNotExist) && gone(filepath.Join(dir, e.Name())) {
			continue // compacted away since
		}
		if err != nil {
			return fmt.Errorf("open block %s: %w", e.Name(), err)
		}
		s.blocks = append(s.blocks, b)
	}
	return nil
}

// AppenderV2 implements storage.AppendableV2.
func (s *Source) AppenderV2(ctx context.Context) storage.AppenderV2 { return s.db.AppenderV2(ctx) }

// Querier implements storage.Queryable.
func (s *Source) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := s.db.Querier(mint, maxt)
	if err != nil {
		return nil, err
	}
	all := []storage.Querier{q}
	for _, b := range s.blocks {
		if !b.OverlapsClosedInterval(mint, maxt) {
			continue
		}
		q, err := tsdb.NewBlockQuerier(b, mint, maxt)
		if err != nil {
			for _, q := range all {
				err = errors.Join(err, q.Close())
			}
			return nil, err
		}
		all = append(all, q)
	}
	return storage.NewMergeQuerier(all, nil, storage.ChainedSeriesMerge), nil
}

// Times are those of the oldest and the newest sample, or a little around them; from is
// after to where there is none.
func (s *Source) Times() (from, to int64) {
	h := s.db.Head()
	from, to = min(h.MinTime(), h.MinOOOTime()), max(h.MaxTime(), h.MaxOOOTime())
	if h.NumSeries() == 0 {
		from, to = math.MaxInt64, math.MinInt64
	}
	for _, b := range append(s.db.Blocks(), s.blocks...) {
		from, to = min(from, b.MinTime()), max(to, b.MaxTime()-1)
	}
	return from, to
}

// Close closes it and removes what it kept.
func (s *Source) Close() error {
	var errs []error
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	for _, b := range s.blocks {
		errs = append(errs, b.Close())
	}
	if s.tmp != "" {
		errs = append(errs, os.RemoveAll(s.tmp))
	}
	return errors.Join(errs...)
}
