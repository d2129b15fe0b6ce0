package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// sink counts what one sender sends.
type sink struct {
	bytes, samples, requests atomic.Int64
	encoding, version        atomic.Value
}

// receiver has a sink at each path.
type receiver struct {
	*http.Server
	addr  string
	sinks map[string]*sink
	zstd  *zstd.Decoder
}

func startReceiver(names []string) (*receiver, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{addr: ln.Addr().String(), sinks: map[string]*sink{}, zstd: d}
	for _, n := range names {
		r.sinks[n] = &sink{}
	}
	r.Server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.Serve(ln) }()
	return r, nil
}

// url is where a sender is to send to.
func (r *receiver) url(name string) string { return "http://" + r.addr + "/" + name }

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s := r.sinks[strings.Trim(req.URL.Path, "/")]
	if s == nil || req.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err == nil {
		var n int
		if n, err = r.count(req.Header, body); err == nil {
			s.bytes.Add(int64(len(body)))
			s.samples.Add(int64(n))
			s.requests.Add(1)
			s.encoding.Store(req.Header.Get("Content-Encoding"))
			s.version.Store(req.Header.Get("X-Prometheus-Remote-Write-Version"))
			w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", fmt.Sprint(n))
			w.Header().Set("X-Prometheus-Remote-Write-Histograms-Written", "0")
			w.Header().Set("X-Prometheus-Remote-Write-Exemplars-Written", "0")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	http.Error(w, err.Error(), http.StatusBadRequest)
}

// count is the number of samples in a body. Histograms are none.
func (r *receiver) count(h http.Header, body []byte) (n int, err error) {
	var raw []byte
	if h.Get("Content-Encoding") == "zstd" {
		raw, err = r.zstd.DecodeAll(body, nil)
	} else {
		raw, err = snappy.Decode(nil, body)
	}
	if err != nil {
		return 0, err
	}
	if strings.Contains(h.Get("Content-Type"), "v2.Request") {
		var m writev2.Request
		if err := m.Unmarshal(raw); err != nil {
			return 0, err
		}
		for i := range m.Timeseries {
			n += len(m.Timeseries[i].Samples)
		}
		return n, nil
	}
	var m prompb.WriteRequest
	if err := m.Unmarshal(raw); err != nil {
		return 0, err
	}
	for i := range m.Timeseries {
		n += len(m.Timeseries[i].Samples)
	}
	return n, nil
}
