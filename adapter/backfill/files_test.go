package backfill

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage"
)

// got is an AppenderV2 that notes what is committed.
type got struct{ open, list []string }

func (g *got) AppenderV2(context.Context) storage.AppenderV2 { return g }

func (g *got) Append(_ storage.SeriesRef, l labels.Labels, _, t int64, v float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, _ storage.AppendV2Options) (storage.SeriesRef, error) {
	g.open = append(g.open, fmt.Sprint(l, t, v))
	return 0, nil
}

func (g *got) AppendExemplars(storage.SeriesRef, labels.Labels, []exemplar.Exemplar) (storage.SeriesRef, error) {
	return 0, nil
}

func (g *got) Commit() error   { g.list, g.open = append(g.list, g.open...), nil; return nil }
func (g *got) Rollback() error { g.open = nil; return nil }

func TestReadOpenMetrics(t *testing.T) {
	var g got
	n, err := ReadOpenMetrics(t.Context(), []byte("# TYPE a counter\na_total{x=\"1\"} 5 1.5\na_total{x=\"1\"} 6 2\n# TYPE b gauge\nb -1 0.001\n# EOF\n"), &g)
	want := []string{`{__name__="a_total", x="1"} 1500 5`, `{__name__="a_total", x="1"} 2000 6`, `{__name__="b"} 1 -1`}
	if d := cmp.Diff(want, g.list); d != "" || n != 3 || err != nil {
		t.Errorf("%d samples, %v: %s", n, err, d)
	}
	for text, want := range map[string]string{
		"a 1\n# EOF\n":      "no timestamp",
		"a 1 1\n":           "EOF",
		"a{ 1 1\n# EOF\n":   "",
		"a 1 soon\n# EOF\n": "",
	} {
		if _, err := ReadOpenMetrics(t.Context(), []byte(text), &got{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

func some() []Series {
	return []Series{
		{labels.FromStrings("__name__", "a", "x", "1"), []int64{1, 2, 3}, []float64{1, 2.5, -3}},
		{labels.FromStrings("__name__", "b"), []int64{7}, []float64{1e300}},
	}
}

// v2 is a remote-write 2.0 message of the same.
func v2(list []Series) []byte {
	symbols := writev2.NewSymbolTable()
	var req writev2.Request
	for _, s := range list {
		ts := writev2.TimeSeries{LabelsRefs: symbols.SymbolizeLabels(s.Labels, nil)}
		for i, t := range s.T {
			ts.Samples = append(ts.Samples, writev2.Sample{Timestamp: t, Value: s.V[i]})
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	req.Symbols = symbols.Symbols()
	raw, err := req.Marshal()
	if err != nil {
		panic(err)
	}
	return raw
}

func TestReadRemoteWrite(t *testing.T) {
	one, err := snappy.Decode(nil, Encode(some()))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{__name__="a", x="1"} 1 1`, `{__name__="a", x="1"} 2 2.5`, `{__name__="a", x="1"} 3 -3`, `{__name__="b"} 7 1e+300`,
	}
	for name, raw := range map[string][]byte{"1.0": one, "2.0": v2(some())} {
		var stream bytes.Buffer
		w := snappy.NewBufferedWriter(&stream)
		if _, err := w.Write(raw); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for form, body := range map[string][]byte{"block": snappy.Encode(nil, raw), "framed": stream.Bytes()} {
			if LooksLikeText(body) {
				t.Errorf("%s %s looks like text", name, form)
			}
			var g got
			n, h, err := ReadRemoteWrite(t.Context(), body, &g)
			if d := cmp.Diff(want, g.list); d != "" || n != 4 || h != 0 || err != nil {
				t.Errorf("%s %s: %d samples, %v: %s", name, form, n, err, d)
			}
			if _, _, err := ReadRemoteWrite(t.Context(), body[:len(body)-3], &got{}); err == nil {
				t.Errorf("%s %s: one that is cut off is taken", name, form)
			}
		}
	}
	// A few bytes that promise a gigabyte.
	if _, _, err := ReadRemoteWrite(t.Context(), []byte{0xff, 0xff, 0xff, 0xff, 0x03, 0, 0}, &got{}); err == nil {
		t.Error("a small body with a large promise is taken")
	}
}

func TestEncodeDecode(t *testing.T) {
	list, err := Decode(Encode(some()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(some(), list, cmp.Comparer(labels.Equal)); d != "" {
		t.Error(d)
	}
	if _, err := Decode(Encode([]Series{{Labels: labels.FromStrings("a", "b")}})); err == nil {
		t.Error("a series without a name is taken")
	}
}

func FuzzReadRemoteWrite(f *testing.F) {
	f.Add(Encode(some()))
	f.Add(snappy.Encode(nil, v2(some())))
	f.Add([]byte("\xff\x06\x00\x00sNaPpY"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ReadRemoteWrite(context.Background(), b, &got{}) //nolint:errcheck // it must not panic
		if list, err := Decode(b); err == nil {
			if again, err := Decode(Encode(list)); err != nil || len(again) != len(list) {
				t.Errorf("%d series come back as %d: %v", len(list), len(again), err)
			}
		}
	})
}

func FuzzReadOpenMetrics(f *testing.F) {
	f.Add([]byte("a_total{x=\"1\"} 5 1.5\n# EOF\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var g got
		if n, err := ReadOpenMetrics(context.Background(), b, &g); err == nil && int(n) != len(g.list) {
			t.Errorf("%d samples read, %d committed", n, len(g.list))
		}
	})
}
