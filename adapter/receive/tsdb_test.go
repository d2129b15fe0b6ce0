package receive

import (
	"context"
	"fmt"
	"math"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// held returns everything a TSDB answers: series → "t value" in time order.
func held(t *testing.T, db *tsdb.DB) map[string][]string {
	t.Helper()
	q, err := db.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	all := map[string][]string{}
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	for set.Next() {
		it := set.At().Iterator(nil)
		key := set.At().Labels().String()
		for typ := it.Next(); typ != chunkenc.ValNone; typ = it.Next() {
			if typ == chunkenc.ValFloat {
				ts, v := it.At()
				all[key] = append(all[key], fmt.Sprintf("%d %v", ts-at(0), v))
			} else {
				ts, fh := it.AtFloatHistogram(nil)
				all[key] = append(all[key], fmt.Sprintf("%d count %v", ts-at(0), fh.Count))
			}
		}
	}
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func claimed(t *testing.T, w *httptest.ResponseRecorder) (n int) {
	t.Helper()
	for _, kind := range []string{"Samples", "Histograms"} {
		k, err := strconv.Atoi(w.Header().Get("X-Prometheus-Remote-Write-" + kind + "-Written"))
		if err != nil {
			t.Fatal(err)
		}
		n += k
	}
	return n
}

// TestRealStore drives a real TSDB: what is claimed is what can be read.
func TestRealStore(t *testing.T) {
	db := openTSDB(t)
	h := New(Config{Store: db, Now: func() time.Time { return testNow }})
	s := func(v float64, times ...int64) (out []writev2.Sample) {
		for _, x := range times {
			out = append(out, writev2.Sample{Timestamp: at(x), Value: v})
		}
		return out
	}
	steps := []struct {
		name   string
		req    *writev2.Request
		status int
		claims int
	}{
		{"in order", newBuilder().add(writev2.TimeSeries{Samples: s(1, 0, 100, 200)}, "__name__", "a").request(), 204, 3},
		{"the same again", newBuilder().add(writev2.TimeSeries{Samples: s(1, 200)}, "__name__", "a").request(), 204, 1},
		{"another value", newBuilder().add(writev2.TimeSeries{Samples: s(2, 200)}, "__name__", "a").request(), 400, 0},
		{"late", newBuilder().add(writev2.TimeSeries{Samples: s(3, 50, 300)}, "__name__", "a").request(), 204, 2},
		{"too late", newBuilder().add(writev2.TimeSeries{Samples: s(4, -86_400_000-1000, 400)}, "__name__", "a").request(), 400, 1},
		{"twice in one request", newBuilder().sample(500, 5, "__name__", "a").sample(500, 6, "__name__", "a").request(), 400, 1},
		{"backwards in one request", newBuilder().sample(700, 7, "__name__", "a").sample(600, 6, "__name__", "a").request(), 204, 2},
		{"histograms", newBuilder().add(writev2.TimeSeries{Histograms: []writev2.Histogram{intHistogram2(at(0)), intHistogram2(at(10)), customHistogram2(at(20))}}, "__name__", "h").request(), 204, 3},
		{"a histogram twice", newBuilder().add(writev2.TimeSeries{Histograms: []writev2.Histogram{floatHistogram2(at(30)), floatHistogram2(at(30)), intHistogram2(at(30))}}, "__name__", "h").request(), 400, 2},
	}
	for _, step := range steps {
		w := post(h, type2, encode(t, step.req))
		if w.Code != step.status || claimed(t, w) != step.claims {
			t.Errorf("%s: status %d, claims %d: %s", step.name, w.Code, claimed(t, w), w.Body)
		}
	}
	want := map[string][]string{
		`{__name__="a"}`: {"0 1", "50 3", "100 1", "200 1", "300 3", "400 4", "500 5", "600 6", "700 7"},
		`{__name__="h"}`: {"0 count 9", "10 count 9", "20 count 30", "30 count 2.5"},
	}
	if diff := cmp.Diff(want, held(t, db)); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}

// TestReferencesOutliveTheHead: when the TSDB drops a series, its reference in the
// cache is of no use and the labels must do.
func TestReferencesOutliveTheHead(t *testing.T) {
	db := openTSDB(t)
	h := New(Config{Store: db, Now: func() time.Time { return testNow.Add(1e6 * time.Hour) }})
	day := int64(86_400_000)
	post(h, type2, encode(t, newBuilder().sample(0, 1, "__name__", "old").sample(0, 1, "__name__", "other").request()))
	post(h, type2, encode(t, newBuilder().sample(3*day, 1, "__name__", "other").request()))
	if err := db.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
	if w := post(h, type2, encode(t, newBuilder().sample(3*day, 2, "__name__", "old").request())); w.Code != 204 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	want := []string{"0 1", fmt.Sprintf("%d 2", 3*day)}
	if diff := cmp.Diff(want, held(t, db)[`{__name__="old"}`]); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := New(Config{Store: &fakeStore{}, Registerer: reg, Now: func() time.Time { return testNow }})
	post(h, type2, encode(t, newBuilder().sample(0, 1, "__name__", "a").sample(0, 1, "no", "name").request()))
	post(h, type1, []byte("junk"))
	post(h, "text/plain", nil)
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	for name, got := range map[string]float64{
		"samples": counterValue(h.metrics.samples), "rejected": counterValue(h.metrics.rejected[reasonMetricName]),
		"400 of 2.0": testutil.ToFloat64(h.metrics.requests.WithLabelValues("400", "2.0")),
		"400 of 1.0": testutil.ToFloat64(h.metrics.requests.WithLabelValues("400", "1.0")),
		"415":        testutil.ToFloat64(h.metrics.requests.WithLabelValues("415", "none")),
	} {
		if got != 1 {
			t.Errorf("%s: counted %v times, want once", name, got)
		}
	}
}
