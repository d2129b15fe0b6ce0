package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/ticktier/ticktier/e2e/client"
)

// received is one push as a receiver saw it.
type received struct {
	at      time.Time
	header  http.Header
	version client.Version
	series  []client.Series
	samples int
	stale   int
}

// script answers the n-th push, counted from 0. A status of 0 means: stored.
type script func(n int, p *received) (status int, header http.Header)

// receiver is a remote write receiver that checks what the protocol demands of a
// sender and answers as its script says.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	pushes []received // all, in order
	stored []received // those that were answered with 2xx
	faults []string
}

func startReceiver(t *testing.T, answer script) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p, err := readPush(req)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.faults = append(r.faults, err.Error())
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		n := len(r.pushes)
		r.pushes = append(r.pushes, *p)
		status, header := answer(n, p)
		for name, values := range header {
			w.Header()[name] = values
		}
		if status == 0 {
			status = http.StatusNoContent
			if p.version == client.V2 {
				w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", strconv.Itoa(p.samples))
			}
		}
		if status/100 == 2 {
			r.stored = append(r.stored, *p)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(func() {
		r.Close()
		for _, f := range slices.Compact(slices.Sorted(slices.Values(r.faults))) {
			t.Errorf("a push breaks the protocol: %s", f)
		}
	})
	return r
}

// seen returns copies of what has come so far.
func (r *receiver) seen() (pushes, stored []received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.pushes), slices.Clone(r.stored)
}

// readPush reads a push and checks it against both specifications.
func readPush(req *http.Request) (*received, error) {
	p := &received{at: time.Now(), header: req.Header}
	if req.Method != http.MethodPost {
		return nil, fmt.Errorf("method %s", req.Method)
	}
	if got := req.Header.Get("Content-Encoding"); got != "snappy" {
		return nil, fmt.Errorf("Content-Encoding %q", got)
	}
	if req.Header.Get("User-Agent") == "" || strings.HasPrefix(req.Header.Get("User-Agent"), "Go-http-client") {
		return nil, fmt.Errorf("User-Agent %q", req.Header.Get("User-Agent"))
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		return nil, err
	}
	version := req.Header.Get("X-Prometheus-Remote-Write-Version")
	switch typ := req.Header.Get("Content-Type"); {
	case typ == "application/x-protobuf;proto=io.prometheus.write.v2.Request" && version == "2.0.0":
		p.version = client.V2
		p.series, err = decode2(raw)
	case (typ == "application/x-protobuf" || typ == "application/x-protobuf;proto=prometheus.WriteRequest") && version == "0.1.0":
		p.version = client.V1
		p.series, err = decode1(raw)
	default:
		return nil, fmt.Errorf("Content-Type %q with version %q", typ, version)
	}
	if err != nil {
		return nil, err
	}
	return p, p.check()
}

func decode1(raw []byte) ([]client.Series, error) {
	var req prompb.WriteRequest
	if err := req.Unmarshal(raw); err != nil {
		return nil, err
	}
	var out []client.Series
	for _, ts := range req.Timeseries {
		s := client.Series{Labels: make(map[string]string)}
		last := ""
		for _, l := range ts.Labels {
			if err := addLabel(s.Labels, &last, l.Name, l.Value); err != nil {
				return nil, err
			}
		}
		for _, p := range ts.Samples {
			s.Samples = append(s.Samples, client.Sample{T: p.Timestamp, V: p.Value})
		}
		out = append(out, s)
	}
	return out, nil
}

