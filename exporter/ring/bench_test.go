package ring

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ticktier/ticktier/exporter/frame"
)

func TestAllocations(t *testing.T) {
	r := open(t, 256<<10)
	r.Delivered(0)
	src := newSource(rand.New(rand.NewPCG(1, 1)), 500, 40)
	for r.Stats().EvictedFrames < 100 {
		src.feed(r, 1)
	}
	if n := testing.AllocsPerRun(1000, func() { src.feed(r, 1) }); n != 0 {
		t.Errorf("Append allocates %v times", n)
	}
	rd := r.Reader()
	for rd.Next() {
	}
	if n := testing.AllocsPerRun(1000, func() { src.feed(r, 1); rd.Next() }); n != 0 {
		t.Errorf("Next allocates %v times", n)
	}
	rd.Seek(0)
	if n := testing.AllocsPerRun(1000, func() { rd.Next() }); n != 0 {
		t.Errorf("Next over sealed frames allocates %v times", n)
	}
	var p packer
	for before := r.Stats().TotalFrames; r.Stats().TotalFrames < before+20; p.pack(r) {
		src.feed(r, 1)
	}
	rd.Seek(0)
	for range 500 {
		rd.Next()
	}
	if n := testing.AllocsPerRun(1000, func() { rd.Next() }); n != 0 {
		t.Errorf("Next over compressed frames allocates %v times", n)
	}
	var tick frame.Tick
	if n := testing.AllocsPerRun(100, func() { r.Latest(&tick); r.Stats() }); n != 0 {
		t.Errorf("Latest and Stats allocate %v times", n)
	}
}

// BenchmarkAppend prints how many bytes and how much time a tick takes in a full
// ring.
func BenchmarkAppend(b *testing.B) {
	for _, slots := range []int{500, 1500} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			r := open(b, 4<<20)
			src := newSource(rand.New(rand.NewPCG(1, 1)), slots, slots/20)
			for r.Stats().EvictedFrames < 4 {
				src.feed(r, 1)
			}
			ticks := make([]frame.Tick, 64)
			for i := range ticks {
				ticks[i] = clone(src.next(1))
			}
			seq := src.tick.Seq
			b.ReportAllocs()
			for b.Loop() {
				t := &ticks[seq%64]
				seq++
				r.Append(seq, int64(seq)*1e8, 1, t.Values, t.Present)
			}
			s := r.Stats()
			b.ReportMetric(float64(s.Bytes)/float64(s.Ticks), "bytes/tick")
		})
	}
}

func BenchmarkFollow(b *testing.B) {
	r := open(b, 4<<20)
	src := newSource(rand.New(rand.NewPCG(1, 1)), 1500, 75)
	for range 1000 {
		src.feed(r, 1)
	}
	rd := r.Reader()
	b.ReportAllocs()
	for b.Loop() {
		if !rd.Next() {
			rd.Seek(0)
		}
	}
}
