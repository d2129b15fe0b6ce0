package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
)

// sealedFrame is a frame of n ticks of a machine.
func sealedFrame(m *machine, n int) []byte {
	var e Encoder
	b := e.Begin(nil, m.next())
	for range n - 1 {
		b = e.Append(b, m.next())
	}
	return e.Seal(b)
}

// What is compressed expands to the very same bytes.
func TestCompressRoundTrip(t *testing.T) {
	r := seeded(t)
	var c Compressor
	smaller := 0
	for range 50 {
		raw := sealedFrame(newMachine(r, r.IntN(400)), 1+r.IntN(400))
		z, err := c.Compress([]byte("x"), raw)
		if err != nil {
			t.Fatal(err)
		}
		z = z[1:]
		in, err := Parse(z)
		if err != nil {
			t.Fatal(err)
		}
		if in.Codec == Columns {
			smaller++
			if len(z) >= len(raw) {
				t.Errorf("%d bytes became %d", len(raw), len(z))
			}
			var it Iterator
			if err := it.Reset(z); !errors.Is(err, ErrCompressed) {
				t.Errorf("Reset on a compressed frame: %v", err)
			}
			if _, err := c.Compress(nil, z); err == nil {
				t.Error("a compressed frame was compressed")
			}
		}
		back, err := c.Expand([]byte("y"), z)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back[1:], raw) {
			t.Fatalf("expanded to other bytes: %d, want %d", len(back)-1, len(raw))
		}
	}
	if smaller < 40 {
		t.Errorf("%d of 50 frames became smaller", smaller)
	}
	if _, err := c.Compress(nil, (&Encoder{}).Begin(nil, &Tick{})); err == nil {
		t.Error("an open frame was compressed")
	}
}

// Differences that look random become smaller too.
func TestCompressNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	tick := Tick{Values: make([]int64, 1500), Present: make([]uint64, 24)}
	var e Encoder
	raw := e.Begin(nil, &tick)
	for range 200 {
		tick.Seq++
		for range 75 {
			tick.Values[r.IntN(1500)] += r.Int64N(1000)
		}
		raw = e.Append(raw, &tick)
	}
	raw = e.Seal(raw)
	var c Compressor
	z, err := c.Compress(nil, raw)
	if err != nil || len(z) > len(raw)*8/10 {
		t.Errorf("%d bytes became %d: %v", len(raw), len(z), err)
	}
	back, err := c.Expand(nil, z)
	if err != nil || !bytes.Equal(back, raw) {
		t.Errorf("expanded to other bytes: %v", err)
	}
}

func TestExpandAllocations(t *testing.T) {
	m := newMachine(rand.New(rand.NewPCG(1, 1)), 500)
	var c Compressor
	z, err := c.Compress(nil, sealedFrame(m, 300))
	if err != nil {
		t.Fatal(err)
	}
	var buf []byte
	if n := testing.AllocsPerRun(10, func() { buf, err = c.Expand(buf[:0], z) }); n != 0 || err != nil {
		t.Errorf("Expand allocates %v times: %v", n, err)
	}
}

// A frame that would take long to expand is not compressed, and one that claims to
// is refused at once.
func TestExpandWorkIsBounded(t *testing.T) {
	const slots, ticks = 1 << 14, 1<<14 + 1
	var e Encoder
	tick := Tick{Values: make([]int64, slots), Present: make([]uint64, slots/64)}
	for i := range tick.Values {
		tick.Values[i] = 1
	}
	raw := e.Begin(nil, &tick)
	for range ticks - 1 {
		raw = binary.AppendUvarint(append(raw, 0), slots)
	}
	e.ticks, e.last.Seq = ticks, ticks-1
	raw = e.Seal(raw)
	var c Compressor
	z, err := c.Compress(nil, raw)
	if err != nil || !bytes.Equal(z, raw) {
		t.Fatalf("a slow frame was compressed: %v", err)
	}
}

// FuzzExpand feeds arbitrary bytes as a compressed frame. What expands is a raw
// frame of the length it says.
func FuzzExpand(f *testing.F) {
	var c Compressor
	for _, slots := range []int{3, 70, 300} {
		m := newMachine(rand.New(rand.NewPCG(7, uint64(slots))), slots)
		z, err := c.Compress(nil, sealedFrame(m, 100))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(z)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<14 {
			return
		}
		mend(b)
		var c Compressor
		raw, err := c.Expand(nil, b)
		if err != nil {
			return
		}
		in, err := Parse(raw)
		if err != nil || in.Codec != Raw || in.Sealed && in.RawLen != len(raw) {
			t.Fatalf("expanded to %+v: %v", in, err)
		}
		decode(raw)
	})
}

