package frame

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkAppend prints what a tick costs in time and bytes, sealed in frames of
// 64 KiB, on a machine of which about one slot in twelve moves in a tick.
func BenchmarkAppend(b *testing.B) {
	for _, slots := range []int{500, 1500} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			m := newMachine(rand.New(rand.NewPCG(1, 1)), slots)
			m.calm = true
			ticks := make([]Tick, 256)
			for i := range ticks {
				ticks[i] = clone(m.next())
			}
			var e Encoder
			buf := make([]byte, 0, 80<<10)
			seq, total := uint64(0), 0
			b.ReportAllocs()
			for b.Loop() {
				t := &ticks[seq%256]
				t.Seq, t.Time = seq, int64(seq)*m.period
				seq++
				if len(buf) == 0 {
					buf = e.Begin(buf, t)
				} else {
					buf = e.Append(buf, t)
				}
				if len(buf) >= 64<<10 {
					buf = e.Seal(buf)
					total += len(buf)
					buf = buf[:0]
				}
			}
			b.ReportMetric(float64(total+len(buf))/float64(seq), "bytes/tick")
		})
	}
}

func BenchmarkIterate(b *testing.B) {
	for _, slots := range []int{500, 1500} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			m := newMachine(rand.New(rand.NewPCG(1, 1)), slots)
			var e Encoder
			buf := e.Begin(nil, m.next())
			for len(buf) < 64<<10 {
				buf = e.Append(buf, m.next())
			}
			var it Iterator
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if !it.Next() {
					if err := it.Reset(buf); err != nil {
						b.Fatal(err)
					}
				}
				n++
			}
		})
	}
}
