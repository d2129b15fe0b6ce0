package send

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDenied: while the endpoint or the identity is wrong ticks are kept. It is tried
// again at least every minute, and the log says so at the beginning, now and then, and
// at the end.
func TestDenied(t *testing.T) {
	for code := 400; code < 500; code++ {
		switch code {
		case 400, 409, 413, 415, 422: // of the content
			continue
		case 408, 425, 429: // of the moment
			continue
		}
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l, began := newRun(1, 30, 20), &logs{}, time.Now()
				var at []time.Duration
				rc := &receiver{script: func(int, *http.Request, Protocol, int) answer {
					d := time.Since(began)
					at = append(at, d)
					if d < 25*time.Minute {
						return status(code)
					}
					return answer{code: 204, store: true}
				}}
				s := runFor(t, r.config(rc, r.ring(), l), 27*time.Minute)
				rc.check(t)
				if diff := cmp.Diff(r.want(external, nil), rc.stored); diff != "" {
					t.Error(diff)
				}
				for _, name := range []string{"samples_rejected_total", "ticks_lost_total"} {
					if n := metric(s, name, ""); n != 0 {
						t.Errorf("%s is %v", name, n)
					}
				}
				for i := 1; i < len(at); i++ {
					if d := at[i] - at[i-1]; d > time.Minute {
						t.Errorf("tried again after %s", d)
					}
				}
				if len(at) > 120 {
					t.Errorf("%d requests in 27 minutes", len(at))
				}
				if n := l.count("level=ERROR"); n != 3 || l.count("HTTP "+strconv.Itoa(code)) != 3 || l.count("check=") != 3 {
					t.Errorf("log of the beginning and two repetitions:\n%s", l)
				}
				if l.count("remote write goes on") != 1 {
					t.Errorf("log:\n%s", l)
				}
			})
		})
	}
}

// TestOutageTurnsDenied: an outage that becomes one that somebody has to end says so at
// once.
func TestOutageTurnsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l, began := newRun(1, 5, 5), &logs{}, time.Now()
		rc := &receiver{script: func(int, *http.Request, Protocol, int) answer {
			switch d := time.Since(began); {
			case d < 2*time.Minute:
				return status(503)
			case d < 5*time.Minute:
				return status(403)
			}
			return answer{code: 204, store: true}
		}}
		runFor(t, r.config(rc, r.ring(), l), 8*time.Minute)
		if l.count("level=WARN") != 1 || l.count("level=ERROR") != 1 || l.count("goes on") != 1 {
			t.Errorf("log:\n%s", l)
		}
	})
}

// TestRefusingIsRepeated: while samples are refused for good the log says so now and
// then, with how many, and when it ends.
func TestRefusingIsRepeated(t *testing.T) {
	for _, code := range []int{400, 409, 413, 415, 422} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, in, l, began := newRun(1, 5, 30*60), &ring{}, &logs{}, time.Now()
				rc := &receiver{script: func(int, *http.Request, Protocol, int) answer {
					if time.Since(began) < 25*time.Minute {
						a := status(code)
						a.body = bytes.NewReader([]byte("for some reason"))
						return a
					}
					return answer{code: 204, store: true}
				}}
				cfg := r.config(rc, in, l)
				cfg.Mode = Only2
				go func() {
					for i := range r.ticks {
						in.append(r.ticks[i])
						time.Sleep(time.Second)
					}
				}()
				s := runFor(t, cfg, 31*time.Minute)
				if l.count("receiver refuses samples") != 1 || l.count("still refuses samples") != 2 || l.count("refuses no more samples") != 1 {
					t.Errorf("log:\n%s", l)
				}
				if metric(s, "samples_rejected_total", "") == 0 {
					t.Error("nothing is counted")
				}
			})
		})
	}
}

// TestLossesAreSaidSeldom: ticks that are lost are said at once, then in sum once a
// minute, and the rest at the end; what the log says is all of them.
func TestLossesAreSaidSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, in, l := newRun(1, 5, 300*4), &ring{capacity: 2}, &logs{}
		rc := &receiver{script: ok}
		cfg := r.config(rc, in, l)
		cfg.Interval = time.Second
		go func() {
			for i := range r.ticks {
				in.append(r.ticks[i])
				time.Sleep(250 * time.Millisecond) // two of four find no room
			}
		}()
		s := runFor(t, cfg, 302*time.Second)
		lines, sum := 0, 0
		for line := range strings.Lines(l.String()) {
			if _, rest, ok := strings.Cut(line, " ticks="); ok {
				n, _, _ := strings.Cut(rest, " ")
				k, err := strconv.Atoi(n)
				if err != nil {
					t.Fatal(err)
				}
				lines, sum = lines+1, sum+k
			}
		}
		if lines < 5 || lines > 7 {
			t.Errorf("%d lines in five minutes:\n%s", lines, l)
		}
		if n := metric(s, "ticks_lost_total", ""); n == 0 || float64(sum) != n {
			t.Errorf("%d lost by the log, %v by the counter", sum, n)
		}
	})
}
