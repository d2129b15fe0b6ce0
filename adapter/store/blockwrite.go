package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/ticktier/ticktier/adapter/fold"
)

// SeriesBuckets is a series with some of its buckets, in time order.
type SeriesBuckets struct {
	Labels  labels.Labels
	Buckets []fold.Bucket
}

// seriesFeed hands series in the order of their labels to yield, which may keep
// neither labels nor buckets. It returns the first error, yield's included.
type seriesFeed func(yield func(labels.Labels, []fold.Bucket) error) error

// tmpSuffix marks a block that is being written, goneSuffix one that is being removed;
// what a crash leaves behind of either is removed at start.
const (
	tmpSuffix  = ".tmp-for-creation"
	goneSuffix = ".tmp-for-deletion"
)

// segmentBytes is how large a file with chunks may get. The writer takes that much room
// on the disk before it writes the first chunk: the usual 512 MiB are more than a small
// disk has to spare.
const segmentBytes = 16 << 20

// blockMeta is meta.json: the TSDB's with Thanos' section.
type blockMeta struct {
	tsdb.BlockMeta
	Thanos thanosMeta `json:"thanos"`
}

type thanosMeta struct {
	Version    int               `json:"version"`
	Labels     map[string]string `json:"labels"`
	Downsample struct {
		Resolution int64 `json:"resolution"`
	} `json:"downsample"`
	Source string `json:"source"`
}

// blockWriter writes one block of buckets.
type blockWriter struct {
	fs         FS
	dir        string // of the tier
	mint, maxt int64  // [mint, maxt)
	res        int64
	parents    []tsdb.BlockDesc // the block that this one replaces
	logger     *slog.Logger
}

// write writes the block under a temporary name, checks that it reads back, and
// renames it. Where the feed has no bucket it returns an empty name and writes
// nothing.
func (w blockWriter) write(symbols []string, feed seriesFeed) (name string, err error) {
	id, err := ulid.New(ulid.Timestamp(time.Now()), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("name a block: %w", err)
	}
	final := filepath.Join(w.dir, id.String())
	tmp := final + tmpSuffix
	defer func() { err = errors.Join(err, w.fs.RemoveAll(tmp)) }()

	stats, err := w.writeData(tmp, symbols, feed)
	if err != nil || stats.NumSamples == 0 {
		return "", err
	}
	meta := blockMeta{BlockMeta: tsdb.BlockMeta{
		ULID: id, MinTime: w.mint, MaxTime: w.maxt, Stats: stats, Version: 1,
		Compaction: tsdb.BlockMetaCompaction{Level: 1, Sources: []ulid.ULID{id}, Parents: w.parents},
	}}
	meta.Thanos.Version, meta.Thanos.Source = 1, "ticktier"
	meta.Thanos.Labels = map[string]string{}
	meta.Thanos.Downsample.Resolution = w.res
	if err := writeMeta(w.fs, tmp, meta); err != nil {
		return "", fmt.Errorf("write meta.json of block %s: %w", id, err)
	}
	if _, err := tombstones.WriteFile(w.logger, tmp, tombstones.NewMemTombstones()); err != nil {
		return "", fmt.Errorf("write tombstones of block %s: %w", id, err)
	}
	if err := verifyBlock(w.logger, tmp, w.res, stats); err != nil {
		return "", fmt.Errorf("read back block %s: %w", id, err)
	}
	return id.String(), w.publish(tmp, final)
}

// publish gives a block its name, once all that is in it is durable, and makes that
// durable too: what it replaces, or was made from, may go after that.
func (w blockWriter) publish(tmp, final string) error {
	for _, dir := range []string{filepath.Join(tmp, "chunks"), tmp} {
		if err := w.fs.SyncDir(dir); err != nil {
			return fmt.Errorf("sync %s: %w", dir, err)
		}
	}
	if err := w.fs.Rename(tmp, final); err != nil {
		return fmt.Errorf("rename block %s: %w", final, err)
	}
	if err := w.fs.SyncDir(w.dir); err != nil {
		// Another one will be written in its place.
		return errors.Join(fmt.Errorf("sync %s: %w", w.dir, err), w.fs.Rename(final, tmp))
	}
	return nil
}