// FuzzColumns feeds arbitrary streams, as they are before deflate.
func FuzzColumns(f *testing.F) {
	var c columns
	raw := sealedFrame(newMachine(rand.New(rand.NewPCG(7, 7)), 20), 30)
	if !c.turn(raw[headerLen:len(raw)-trailerLen], 20) {
		f.Fatal("turn")
	}
	f.Add(uint16(20), uint16(30), c.heads, c.counts, c.gaps, c.deltas)
	f.Fuzz(func(t *testing.T, slots, ticks uint16, heads, counts, gaps, deltas []byte) {
		c := columns{heads: heads, counts: counts, gaps: gaps, deltas: deltas}
		in := Info{Slots: int(slots), Ticks: uint32(ticks), RawLen: 1 << 16}
		rows, ok := c.appendRows(nil, &in)
		if !ok {
			return
		}
		var again columns
		if !again.turn(rows, int(slots)) {
			t.Fatal("rows that were made cannot be read")
		}
		if back, ok := again.appendRows(nil, &in); !ok || !bytes.Equal(back, rows) {
			t.Fatal("rows differ after turning twice")
		}
	})
}

func TestExpandCorrupt(t *testing.T) {
	m := newMachine(rand.New(rand.NewPCG(1, 1)), 50)
	var c Compressor
	z, err := c.Compress(nil, sealedFrame(m, 100))
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(b []byte) []byte{
		"raw length":    func(b []byte) []byte { b[offRaw]++; return b },
		"slots":         func(b []byte) []byte { b[offSlots]++; return b },
		"stream length": func(b []byte) []byte { b[headerLen]++; return b },
		"huge stream":   func(b []byte) []byte { copy(b[headerLen:], []byte{0xff, 0xff, 0xff, 0xff, 0x7f}); return b },
		"deflate":       func(b []byte) []byte { b[headerLen+30] ^= 0xff; return b },
		"trailing bytes": func(b []byte) []byte {
			return append(b[:len(b)-trailerLen:len(b)-trailerLen], append([]byte{0}, b[len(b)-trailerLen:]...)...)
		},
		"ticks": func(b []byte) []byte { b[len(b)-8]--; return b },
	} {
		b := edit(bytes.Clone(z))
		binary.LittleEndian.PutUint32(b[len(b)-4:], Checksum(b[:len(b)-4]))
		if _, err := c.Expand(nil, b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

// Streams with something left over are corrupt: rows have one form only.
func TestColumnsLeftOver(t *testing.T) {
	raw := sealedFrame(newMachine(rand.New(rand.NewPCG(7, 7)), 20), 30)
	for name, edit := range map[string]func(c *columns){
		"nothing": func(*columns) {},
		"heads":   func(c *columns) { c.heads = append(c.heads, 0) },
		"counts":  func(c *columns) { c.counts = append(c.counts, 0) },
		"gaps":    func(c *columns) { c.gaps = append(c.gaps, 0) },
		"deltas":  func(c *columns) { c.deltas = append(c.deltas, 0) },
	} {
		var c columns
		if !c.turn(raw[headerLen:len(raw)-trailerLen], 20) {
			t.Fatal("turn")
		}
		edit(&c)
		if _, ok := c.appendRows(nil, &Info{Slots: 20, Ticks: 30, RawLen: len(raw)}); ok != (name == "nothing") {
			t.Errorf("%s left over: %v", name, ok)
		}
	}
}

func BenchmarkCompress(b *testing.B) {
	m := newMachine(rand.New(rand.NewPCG(1, 1)), 1500)
	raw := sealedFrame(m, 350)
	var c Compressor
	z, err := c.Compress(nil, raw)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("compress", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			z, _ = c.Compress(z[:0], raw)
		}
		b.ReportMetric(float64(len(z))/float64(len(raw)), "ratio")
	})
	b.Run("expand", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf, _ = c.Expand(buf[:0], z)
		}
		b.SetBytes(int64(len(raw)))
	})
}