func decode2(raw []byte) ([]client.Series, error) {
	var req writev2.Request
	if err := req.Unmarshal(raw); err != nil {
		return nil, err
	}
	if len(req.Symbols) == 0 || req.Symbols[0] != "" {
		return nil, errors.New("the first symbol is not empty")
	}
	var out []client.Series
	for _, ts := range req.Timeseries {
		s := client.Series{Labels: make(map[string]string)}
		last := ""
		for i := 0; i+1 < len(ts.LabelsRefs); i += 2 {
			if int(max(ts.LabelsRefs[i], ts.LabelsRefs[i+1])) >= len(req.Symbols) {
				return nil, errors.New("a label refers to no symbol")
			}
			if err := addLabel(s.Labels, &last, req.Symbols[ts.LabelsRefs[i]], req.Symbols[ts.LabelsRefs[i+1]]); err != nil {
				return nil, err
			}
		}
		if ts.Metadata.Type == writev2.Metadata_METRIC_TYPE_UNSPECIFIED && strings.HasSuffix(s.Labels["__name__"], "_total") {
			return nil, fmt.Errorf("%s has no type", s.Labels["__name__"])
		}
		for _, p := range ts.Samples {
			if p.StartTimestamp > p.Timestamp {
				return nil, fmt.Errorf("%s started at %d, after its sample at %d", s.Name(), p.StartTimestamp, p.Timestamp)
			}
			s.Samples = append(s.Samples, client.Sample{T: p.Timestamp, V: p.Value})
		}
		out = append(out, s)
	}
	return out, nil
}

func addLabel(labels map[string]string, last *string, name, value string) error {
	switch {
	case name == "" || value == "":
		return fmt.Errorf("label %q with value %q", name, value)
	case name <= *last:
		return fmt.Errorf("label %s after %s", name, *last)
	}
	*last = name
	labels[name] = value
	return nil
}

// check looks at what both versions demand of a message.
func (p *received) check() error {
	seen := make(map[string]bool)
	for _, s := range p.series {
		name := s.Name()
		switch {
		case s.Labels["__name__"] == "":
			return fmt.Errorf("series %s without a name", name)
		case len(s.Samples) == 0:
			return fmt.Errorf("%s without samples", name)
		case seen[name]:
			return fmt.Errorf("%s twice in one message", name)
		}
		seen[name] = true
		p.samples += len(s.Samples)
		for i, sample := range s.Samples {
			if i > 0 && sample.T <= s.Samples[i-1].T {
				return fmt.Errorf("%s: sample at %d after %d", name, sample.T, s.Samples[i-1].T)
			}
			if isStale(sample.V) {
				p.stale++
			}
		}
	}
	return nil
}

// checkOnce demands that among what was stored no sample came twice and that every
// tick from the first to the last is there.
func checkOnce(t *testing.T, stored []received, missed int) {
	t.Helper()
	slots := make(map[int64]int)
	for _, p := range stored {
		for _, s := range p.series {
			if s.Labels["__name__"] != "node_context_switches_total" {
				continue
			}
			for _, sample := range s.Samples {
				if !isStale(sample.V) {
					slots[sample.T/100]++
				}
			}
		}
	}
	if len(slots) < 20 {
		t.Fatalf("only %d ticks were stored", len(slots))
	}
	low, high, twice := int64(1<<62), int64(0), 0
	for slot, n := range slots {
		low, high = min(low, slot), max(high, slot)
		if n > 1 {
			twice++
		}
	}
	if twice > 0 {
		t.Errorf("%d ticks were stored more than once", twice)
	}
	if holes := int(high-low) + 1 - len(slots); holes > missed {
		t.Errorf("%d ticks of %d are missing, the exporter says that it missed %d", holes, high-low+1, missed)
	}
}

func pushingExporter(t *testing.T, urls ...string) *app {
	t.Helper()
	args := []string{"--rate=10", "--remote-write.interval=500ms"}
	for _, u := range urls {
		args = append(args, "--remote-write.url="+u+"/api/v1/write")
	}
	return startExporter(t, args...)
}

func missedBy(t *testing.T, exporter *app) int {
	t.Helper()
	missed, err := exporter.Metric(t.Context(), "ticktier_exporter_ticks_missed_total")
	if err != nil {
		t.Error(err)
	}
	return int(missed)
}

