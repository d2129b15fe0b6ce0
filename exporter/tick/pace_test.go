package tick

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

// TestPace: a third of the ticks missed is worth a word, once in ten minutes, and so is
// that it is over. Few are not.
func TestPace(t *testing.T) {
	r := &rig{t: t, time: &fakeTime{}}
	cost := 15 * time.Millisecond
	var err error
	r.loop, err = New(Config{Rate: 100, Schema: new(collectors.Schema), Sink: &r.sink, Clock: r.time,
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
		Specs: []collectors.Spec{
			fakeSpec("cheap", 0, func(int64) error { return nil }),
			fakeSpec("dear", 0, func(n int64) error {
				if r.time.Mono() > int64(13*time.Minute) {
					cost = 0
					if n%200 == 0 {
						cost = 15 * time.Millisecond // one slot of 200
					}
				}
				r.time.pass(cost)
				return nil
			}),
		}})
	if err != nil {
		t.Fatal(err)
	}
	r.time.until = int64(20 * time.Minute)
	r.run(20 * time.Minute)
	log := r.log.String()
	if strings.Count(log, "ticks are missed") != 2 || strings.Count(log, "no longer missed") != 1 ||
		!strings.Contains(log, "missed=33.3% reached_hz=66.7 rate=100 dearest=dear") {
		t.Error(log)
	}
}
