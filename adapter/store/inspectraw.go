package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// RawInfo is what a directory of raw samples holds. An adapter may be running on
// it: blocks that it removes meanwhile are left out.
type RawInfo struct {
	Blocks []BlockInfo `json:"blocks"`
	// HeadBytes is the size of the write-ahead log and of the chunks that are in no
	// block yet.
	HeadBytes int64 `json:"headBytes"`
}

// InspectRaw looks at a directory of raw samples without changing it.
func InspectRaw(dir string) (info RawInfo, err error) {
	err = eachRaw(dir, func(b *tsdb.Block) error {
		m := b.Meta()
		info.Blocks = append(info.Blocks, BlockInfo{m.ULID.String(), m.MinTime, m.MaxTime, m.Stats.NumSeries, m.Stats.NumSamples, b.Size()})
		return nil
	})
	if err != nil {
		return info, err
	}
	for _, sub := range []string{"wal", "wbl", "chunks_head"} {
		n, err := treeSize(filepath.Join(dir, sub))
		if err != nil {
			return info, err
		}
		info.HeadBytes += n
	}
	return info, nil
}

// VerifyRaw reads every raw block, checksums included, and returns an error per
// block that cannot be read; progress is told of each block.
func VerifyRaw(ctx context.Context, dir string, progress func()) error {
	var errs []error
	err := eachRaw(dir, func(b *tsdb.Block) error {
		if err := verifyRawBlock(ctx, b); err != nil {
			errs = append(errs, fmt.Errorf("tier raw, block %s: %w", b.Meta().ULID, err))
		}
		progress()
		return ctx.Err()
	})
	return errors.Join(append(errs, err)...)
}

// eachRaw opens the blocks of a directory one after the other.
func eachRaw(dir string, yield func(*tsdb.Block) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if _, err := ulid.ParseStrict(e.Name()); err != nil || !e.IsDir() {
			continue
		}
		b, err := tsdb.OpenBlock(slog.New(slog.DiscardHandler), filepath.Join(dir, e.Name()), nil, nil)
		switch {
		case errors.Is(err, fs.ErrNotExist) && gone(filepath.Join(dir, e.Name())):
			continue // compacted away since
		case err != nil:
			errs = append(errs, fmt.Errorf("tier raw, block %s: %w", e.Name(), err))
			continue
		}
		err = yield(b)
		if err = errors.Join(err, b.Close()); err != nil {
			return errors.Join(append(errs, err)...)
		}
	}
	return errors.Join(errs...)
}

func gone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// RawSizeBy adds up what series take in raw blocks, by the value of a label. What is in
// no block yet is left out.
func RawSizeBy(ctx context.Context, dir, label string) (map[string]Size, error) {
	out := map[string]Size{}
	err := eachRaw(dir, func(b *tsdb.Block) error { return sizeBy(ctx, b, label, out) })
	return out, err
}

func verifyRawBlock(ctx context.Context, b *tsdb.Block) error {
	var samples uint64
	err := eachSeries(ctx, b, func(_ labels.Labels, list []chunkenc.Chunk) error {
		for _, c := range list {
			samples += uint64(c.NumSamples())
		}
		return nil
	})
	if err == nil && samples != b.Meta().Stats.NumSamples {
		return fmt.Errorf("%d samples; its meta.json says %d", samples, b.Meta().Stats.NumSamples)
	}
	return err
}

// treeSize adds up the files below a directory, 0 where it is not there.
func treeSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	return n, err
}
