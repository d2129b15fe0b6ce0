package spool

import (
	"testing"

	"github.com/ticktier/ticktier/collectors"
)

// TestReplacedSlot gives a slot to another series in an outage: after a restart the
// ticks before it are those of the old series, and the ones behind of the new.
func TestReplacedSlot(t *testing.T) {
	dir := t.TempDir()
	w := begin(t, dir, "one", nil, "a")
	for range 20 {
		w.sample(100)
		w.cycle()
	}
	w.ring.Seal()
	w.cycle()
	if w.sp.spooledTo != w.seq {
		t.Fatalf("ticks to %d of %d are written", w.sp.spooledTo, w.seq)
	}
	from := w.seq
	w.schema.Replace(func(slot int) *collectors.Series {
		if slot == 3 {
			return &collectors.Series{Metric: &collectors.Metric{Name: "another", Type: collectors.Histogram, Kind: collectors.Float}}
		}
		return nil
	})
	for range 5 {
		w.sample(100)
		w.cycle()
	}
	end := w.seq
	w.stop()
	verify(t, dir)

	w = begin(t, dir, "two", nil, "a")
	defer w.stop()
	e := w.sp.Earlier(0)
	before, behind := 0, 0
	for e.Next() {
		seq, s := e.Tick().Seq, e.Series()[3]
		switch {
		case seq < from && s.Name == "a_total" && s.Type == collectors.Counter && len(s.Labels) == 1:
			before++
		case seq >= from && s.Name == "another" && s.Type == collectors.Histogram && len(s.Labels) == 0:
			behind++
		default:
			t.Fatalf("tick %d, replaced at %d, is of %s", seq, from, s.Name)
		}
		if err := checkTick(e.Tick()); err != nil {
			t.Fatal(err)
		}
	}
	if before != ticksTo(from) || before+behind != ticksTo(end) {
		t.Errorf("%d ticks before and %d behind, want %d and %d", before, behind, ticksTo(from), ticksTo(end)-ticksTo(from))
	}
}
