package main

import (
	"sync"

	"github.com/ticktier/ticktier/exporter/ring"
	"github.com/ticktier/ticktier/exporter/send"
)

// delivered tells the ring what every sender has delivered. It is safe for concurrent
// use.
type delivered struct {
	ring *ring.Ring

	mu      sync.Mutex
	has     [][][2]uint64 // by sender: runs of ticks, from the first to before the second
	all, to [][2]uint64   // scratch
}

func newDelivered(r *ring.Ring, senders int) *delivered {
	if senders > 0 {
		r.Delivered(0)
	}
	return &delivered{ring: r, has: make([][][2]uint64, senders)}
}

// set notes what one sender has delivered.
func (d *delivered) set(i int, p send.Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.has[i] = append(append(d.has[i][:0], [2]uint64{0, p.Seq}), p.Ahead...)
	d.all = append(d.all[:0], d.has[0]...)
	for _, has := range d.has[1:] {
		d.to = common(d.to[:0], d.all, has)
		d.all, d.to = d.to, d.all
	}
	if len(d.all) > 0 && d.all[0][0] == 0 {
		d.ring.Delivered(d.all[0][1], d.all[1:]...)
		return
	}
	d.ring.Delivered(0, d.all...)
}

// common appends what is in both of two lists of runs, each in order.
func common(dst, a, b [][2]uint64) [][2]uint64 {
	for len(a) > 0 && len(b) > 0 {
		from, to := max(a[0][0], b[0][0]), min(a[0][1], b[0][1])
		if from < to {
			dst = append(dst, [2]uint64{from, to})
		}
		if a[0][1] < b[0][1] {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return dst
}
