package seed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/ticktier/ticktier/adapter/fold"
	"github.com/ticktier/ticktier/adapter/store"
)

// Config says what to make up.
type Config struct {
	Dir           string // data directory
	Devices, Days int
	RawHours      int // how much of the end is kept raw too
	FineDays      int // and in five-minute buckets
	Seed          uint64
	End           time.Time
	Fine, Coarse  store.BucketsOptions // the tiers' shapes
	Logger        *slog.Logger
	Progress      func(done float64) // may be nil; from 0 to 1

	// Like is a scrape in the text format, every series of which gets a history too,
	// as those of LikeInstance. May be nil.
	Like         []byte
	LikeInstance string
}

// Result says what was made.
type Result struct {
	Series             int
	RawSamples         int64
	FineBuckets, Hours int64
}

// ErrNotEmpty says that the directory holds samples already.
var ErrNotEmpty = errors.New("the data directory holds samples already")

// Run fills the directory.
func Run(ctx context.Context, c Config) (res Result, err error) {
	for _, sub := range []string{"raw", "5m", "1h"} {
		if e, _ := os.ReadDir(filepath.Join(c.Dir, sub)); len(e) > 0 {
			return res, fmt.Errorf("%w: %s", ErrNotEmpty, filepath.Join(c.Dir, sub))
		}
	}
	s, err := open(c)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.fill(ctx); err != nil {
		return s.res, err
	}
	return s.res, nil
}

// seeder is a run under way.
type seeder struct {
	Config
	raw          *store.Raw
	fine, coarse *store.Buckets
	all          []*series // by labels
	from, end    int64
	counters     map[string]bool // what a scrape has, by metric
	folder, hour *fold.Folder
	res          Result
}

func open(c Config) (s *seeder, err error) {
	s = &seeder{Config: c, folder: fold.NewFolder(c.Fine.Resolution), hour: fold.NewFolder(c.Coarse.Resolution)}
	s.end = fold.Window(c.End.UnixMilli(), c.Fine.BlockRange)
	s.from = fold.Window(s.end-int64(c.Days)*24*time.Hour.Milliseconds(), c.Coarse.BlockRange)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for d := range c.Devices {
		for n := range shapes {
			s.all = append(s.all, newSeries(c.Seed, d, n, s.from))
		}
	}
	if c.Like != nil {
		raw := s.end - int64(c.RawHours)*time.Hour.Milliseconds()
		fine := fold.Window(s.end-int64(c.FineDays)*24*time.Hour.Milliseconds(), c.Fine.BlockRange)
		if err := s.like(c.Like, min(fine, raw), raw); err != nil {
			return s, err
		}
	}
	c.Fine.Lacks, c.Coarse.Lacks = s.lacks, s.lacks
	// The TSDB warns of compactions that closing it cuts short; what matters comes
	// back as an error.
	if s.raw, err = store.OpenRaw(filepath.Join(c.Dir, "raw"), store.RawOptions{OutOfOrderWindow: time.Hour, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return s, err
	}
	if s.fine, err = store.OpenBuckets(filepath.Join(c.Dir, "5m"), c.Fine); err != nil {
		return s, err
	}
	if s.coarse, err = store.OpenBuckets(filepath.Join(c.Dir, "1h"), c.Coarse); err != nil {
		return s, err
	}
	slices.SortFunc(s.all, func(a, b *series) int { return labels.Compare(a.lset, b.lset) })
	s.res.Series = len(s.all)
	return s, nil
}

func (s *seeder) close() error {
	var errs []error
	if s.coarse != nil {
		errs = append(errs, s.coarse.Close())
	}
	if s.fine != nil {
		errs = append(errs, s.fine.Close())
	}
	if s.raw != nil {
		errs = append(errs, s.raw.Close())
	}
	return errors.Join(errs...)
}

// fill goes through the time in steps of a five-minute block.
func (s *seeder) fill(ctx context.Context) error {
	rawFrom := s.end - int64(s.RawHours)*time.Hour.Milliseconds()
	fineFrom := fold.Window(s.end-int64(s.FineDays)*24*time.Hour.Milliseconds(), s.Fine.BlockRange)
	s.fine.Start(fineFrom)
	s.coarse.Start(s.from)
	for at := s.from; at < s.end; at += s.Fine.BlockRange {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.step(at, at+s.Fine.BlockRange, at >= rawFrom, at >= fineFrom); err != nil {
			return err
		}
		if s.Progress != nil {
			s.Progress(float64(at+s.Fine.BlockRange-s.from) / float64(s.end-s.from))
		}
	}
	return nil
}

// step makes the samples of [from, to), folds them, and cuts and merges blocks.
func (s *seeder) step(from, to int64, raw, fine bool) error {
	app := s.raw.AppenderV2(context.Background())
	var appendErr error
	for _, sr := range s.all {
		s.folder.Reset()
		var ref storage.SeriesRef
		sr.until(to, func(t int64, v float64) {
			s.folder.Add(t, v)
			if raw && appendErr == nil {
				ref, appendErr = app.Append(ref, sr.lset, 0, t, v, nil, nil, storage.AOptions{})
				s.res.RawSamples++
			}
		})
		bs := s.folder.Buckets()
		s.hour.Reset()
		for _, b := range bs {
			s.hour.AddBucket(b)
		}
		if fine {
			s.fine.Put(sr.lset, from, to, bs)
			s.res.FineBuckets += int64(len(bs))
		}
		hours := s.hour.Buckets()
		s.coarse.Put(sr.lset, from, to, hours)
		s.res.Hours += int64(len(hours))
	}
	if appendErr != nil {
		return errors.Join(fmt.Errorf("append raw samples: %w", appendErr), app.Rollback())
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("append raw samples: %w", err)
	}
	if fine {
		s.fine.Advance(to)
	}
	s.coarse.Advance(to)
	for _, b := range []*store.Buckets{s.fine, s.coarse} {
		if b.Durable()+b.BlockRange() > b.Watermark() {
			continue
		}
		if err := b.Cut(b.Watermark()); err != nil {
			return err
		}
		if _, err := b.Merge(b.Watermark()); err != nil {
			return err
		}
	}
	return nil
}
