package send

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// fakeExtra notes what the sender does with it.
type fakeExtra struct {
	asked []bool // whether for 2.0
	took  []bool
	empty bool
	ends  int
}

func (x *fakeExtra) Encode(dst []byte, v2 bool) ([]byte, int, int) {
	x.asked = append(x.asked, v2)
	switch {
	case x.empty:
		return dst, 0, 0
	case v2:
		return append(dst, 4<<3|2, 0), 3, 2 // one symbol, the empty one
	}
	return append(dst, 3<<3|2, 0), 5, 0 // metadata of nothing
}

func (x *fakeExtra) End(dst []byte, v2 bool) ([]byte, int, int) {
	x.ends++
	if v2 {
		return append(dst, 4<<3|2, 0), 3, 2
	}
	return append(dst, 3<<3|2, 0), 5, 0
}

func (x *fakeExtra) Done(took bool) { x.took = append(x.took, took) }

// TestExtra: what goes with pushes comes behind the ticks, in the receiver's protocol,
// once; a receiver that refuses it still gets all ticks, and is left alone for a while.
func TestExtra(t *testing.T) {
	isExtra := func(req *http.Request) bool { return req.Header.Get(headerSeq) == "" }
	for _, c := range []struct {
		name    string
		script  func(n int, req *http.Request, p Protocol, samples int) answer
		empty   bool
		took    func(i int) bool
		v2      bool
		asked   int // at least
		most    int
		failed  float64
		samples float64
	}{
		{name: "taken", script: ok, took: func(int) bool { return true }, v2: true, asked: 5, most: 8, samples: 3},
		{name: "by 1.0", script: func(_ int, _ *http.Request, p Protocol, _ int) answer {
			if p == V2 {
				return status(415)
			}
			return answer{code: 204, store: true}
		}, took: func(int) bool { return true }, asked: 5, most: 8, samples: 5},
		{name: "refused", script: func(_ int, req *http.Request, _ Protocol, _ int) answer {
			if isExtra(req) {
				return status(400)
			}
			return answer{code: 204, store: true}
		}, took: func(int) bool { return false }, v2: true, asked: 1, most: 1, failed: 1},
		{name: "an error is not repeated", script: func(_ int, req *http.Request, _ Protocol, _ int) answer {
			if isExtra(req) {
				return status(503)
			}
			return answer{code: 204, store: true}
		}, took: func(int) bool { return false }, v2: true, asked: 5, most: 8, failed: 1},
		{name: "nothing to send", script: ok, empty: true, took: func(int) bool { return true }, v2: true, asked: 5, most: 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(1, 30, 20)
				rc, l, x := &receiver{script: c.script}, &logs{}, &fakeExtra{empty: c.empty}
				cfg := r.config(rc, r.ring(), l)
				cfg.Extra, cfg.StaleOnStop = x, true
				s := runFor(t, cfg, 38*time.Second)
				rc.check(t)
				if n := len(x.asked); n < c.asked || n > c.most {
					t.Fatalf("%d times asked", n)
				}
				for i, v2 := range x.asked {
					if v2 != c.v2 || !c.empty && x.took[i] != c.took(i) {
						t.Errorf("request %d: 2.0 is %v, taken is %v", i, v2, x.took)
					}
				}
				if want := len(x.took) > 1 && x.took[0]; want != (x.ends == 1) || x.ends > 1 {
					t.Errorf("it is ended %d times", x.ends)
				}
				sent := 0
				for i, req := range rc.requests {
					if isExtra(req) {
						if sent++; i == 0 {
							t.Error("it came before the ticks")
						}
					}
				}
				if want := len(x.took); sent != want || c.empty && sent > 0 {
					t.Errorf("%d requests of it, want %d", sent, want)
				}
				if len(rc.stored) == 0 {
					t.Error("no tick arrived")
				}
				n := float64(len(x.took))
				if got := metric(s, "histogram_pushes_failed_total", ""); got != c.failed*n {
					t.Errorf("%v failed, want %v", got, c.failed*n)
				}
				if got := metric(s, "histogram_samples_total", ""); got != c.samples*n {
					t.Errorf("%v samples, want %v", got, c.samples*n)
				}
			})
		})
	}
}
