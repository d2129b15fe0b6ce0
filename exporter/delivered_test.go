package main

import (
	"math/rand/v2"
	"testing"

	"github.com/ticktier/ticktier/exporter/ring"
	"github.com/ticktier/ticktier/exporter/send"
)

// TestDelivered: the ring is told what all senders have, what they have ahead of a
// backlog included.
func TestDelivered(t *testing.T) {
	r, err := ring.New(ring.MinBytes)
	if err != nil {
		t.Fatal(err)
	}
	d := newDelivered(r, 3)
	d.set(0, send.Progress{Seq: 100, Ahead: [][2]uint64{{200, 300}, {400, 500}}})
	d.set(1, send.Progress{Seq: 1e6})
	d.set(2, send.Progress{Seq: 40, Ahead: [][2]uint64{{60, 90}, {250, 450}}})
	for i := range uint64(20000) {
		r.Append(i, int64(i)*1e8, 1, []int64{int64(i * i * i), int64(i * 7919 * i)}, []uint64{3})
	}
	st := r.Stats()
	if st.EvictedTicks <= 500 {
		t.Fatalf("only %d ticks were evicted", st.EvictedTicks)
	}
	if want := st.EvictedTicks - 40 - 30 - 50 - 50; st.EvictedUndelivered != want {
		t.Errorf("%d of %d evicted ticks count as undelivered, want %d", st.EvictedUndelivered, st.EvictedTicks, want)
	}
}

// TestCommon compares runs with sets of numbers.
func TestCommon(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	runs := func() (out [][2]uint64, set map[uint64]bool) {
		set = map[uint64]bool{}
		for at := rnd.Uint64N(4); at < 60; at += 1 + rnd.Uint64N(10) {
			to := at + 1 + rnd.Uint64N(8)
			out = append(out, [2]uint64{at, to})
			for ; at < to; at++ {
				set[at] = true
			}
		}
		return out, set
	}
	for range 1000 {
		a, inA := runs()
		b, inB := runs()
		in := map[uint64]bool{}
		for _, c := range common(nil, a, b) {
			for n := c[0]; n < c[1]; n++ {
				in[n] = true
			}
		}
		for n := range uint64(100) {
			if in[n] != (inA[n] && inB[n]) {
				t.Fatalf("seed %d: %v and %v: %d is wrong in %v", seed, a, b, n, in)
			}
		}
	}
}