// writeData writes chunks and index.
func (w blockWriter) writeData(dir string, symbols []string, feed seriesFeed) (stats tsdb.BlockStats, err error) {
	if err := w.fs.MkdirAll(dir); err != nil {
		return stats, fmt.Errorf("make the block's directory: %w", err)
	}
	cw, err := chunks.NewWriter(filepath.Join(dir, "chunks"), chunks.WithSegmentSize(segmentBytes))
	if err != nil {
		return stats, fmt.Errorf("create chunk writer: %w", err)
	}
	defer func() { err = errors.Join(err, cw.Close()) }()
	iw, err := index.NewWriter(context.Background(), filepath.Join(dir, "index"))
	if err != nil {
		return stats, fmt.Errorf("create index writer: %w", err)
	}
	defer func() { err = errors.Join(err, iw.Close()) }()

	for _, s := range symbols {
		if err := iw.AddSymbol(s); err != nil {
			return stats, fmt.Errorf("write symbols: %w", err)
		}
	}
	var metas []chunks.Meta
	err = feed(func(lset labels.Labels, bs []fold.Bucket) error {
		if bs = fold.Settle(bs, w.res); len(bs) == 0 {
			return nil
		}
		metas = metas[:0]
		for len(bs) > 0 {
			c, n, err := encodeRun(bs, w.res)
			if err != nil {
				return fmt.Errorf("encode buckets: %w", err)
			}
			part := bs[:n]
			bs = bs[n:]
			metas = append(metas, chunks.Meta{
				Chunk: c, MinTime: part[0].Start + w.res - 1, MaxTime: part[len(part)-1].Start + w.res - 1,
			})
			stats.NumSamples += uint64(len(part))
		}
		if err := cw.WriteChunks(metas...); err != nil {
			return fmt.Errorf("write chunks: %w", err)
		}
		if err := iw.AddSeries(storage.SeriesRef(stats.NumSeries), lset, metas...); err != nil {
			return fmt.Errorf("write index of %s: %w", lset, err)
		}
		stats.NumSeries++
		stats.NumChunks += uint64(len(metas))
		return nil
	})
	return stats, err
}

func writeMeta(fs FS, dir string, meta blockMeta) (err error) {
	b, err := json.MarshalIndent(meta, "", "\t")
	if err != nil {
		return err
	}
	f, err := fs.Create(filepath.Join(dir, "meta.json"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	return f.Sync()
}

// verifyBlock opens a block and decodes all of it.
func verifyBlock(logger *slog.Logger, dir string, res int64, want tsdb.BlockStats) (err error) {
	b, err := tsdb.OpenBlock(logger, dir, aggrPool{}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	var got tsdb.BlockStats
	err = readBlock(b, res, colAll, func(_ labels.Labels, bs []fold.Bucket) error {
		got.NumSeries++
		got.NumSamples += uint64(len(bs))
		return nil
	})
	if err != nil {
		return err
	}
	if got.NumSeries != want.NumSeries || got.NumSamples != want.NumSamples {
		return fmt.Errorf("%d series with %d buckets read, %d with %d written",
			got.NumSeries, got.NumSamples, want.NumSeries, want.NumSamples)
	}
	return nil
}

// readBlock hands every series of a block with all its buckets, in the order of
// their labels, to yield; labels and buckets are valid during the call only.
func readBlock(b *tsdb.Block, res int64, want columns, yield func(labels.Labels, []fold.Bucket) error) (err error) {
	ir, err := b.Index()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ir.Close()) }()
	cr, err := b.Chunks()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cr.Close()) }()

	p := tsdb.AllSortedPostings(context.Background(), ir)
	var (
		lb    labels.ScratchBuilder
		metas []chunks.Meta
		bs    []fold.Bucket
		dec   decoder
	)
	for p.Next() {
		if err := ir.Series(p.At(), &lb, &metas); err != nil {
			return fmt.Errorf("read a series of block %s: %w", b.Meta().ULID, err)
		}
		bs = bs[:0]
		for _, m := range metas {
			if bs, err = decodeMeta(&dec, cr, m, bs, res, want); err != nil {
				return fmt.Errorf("read %s in block %s: %w", lb.Labels(), b.Meta().ULID, err)
			}
		}
		if err := yield(lb.Labels(), bs); err != nil {
			return err
		}
	}
	return p.Err()
}

// decodeMeta appends the buckets of one chunk.
func decodeMeta(d *decoder, cr tsdb.ChunkReader, m chunks.Meta, dst []fold.Bucket, res int64, want columns) ([]fold.Bucket, error) {
	c, _, err := cr.ChunkOrIterable(m)
	if err != nil {
		return dst, err
	}
	ac, ok := c.(*aggrChunk)
	if !ok {
		return dst, errAggr
	}
	return d.decode(ac, dst, res, want)
}
