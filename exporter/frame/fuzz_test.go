package frame

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzIterator feeds arbitrary bytes as a frame. What decodes is encoded again and
// must decode to the same ticks.
func FuzzIterator(f *testing.F) {
	for _, slots := range []int{0, 3, 70} {
		m := newMachine(rand.New(rand.NewPCG(7, uint64(slots))), slots)
		var e Encoder
		var ticks []Tick
		for range 20 {
			ticks = append(ticks, clone(m.next()))
		}
		b := encode(&e, ticks)
		f.Add(b)
		f.Add(e.Seal(append([]byte(nil), b...)))
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		var it Iterator
		mend(b)
		if it.Reset(b) != nil {
			return
		}
		var ticks []Tick
		for it.Next() && len(ticks) < 1000 {
			if tk := it.Tick(); len(tk.Values) > 8*len(b) || len(tk.Present) != (len(tk.Values)+63)/64 {
				t.Fatalf("%d values from %d bytes", len(tk.Values), len(b))
			}
			if len(it.Tick().Values) < 1000 {
				ticks = append(ticks, clone(it.Tick()))
			}
		}
		if len(ticks) == 0 {
			return
		}
		var e Encoder
		got, err := decode(e.Seal(encode(&e, ticks)))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(ticks, got, same) {
			t.Fatal(cmp.Diff(ticks, got, cmpopts.EquateEmpty()))
		}
	})
}

// mend makes the checksum of a sealed frame right, so that the fuzzer reaches
// what is behind it.
func mend(b []byte) {
	if len(b) >= headerLen+trailerLen && b[offFlags]&flagSealed != 0 {
		binary.LittleEndian.PutUint32(b[len(b)-4:], Checksum(b[:len(b)-4]))
	}
}

// FuzzRoundTrip makes ticks from the fuzzer's bytes: any values, gaps and masks.
func FuzzRoundTrip(f *testing.F) {
	f.Add(uint8(3), []byte("some bytes that stand for ticks, and then some more of them"))
	f.Add(uint8(70), make([]byte, 300))
	f.Fuzz(func(t *testing.T, slots uint8, data []byte) {
		word := func() (v uint64) {
			var w [8]byte
			// The first byte says how many follow: small numbers are likely too.
			if len(data) > 0 {
				n := min(int(data[0]&7)+1, len(data))
				copy(w[:], data[:n])
				data = data[n:]
			}
			return binary.LittleEndian.Uint64(w[:])
		}
		tick := Tick{Values: make([]int64, slots), Present: make([]uint64, (int(slots)+63)/64)}
		var ticks []Tick
		for len(data) > 0 && len(ticks) < 100 {
			gap := word() >> 8
			if tick.Seq+gap+1 < tick.Seq {
				break
			}
			tick.Seq += gap + 1
			tick.Time = int64(word())
			tick.Read = word()
			for range word() & 7 {
				if slots > 0 {
					i := word() % uint64(slots)
					tick.Values[i] = int64(word())
					tick.Present[i>>6] ^= 1 << (i & 63)
				}
			}
			ticks = append(ticks, clone(&tick))
		}
		if len(ticks) == 0 {
			return
		}
		var e Encoder
		b := encode(&e, ticks)
		for _, b := range [][]byte{b, e.Seal(append([]byte(nil), b...))} {
			got, err := decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(ticks, got, same) {
				t.Fatal(cmp.Diff(ticks, got, cmpopts.EquateEmpty()))
			}
		}
	})
}
