package backfill

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage"
)

// maxFile bounds a file and what it decompresses to, in bytes.
const maxFile = 1 << 30

// appended is how many samples are appended in one transaction.
const appended = 10_000

// filler appends samples in transactions.
type filler struct {
	ctx   context.Context
	to    storage.AppendableV2
	app   storage.AppenderV2
	n     int
	total int64
}

func (f *filler) add(lset labels.Labels, t int64, v float64) error {
	if f.app == nil {
		f.app = f.to.AppenderV2(f.ctx)
	}
	if lset.Get(model.MetricNameLabel) == "" {
		return errors.New("a series has no name")
	}
	if _, err := f.app.Append(0, lset, 0, t, v, nil, nil, storage.AOptions{}); err != nil {
		if errors.Is(err, storage.ErrDuplicateSampleForTimestamp) {
			return fmt.Errorf("%s has two values at %d", lset, t)
		}
		return fmt.Errorf("%s at %d: %w", lset, t, err)
	}
	f.total++
	if f.n++; f.n < appended {
		return nil
	}
	return f.flush()
}

func (f *filler) flush() error {
	if f.app == nil {
		return nil
	}
	app := f.app
	f.app, f.n = nil, 0
	return app.Commit()
}

// ReadOpenMetrics appends the samples of an OpenMetrics exposition, all of which need a
// timestamp. It returns how many there were.
func ReadOpenMetrics(ctx context.Context, text []byte, to storage.AppendableV2) (int64, error) {
	f := &filler{ctx: ctx, to: to}
	err := readOpenMetrics(text, f)
	return f.total, errors.Join(err, f.flush())
}

func readOpenMetrics(text []byte, f *filler) error {
	p, err := textparse.New(text, "application/openmetrics-text", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	var lset labels.Labels
	for {
		e, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if e != textparse.EntrySeries {
			continue
		}
		_, t, v := p.Series()
		p.Labels(&lset)
		if t == nil {
			return fmt.Errorf("%s has no timestamp", lset)
		}
		if err := f.add(lset, *t, v); err != nil {
			return err
		}
	}
}

// ReadRemoteWrite appends the samples of a remote-write request, 1.0 or 2.0, in snappy's
// block or framed form. Native histograms are left out and counted.
func ReadRemoteWrite(ctx context.Context, body []byte, to storage.AppendableV2) (samples, histograms int64, err error) {
	f := &filler{ctx: ctx, to: to}
	raw, err := unsnappy(body)
	if err == nil {
		if isV2(raw) {
			histograms, err = readV2(raw, f)
		} else {
			histograms, err = readV1(raw, f)
		}
	}
	return f.total, histograms, errors.Join(err, f.flush())
}

// framed is how snappy's framed form begins.
var framed = []byte("\xff\x06\x00\x00sNaPpY")

func unsnappy(body []byte) ([]byte, error) {
	if bytes.HasPrefix(body, framed) {
		raw, err := io.ReadAll(io.LimitReader(snappy.NewReader(bytes.NewReader(body)), maxFile+1))
		if err == nil && len(raw) > maxFile {
			err = fmt.Errorf("more than %d bytes", maxFile)
		}
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		return raw, nil
	}
	if n, err := snappy.DecodedLen(body); err != nil || n > maxFile || n > 64*len(body)+1024 {
		return nil, fmt.Errorf("decompress: %d bytes are said to be in it: %w", n, errors.Join(err, errors.New("no remote-write body compressed with snappy")))
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return raw, nil
}

// isV2 reports whether a request is of remote write 2.0, whose fields are numbered from
// 4 on.
func isV2(raw []byte) bool {
	tag, n := binary.Uvarint(raw)
	return n > 0 && tag>>3 >= 4
}

func readV1(raw []byte, f *filler) (histograms int64, err error) {
	var req prompb.WriteRequest
	if err := req.Unmarshal(raw); err != nil {
		return 0, fmt.Errorf("decode remote write 1.0: %w", err)
	}
	b := labels.NewScratchBuilder(0)
	for i := range req.Timeseries {
		ts := &req.Timeseries[i]
		lset := ts.ToLabels(&b, nil)
		for _, s := range ts.Samples {
			if err := f.add(lset, s.Timestamp, s.Value); err != nil {
				return histograms, err
			}
		}
		histograms += int64(len(ts.Histograms))
	}
	return histograms, nil
}

func readV2(raw []byte, f *filler) (histograms int64, err error) {
	var req writev2.Request
	if err := req.Unmarshal(raw); err != nil {
		return 0, fmt.Errorf("decode remote write 2.0: %w", err)
	}
	b := labels.NewScratchBuilder(0)
	for i := range req.Timeseries {
		ts := &req.Timeseries[i]
		lset, err := ts.ToLabels(&b, req.Symbols)
		if err != nil {
			return histograms, err
		}
		for _, s := range ts.Samples {
			if err := f.add(lset, s.Timestamp, s.Value); err != nil {
				return histograms, err
			}
		}
		histograms += int64(len(ts.Histograms))
	}
	return histograms, nil
}

// ReadFile reads a file that is not too large.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: %d bytes are more than %d; split it by time", path, info.Size(), maxFile)
	}
	return os.ReadFile(path)
}

// LooksLikeText reports whether a file's beginning is text: an exposition, not a
// remote-write request.
func LooksLikeText(b []byte) bool {
	b = b[:min(len(b), 512)]
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return len(b) > 0
}