// TestSenderProtocol: what is sent is well formed, and at a clean stop every series
// ends with a staleness marker.
func TestSenderProtocol(t *testing.T) {
	t.Parallel()
	r := startReceiver(t, func(int, *received) (int, http.Header) { return 0, nil })
	exporter := pushingExporter(t, r.URL)
	pause(t, 5*time.Second)
	missed := missedBy(t, exporter)
	exporter.stop(t)
	_, stored := r.seen()
	checkOnce(t, stored, missed)
	if len(stored) == 0 || stored[0].version != client.V2 {
		t.Error("2.0 was not tried first")
	}
	ends := make(map[string]float64)
	for _, p := range stored {
		for _, s := range p.series {
			ends[s.Name()] = last(s).V
		}
	}
	open := 0
	for _, v := range ends {
		if !isStale(v) {
			open++
		}
	}
	if open > 0 {
		t.Errorf("%d of %d series do not end with a staleness marker", open, len(ends))
	}
}

// TestSenderFallsBack: 415 makes the sender go on in 1.0 and lose nothing.
func TestSenderFallsBack(t *testing.T) {
	t.Parallel()
	r := startReceiver(t, func(_ int, p *received) (int, http.Header) {
		if p.version == client.V2 {
			return http.StatusUnsupportedMediaType, nil
		}
		return 0, nil
	})
	exporter := pushingExporter(t, r.URL)
	pause(t, 5*time.Second)
	missed := missedBy(t, exporter)
	exporter.stop(t)
	pushes, stored := r.seen()
	checkOnce(t, stored, missed)
	if n := len(pushes) - len(stored); n < 1 || n > 3 {
		t.Errorf("%d pushes were refused, want one or few", n)
	}
}

// TestSenderRetries: server errors and Retry-After are obeyed, on one connection
// after the other, and every sample is stored once.
func TestSenderRetries(t *testing.T) {
	t.Parallel()
	const wait = 3
	r := startReceiver(t, func(n int, _ *received) (int, http.Header) {
		switch n {
		case 1, 2:
			return http.StatusServiceUnavailable, nil
		case 4, 5:
			return http.StatusTooManyRequests, http.Header{"Retry-After": {strconv.Itoa(wait)}}
		}
		return 0, nil
	})
	exporter := pushingExporter(t, r.URL)
	pause(t, 15*time.Second)
	missed := missedBy(t, exporter)
	exporter.stop(t)
	pushes, stored := r.seen()
	checkOnce(t, stored, missed)
	if len(pushes) < 8 {
		t.Fatalf("only %d pushes", len(pushes))
	}
	for _, n := range []int{4, 5} {
		if gap := pushes[n+1].at.Sub(pushes[n].at); gap < wait*time.Second-50*time.Millisecond {
			t.Errorf("push %d came %v after a Retry-After of %d s", n+1, gap, wait)
		}
	}
}

// TestSenderOneURLDown: a receiver that is away does not hold up another.
func TestSenderOneURLDown(t *testing.T) {
	t.Parallel()
	down := startReceiver(t, func(int, *received) (int, http.Header) { return http.StatusInternalServerError, nil })
	up := startReceiver(t, func(int, *received) (int, http.Header) { return 0, nil })
	exporter := pushingExporter(t, down.URL, up.URL)
	pause(t, 5*time.Second)
	missed := missedBy(t, exporter)
	_, stored := up.seen()
	checkOnce(t, stored, missed)
	if _, stored := down.seen(); len(stored) > 0 {
		t.Error("the receiver that is down has stored something")
	}
	exporter.stop(t)
}

// TestSenderRefused: what a receiver refuses for good is given up and counted, and
// the rest is delivered.
func TestSenderRefused(t *testing.T) {
	t.Parallel()
	refused := 0
	r := startReceiver(t, func(_ int, p *received) (int, http.Header) {
		for _, s := range p.series {
			if s.Labels["__name__"] == "node_load1" {
				refused++
				return http.StatusBadRequest, nil
			}
		}
		return 0, nil
	})
	exporter := pushingExporter(t, r.URL)
	pause(t, 6*time.Second)
	_, stored := r.seen()
	if len(stored) == 0 {
		t.Error("one bad series keeps everything from being delivered")
	}
	if age := time.Since(newest(stored)); age > 3*time.Second {
		t.Errorf("nothing was delivered for %v", age)
	}
	exporter.stop(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

func newest(stored []received) time.Time {
	var at time.Time
	for _, p := range stored {
		if p.at.After(at) {
			at = p.at
		}
	}
	return at
}
