package journal

import (
	"sync"

	"github.com/ticktier/ticktier/collectors"
)

const (
	// Capacity is how many events are held: a boot's worth of a small router, or the
	// last minutes of one in trouble.
	Capacity = 512
	// TextBytes is how much of an event's text is held. The kernel's own records are
	// seldom longer than 200 bytes, and never than about 1,000.
	TextBytes = 512
)

// Entry is an event as it is held. Its Text and Devices belong to whoever passed it to
// Next.
type Entry struct {
	collectors.Event
	// ID counts the events of a run from 1 on, without a hole.
	ID uint64
	// Seen is when it was read, as the monotonic time that ticks have, in ns.
	Seen int64
	// Cut tells that its text was longer.
	Cut bool
}

// Journal holds the newest events. Safe for concurrent use.
type Journal struct {
	mu sync.Mutex
	// Guarded by mu. Both slices are made for the first event; text is apart from the
	// rest because it has no pointers that the garbage collector had to look at.
	cells []Entry // an event's place is its ID modulo Capacity
	text  []byte
	last  uint64 // ID
}

// Add takes an event that was read at the monotonic time seen. It copies what it
// keeps.
func (j *Journal) Add(seen int64, e *collectors.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cells == nil {
		j.cells, j.text = make([]Entry, Capacity), make([]byte, Capacity*TextBytes)
	}
	j.last++
	at := int(j.last % Capacity)
	cell := &j.cells[at]
	devices := append(cell.Devices[:0], e.Devices...)
	room := j.text[at*TextBytes : at*TextBytes : (at+1)*TextBytes]
	*cell = Entry{Event: *e, ID: j.last, Seen: seen, Cut: len(e.Text) > TextBytes}
	cell.Devices, cell.Text = devices, append(room, e.Text[:min(len(e.Text), TextBytes)]...)
}

// Next copies the oldest event that is held and whose ID is id or more into e, and
// returns false when there is none. It reuses e's slices.
func (j *Journal) Next(id uint64, e *Entry) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.last > Capacity {
		id = max(id, j.last-Capacity+1)
	}
	if id = max(id, 1); id > j.last {
		return false
	}
	cell := &j.cells[id%Capacity]
	text, devices := append(e.Text[:0], cell.Text...), append(e.Devices[:0], cell.Devices...)
	*e = *cell
	e.Text, e.Devices = text, devices
	return true
}

// Last is the ID of the newest event, 0 while there is none.
func (j *Journal) Last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}
