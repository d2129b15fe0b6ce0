package ruler

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestNoDataIsNotResolved: an alert of a device that falls silent is told as firing, over
// a restart too, until the device is back and says otherwise.
func TestNoDataIsNotResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		write(t, filepath.Join(w.dir, "r.yml"), testRules)
		var silent atomic.Bool
		c := w.config()
		c.HeldFile = filepath.Join(w.dir, "held.json")
		c.Silent = func(instance string) bool { return instance == "r1" && silent.Load() }
		r, stop := w.start(c)
		w.run("x", 7, 4*time.Minute)
		if got := w.take(); len(got) == 0 || !got[len(got)-1].firing(time.Now()) {
			t.Fatalf("before the silence: %+v", got)
		}
		quiet := func(d time.Duration) {
			t.Helper()
			for range int(d / (2 * time.Minute)) {
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				got := w.take()
				if len(got) == 0 {
					t.Errorf("nothing is sent in two minutes of silence")
				}
				for _, n := range got {
					if !n.firing(time.Now()) || n.Annotations["summary"] != "r1 has 14 at lab" || n.Labels["site"] != "lab" {
						t.Errorf("in the silence: %+v", n)
					}
				}
			}
		}
		silent.Store(true)
		quiet(20 * time.Minute)
		if n := testutil.ToFloat64(r.metrics.good) + float64(r.held.len()); n != 2 {
			t.Errorf("%d alerts are held", r.held.len())
		}
		stop()
		w.take()
		c.Registerer = nil
		r, stop = w.start(c)
		defer func() { stop() }()
		quiet(6 * time.Minute)

		// Back, and still too high: it goes on as before.
		silent.Store(false)
		w.run("x", 7, 5*time.Minute)
		for _, n := range w.take() {
			if !n.firing(time.Now().Add(-5 * time.Minute)) {
				t.Errorf("back and too high: %+v", n)
			}
		}
		if r.held.len() != 0 {
			t.Errorf("%d alerts are held of a device that is back", r.held.len())
		}
		// Silent again, and back with a value that is fine.
		silent.Store(true)
		quiet(8 * time.Minute)
		silent.Store(false)
		w.run("x", 3, 4*time.Minute)
		if got := w.take(); len(got) == 0 || got[len(got)-1].firing(time.Now()) {
			t.Errorf("back and fine: %+v", got)
		}
	})
}

func TestHeldFileDamaged(t *testing.T) {
	for name, text := range map[string]string{"cut": `[{"labels":{"a"`, "null": `[null]`, "other": `{}`} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			defer w.close()
			c := w.config()
			c.Silent, c.HeldFile = func(string) bool { return true }, filepath.Join(t.TempDir(), "held.json")
			write(t, c.HeldFile, text)
			r, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			r.abort()
			if r.held.len() != 0 || name != "null" && !strings.Contains(w.log.String(), "held.json") {
				t.Errorf("%d held, log:\n%s", r.held.len(), &w.log)
			}
			if _, err := os.Stat(c.HeldFile); err != nil {
				t.Error(err)
			}
		})
	}
}
