package send

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/exporter/frame"
)

// TestBisect delivers all but the series that the receiver refuses.
func TestBisect(t *testing.T) {
	for _, c := range []struct {
		name     string
		bad      func(labels string) bool
		series   int // that are quarantined
		requests int // at most, for the first batch
	}{
		{"none", func(string) bool { return false }, 0, 1},
		{"one", func(k string) bool { return strings.Contains(k, "up_7_") && strings.Contains(k, `cpu="3"`) }, 1, 24},
		{"first and last", func(k string) bool {
			return strings.Contains(k, "up_0_") && strings.Contains(k, `cpu="0"`) || strings.Contains(k, "up_24_") && strings.Contains(k, `cpu="19"`)
		}, 2, 48},
		{"a metric", func(k string) bool { return strings.Contains(k, "up_8_") }, 20, 90},
		{"all", func(string) bool { return true }, 0, 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(1, 500, 40)
				in, l := &ring{}, &logs{}
				var rc *receiver
				first, delivered := 0, false
				rc = &receiver{script: func(int, *http.Request, Protocol, int) answer {
					if !delivered {
						first++
					}
					return answer{code: 204, store: true}
				}}
				cfg := r.config(poisoned{rc, c.bad}, in, l)
				cfg.Mode = Only1
				cfg.ExternalLabels = nil
				cfg.Delivered = func(Progress) { delivered = true }
				go func() {
					for i := range r.ticks {
						in.append(r.ticks[i])
						time.Sleep(time.Second)
					}
				}()
				s := runFor(t, cfg, time.Minute)
				want := r.want(nil, nil)
				rejected := 0
				for k, ss := range want {
					if c.bad(k) {
						rejected += len(ss)
						delete(want, k)
					}
				}
				got := rc.stored
				if got == nil {
					got = written{}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if n := metric(s, "samples_rejected_total", ""); n != float64(rejected) {
					t.Errorf("%v samples are counted as rejected, %d were", n, rejected)
				}
				if n := metric(s, "series_quarantined", ""); n != float64(c.series) {
					t.Errorf("%v series are quarantined, want %d", n, c.series)
				}
				if n := l.count("receiver refuses a series"); n != c.series {
					t.Errorf("%d series are named in the log, want %d", n, c.series)
				}
				if all := first + int(metric(s, "requests_total", "4xx")); all > c.requests+10 {
					t.Errorf("%d requests, want at most %d", all, c.requests)
				}
			})
		})
	}
}

// poisoned refuses requests as a whole that hold a bad series.
type poisoned struct {
	rc  *receiver
	bad func(labels string) bool
}

func (p poisoned) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	w := written{}
	if _, err := w.decode(V1, body); err != nil {
		return nil, err
	}
	for k := range w {
		if p.bad(k) {
			return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("bad series")), Request: req}, nil
		}
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return p.rc.RoundTrip(req)
}

// TestQuarantineEnds lets a series back in, and out again for longer.
func TestQuarantineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRun(1, 20, 1), time.Now()
		in, l := &ring{}, &logs{}
		rc := &receiver{script: ok}
		cfg := r.config(poisoned{rc, func(k string) bool {
			return time.Since(began) < 15*time.Minute && strings.Contains(k, `cpu="3"`)
		}}, in, l)
		cfg.Mode, cfg.ExternalLabels = Only1, nil
		go func() {
			for i := range 60 { // a tick a minute
				in.append(frame.Tick{Seq: uint64(i), Time: int64(i) * 60e9, Read: 1, Values: make([]int64, 20), Present: []uint64{1<<20 - 1}})
				time.Sleep(time.Minute)
			}
		}()
		s := runFor(t, cfg, time.Hour)
		// Out at 0 and, for twice as long, at 10 minutes: back from 30 on.
		got := len(rc.stored[`__name__="node_made_up_0_total",cpu="3",`])
		if got < 28 || got > 31 {
			t.Errorf("%d samples of the bad series, want about 30:\n%s", got, l)
		}
		if n := metric(s, "samples_rejected_total", ""); n != float64(60-got) {
			t.Errorf("%v samples are counted as rejected, want %d", n, 60-got)
		}
		if n := metric(s, "series_quarantined", ""); n != 0 {
			t.Errorf("%v series are quarantined at the end", n)
		}
	})
}
