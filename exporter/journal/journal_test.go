package journal

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/collectors"
)

func TestJournal(t *testing.T) {
	var j Journal
	var e Entry
	if j.Next(0, &e) || j.Last() != 0 {
		t.Error("an empty journal has an event")
	}
	text, devices := []byte("eth1 is down"), []string{"eth1"}
	j.Add(7, &collectors.Event{Source: "kmsg", Seq: 40, Lost: 2, Level: 3, Text: text, Devices: devices})
	copy(text, "xxxxxxxxxxxx")
	devices[0] = "xxxx"
	if !j.Next(0, &e) {
		t.Fatal("the event is not there")
	}
	want := Entry{ID: 1, Seen: 7, Event: collectors.Event{Source: "kmsg", Seq: 40, Lost: 2, Level: 3,
		Text: []byte("eth1 is down"), Devices: []string{"eth1"}}}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if j.Next(2, &e) {
		t.Error("there is a second event")
	}
}

// The oldest make room, a long text is cut, and what a reader got is its own.
func TestJournalFull(t *testing.T) {
	var j Journal
	long := bytes.Repeat([]byte("x"), TextBytes+1)
	for i := range 2*Capacity + 3 {
		j.Add(int64(i), &collectors.Event{Text: fmt.Appendf(nil, "event %d", i+1)})
	}
	var first Entry
	if !j.Next(1, &first) || first.ID != Capacity+4 || string(first.Text) != fmt.Sprint("event ", Capacity+4) {
		t.Errorf("the oldest held is %d, %q", first.ID, first.Text)
	}
	j.Add(0, &collectors.Event{Text: long})
	j.Add(0, &collectors.Event{Text: long[:TextBytes]})
	if string(first.Text) != fmt.Sprint("event ", Capacity+4) {
		t.Errorf("the reader's copy changed: %q", first.Text)
	}
	var e Entry
	for id := uint64(1); j.Next(id, &e); id = e.ID + 1 {
		switch {
		case e.ID <= 2*Capacity+3:
			if string(e.Text) != fmt.Sprint("event ", e.ID) || e.Cut {
				t.Fatalf("event %d is %q", e.ID, e.Text)
			}
		case len(e.Text) != TextBytes || e.Cut != (e.ID == 2*Capacity+4):
			t.Errorf("event %d has %d bytes, cut: %v", e.ID, len(e.Text), e.Cut)
		}
	}
	if e.ID != j.Last() || e.ID != 2*Capacity+5 {
		t.Errorf("the last is %d", e.ID)
	}
}

func TestJournalAllocatesNothing(t *testing.T) {
	var j Journal
	in := collectors.Event{Text: []byte("eth1 is down"), Devices: []string{"eth1"}}
	for range Capacity {
		j.Add(0, &in)
	}
	var e Entry
	j.Next(1, &e)
	if n := testing.AllocsPerRun(100, func() { j.Add(0, &in); j.Next(1, &e) }); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}

func TestJournalConcurrent(t *testing.T) {
	var j Journal
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 5 * Capacity {
			j.Add(int64(i), &collectors.Event{Text: fmt.Append(nil, i)})
		}
	})
	for range 2 {
		wg.Go(func() {
			var e Entry
			for id := uint64(1); id < 5*Capacity; id = e.ID + 1 {
				if j.Next(id, &e) && (e.ID < id || string(e.Text) != fmt.Sprint(e.Seen)) {
					t.Errorf("asked for %d, got %d with %q", id, e.ID, e.Text)
					return
				}
			}
		})
	}
	wg.Wait()
}
