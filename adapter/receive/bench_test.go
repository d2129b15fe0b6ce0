package receive

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"

	"golang.org/x/sys/unix"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
)

// BenchmarkDecode is from the compressed body to a store that keeps nothing.
func BenchmarkDecode(b *testing.B) {
	for _, samples := range []int{50, 1} {
		for _, p := range []protocol{proto2, proto1} {
			b.Run(fmt.Sprintf("protocol=%s/series=500/samples=%d", p, samples), func(b *testing.B) {
				var m marshaler = push(500, samples, at(0), 100)
				if p == proto1 {
					m = push1(500, samples, at(0), 100)
				}
				body := encode(b, m)
				_, run := pipeline(b, body, p)
				run()
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				began := cpuTime(b)
				for b.Loop() {
					run()
				}
				perSample(b, cpuTime(b)-began, 500*samples)
			})
		}
	}
}

// BenchmarkStore is a whole request, HTTP handler and all, into a real TSDB: ours and
// Prometheus' own handler in turn.
func BenchmarkStore(b *testing.B) {
	for _, samples := range []int{50, 1} {
		for name, handler := range map[string]func(storage.AppendableV2) http.Handler{
			"ticktier": func(db storage.AppendableV2) http.Handler {
				return New(Config{Store: db, Now: func() time.Time { return testNow.Add(1e6 * time.Hour) }})
			},
			"prometheus": func(db storage.AppendableV2) http.Handler {
				return remote.NewWriteHandler(promslog.NewNopLogger(), prometheus.NewRegistry(), db,
					remoteapi.MessageTypes{remoteapi.WriteV1MessageType, remoteapi.WriteV2MessageType}, false, false)
			},
		} {
			b.Run(fmt.Sprintf("handler=%s/series=500/samples=%d", name, samples), func(b *testing.B) {
				benchmarkStore(b, samples, handler(openTSDB(b)))
			})
		}
	}
}

func openTSDB(tb testing.TB) *tsdb.DB {
	opts := tsdb.DefaultOptions()
	opts.OutOfOrderTimeWindow = (24 * time.Hour).Milliseconds()
	opts.EnableExemplarStorage = true
	opts.MaxExemplars = 1000
	db, err := tsdb.Open(tb.TempDir(), promslog.NewNopLogger(), nil, opts, nil)
	if err != nil {
		tb.Fatal(err)
	}
	db.DisableCompactions()
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

func benchmarkStore(b *testing.B, samples int, h http.Handler) {
	const step = 100
	from := at(0) - 5*365*86_400_000
	req := push(500, samples, from, step)
	var raw []byte
	var spent time.Duration
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for i := range req.Timeseries {
			for j := range req.Timeseries[i].Samples {
				req.Timeseries[i].Samples[j].Timestamp += int64(samples) * step
			}
		}
		var err error
		if raw, err = req.OptimizedMarshal(raw[:0]); err != nil {
			b.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(snappy.Encode(nil, raw)))
		r.Header.Set("Content-Type", type2)
		r.Header.Set("Content-Encoding", "snappy")
		w := httptest.NewRecorder()
		began := cpuTime(b)
		b.StartTimer()
		h.ServeHTTP(w, r.WithContext(context.Background()))
		spent += cpuTime(b) - began
		if w.Code != http.StatusNoContent {
			b.Fatalf("status %d: %s", w.Code, w.Body)
		}
	}
	perSample(b, spent, 500*samples)
}

// perSample reports CPU time, which other processes on the machine disturb less than
// they do the clock.
func perSample(b *testing.B, spent time.Duration, n int) {
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*n), "cpu-ns/sample")
}

// cpuTime is what the process has used of all cores, the collector included.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
