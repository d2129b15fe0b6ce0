package tick

import (
	"strings"
	"testing"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

func TestSources(t *testing.T) {
	gone := fakeSpec("gone", time.Minute, nil)
	gone.New = func(collectors.Env) (collectors.Source, error) { return nil, errFake }
	r := newRig(t, 10, fakeSpec("good", 0, nil), fakeSpec("bad", time.Second, func(n int64) error {
		if n > 1 {
			return errFake
		}
		return nil
	}), gone)
	r.run(3 * time.Second)
	got := r.loop.Sources()
	for i, w := range []Status{{Name: "good", Success: true, Series: 1}, {Name: "bad", Error: errFake.Error(), Series: 1},
		{Name: "gone", Error: errFake.Error()}} {
		g := got[i]
		if g.Name != w.Name || g.Success != w.Success || g.Error != w.Error || g.Series != w.Series {
			t.Errorf("got %+v, want %+v", g, w)
		}
	}
	if got[0].Reads < 29 || got[0].Failures != 0 || got[1].Failures == 0 || got[2].Reads == 0 {
		t.Errorf("got %+v", got)
	}
}

func TestProbe(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	slow := fakeSpec("slow", 0, func(int64) error { <-hang; return nil })
	slow.Deadline = 10 * time.Millisecond
	specs := []collectors.Spec{fakeSpec("good", 0, nil), slow, fakeSpec("panics", 0, func(int64) error { panic("row 7") })}
	got := Probe(specs, collectors.Env{}, 5)
	if !got[0].Success || got[0].Reads != 5 || got[0].Series != 1 {
		t.Errorf("got %+v", got[0])
	}
	if got[1].Success || got[1].Error == "" {
		t.Errorf("got %+v", got[1])
	}
	if got[2].Success || !strings.Contains(got[2].Error, "row 7") || got[2].Reads != 1 {
		t.Errorf("got %+v", got[2])
	}
}

func TestProbeThisMachine(t *testing.T) {
	good := 0
	for _, s := range Probe(collectors.All(), collectors.Env{Procfs: "/proc", Sysfs: "/sys", Rootfs: "/"}, 3) {
		if s.Success {
			good++
			if s.Reason == "" || s.Reads != 3 || s.Cost == 0 {
				t.Errorf("got %+v", s)
			}
		} else if s.Error == "" {
			t.Errorf("no reason why not: %+v", s)
		}
	}
	if good < 10 {
		t.Errorf("only %d sources", good)
	}
}

func TestCosts(t *testing.T) {
	var c costs
	if got := c.median(); got != 0 {
		t.Errorf("got %v", got)
	}
	for i := range 1000 {
		c.add(int64(i))
	}
	if got := c.median(); got != 968 {
		t.Errorf("got %v, want the median of the last 64", got)
	}
}
