package frame

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// encode is one frame of the ticks, open.
func encode(e *Encoder, ticks []Tick) []byte {
	b := e.Begin(nil, &ticks[0])
	for i := range ticks[1:] {
		b = e.Append(b, &ticks[i+1])
	}
	return b
}

func decode(b []byte) ([]Tick, error) {
	var it Iterator
	if err := it.Reset(b); err != nil {
		return nil, err
	}
	var out []Tick
	for it.Next() {
		out = append(out, clone(it.Tick()))
	}
	return out, it.Err()
}

func check(t *testing.T, b []byte, want []Tick) {
	t.Helper()
	got, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(want, got, same) {
		t.Fatalf("decoded ticks differ (-want +got):\n%s", cmp.Diff(want, got, cmpopts.EquateEmpty()))
	}
}

// same is cmp.Equal for ticks, fast enough for many of them.
func same(a, b Tick) bool {
	return a.Seq == b.Seq && a.Time == b.Time && a.Read == b.Read &&
		slices.Equal(a.Values, b.Values) && slices.Equal(a.Present, b.Present)
}

func TestRoundTrip(t *testing.T) {
	r := seeded(t)
	for _, slots := range []int{0, 1, 31, 32, 33, 63, 64, 65, 500} {
		m := newMachine(r, slots)
		var e Encoder
		for range 3 {
			var ticks []Tick
			for range 1 + r.IntN(300) {
				ticks = append(ticks, clone(m.next()))
			}
			b := encode(&e, ticks)
			check(t, b, ticks)
			check(t, e.Seal(b), ticks)
		}
	}
}

func TestExtremes(t *testing.T) {
	v := []int64{0, math.MinInt64, math.MaxInt64, -1, 1, 0, math.MaxInt64, math.MinInt64}
	var ticks []Tick
	seq := uint64(0)
	for i := range v {
		ticks = append(ticks, Tick{
			Seq: seq, Time: v[i], Read: uint64(v[len(v)-1-i]),
			Values:  append([]int64(nil), v[i], v[(i+3)%len(v)]),
			Present: []uint64{uint64(i) & 3},
		})
		seq += 1 << (9 * i)
	}
	ticks[len(ticks)-1].Seq = math.MaxUint64
	var e Encoder
	b := e.Seal(encode(&e, ticks))
	check(t, b, ticks)
	in, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	want := Info{Slots: 2, Sealed: true, RawLen: len(b), Ticks: 8, LastSeq: math.MaxUint64, LastTime: math.MinInt64}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
}

// Presence bits past the last slot are not part of a tick.
func TestPresencePastTheSlots(t *testing.T) {
	var e Encoder
	b := e.Begin(nil, &Tick{Values: make([]int64, 3), Present: []uint64{math.MaxUint64}})
	b = e.Append(b, &Tick{Seq: 1, Values: make([]int64, 3), Present: []uint64{math.MaxUint64 - 1, 5}})
	got, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Present[0] != 7 || got[1].Present[0] != 6 {
		t.Errorf("present = %b, %b, want 111, 110", got[0].Present[0], got[1].Present[0])
	}
}

// What a row costs: nothing but its changes once the schedule is known.
func TestRowCost(t *testing.T) {
	var e Encoder
	tick := Tick{Seq: 10, Time: 7e9, Read: 3, Values: make([]int64, 100), Present: []uint64{math.MaxUint64, 1<<36 - 1}}
	b := e.Begin(nil, &tick)
	b = e.Append(b, &Tick{Seq: 11, Time: 71e8, Read: 3, Values: tick.Values, Present: tick.Present})
	for _, step := range []struct {
		name string
		edit func(*Tick)
		want int
	}{
		{"steady", func(*Tick) {}, 2},
		{"one value", func(t *Tick) { t.Values[50] += 10 }, 4},
		{"last value", func(t *Tick) { t.Values[99]-- }, 3},
		{"new mask", func(t *Tick) { t.Read = 7 }, 10},
		{"known mask", func(t *Tick) { t.Read = 3 }, 3},
		{"late", func(t *Tick) { t.Time += 5e6 }, 6},
		{"on the grid again", func(*Tick) {}, 2},
		{"missed slots", func(t *Tick) { t.Seq += 3; t.Time += 3e8 }, 3},
		{"slot gone", func(t *Tick) { t.Present[1] ^= 1 << 3 }, 4},
	} {
		tick.Seq, tick.Time = e.Last().Seq+1, e.gridTime+e.period*int64(e.Last().Seq+1-e.gridSeq)
		step.edit(&tick)
		before := len(b)
		b = e.Append(b, &tick)
		if got := len(b) - before; got != step.want {
			t.Errorf("%s: %d bytes, want %d", step.name, got, step.want)
		}
	}
	if _, err := decode(e.Seal(b)); err != nil {
		t.Error(err)
	}
}

// A late key tick, and a rate that changes, cost a few rows and not the frame.
func TestGridIsLearned(t *testing.T) {
	var e Encoder
	tick := Tick{Time: 3e6}
	b := e.Begin(nil, &tick)
	var deviations int
	want := []Tick{clone(&tick)}
	add := func(at int64) {
		tick.Seq++
		tick.Time = at
		before := len(b)
		b = e.Append(b, &tick)
		want = append(want, clone(&tick))
		if len(b)-before > 1 {
			deviations++
		}
	}
	for i := range int64(50) {
		add((i + 1) * 100e6)
	}
	for i := range int64(50) {
		add(5000e6 + (i+1)*10e6)
	}
	if deviations > 6 {
		t.Errorf("%d rows carry a deviation, want at most 6", deviations)
	}
	check(t, b, want)
}

// The next frame goes on with the grid of the one before, however late its key.
func TestGridOutlivesFrames(t *testing.T) {
	var e Encoder
	var ticks []Tick
	for i := range 10 {
		ticks = append(ticks, Tick{Seq: uint64(i), Time: int64(i) * 1e6})
	}
	encode(&e, ticks[:5])
	ticks[5].Time += 300
	b := encode(&e, ticks[5:])
	check(t, b, ticks[5:])
	if got, want := len(b), headerLen+2+8+4; got != want {
		t.Errorf("frame of 5 ticks without slots has %d bytes, want %d", got, want)
	}
}

func TestManyMasks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var ticks []Tick
	for i := range 3 * MaxMasks {
		ticks = append(ticks, Tick{Seq: uint64(i), Read: uint64(r.IntN(2 * MaxMasks))})
	}
	var e Encoder
	check(t, encode(&e, ticks), ticks)
}

// Every prefix that ends with a row decodes to the rows so far, and an iterator
// that is extended never starts again.
func TestPrefixes(t *testing.T) {
	m := newMachine(seeded(t), 130)
	var e Encoder
	var ticks []Tick
	var b []byte
	var it Iterator
	for i := range 200 {
		ticks = append(ticks, clone(m.next()))
		if i == 0 {
			b = e.Begin(nil, &ticks[0])
			if err := it.Reset(b); err != nil {
				t.Fatal(err)
			}
		} else {
			b = e.Append(b, &ticks[i])
			if err := it.Extend(b); err != nil {
				t.Fatal(err)
			}
		}
		if !it.Next() {
			t.Fatalf("tick %d: Next is false: %v", i, it.Err())
		}
		if diff := cmp.Diff(ticks[i], *it.Tick()); diff != "" {
			t.Fatalf("tick %d (-want +got):\n%s", i, diff)
		}
		if it.Next() {
			t.Fatalf("tick %d: Next is true at the end", i)
		}
		if i%20 == 0 {
			check(t, b, ticks)
		}
	}
	if err := it.Extend(e.Seal(b)); err != nil {
		t.Fatal(err)
	}
	if it.Next() || it.Err() != nil {
		t.Errorf("after the seal: a tick, or %v", it.Err())
	}
	if err := it.Extend(b[:it.Pos()-1]); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a frame that shrank: %v", err)
	}
}

func TestCorrupt(t *testing.T) {
	var e Encoder
	open := encode(&e, []Tick{{Seq: 4, Values: []int64{1}, Present: []uint64{1}}, {Seq: 5, Values: []int64{2}, Present: []uint64{1}}})
	sealed := e.Seal(append([]byte(nil), open...))
	// again is a sealed frame with a byte changed and the checksum made right.
	again := func(at int, v byte) []byte {
		b := append([]byte(nil), sealed...)
		b[at] = v
		binary.LittleEndian.PutUint32(b[len(b)-4:], Checksum(b[:len(b)-4]))
		return b
	}
	flip := append([]byte(nil), sealed...)
	flip[headerLen] ^= 1
	for _, c := range []struct {
		name, want string
		b          []byte
	}{
		{"empty", "less than a header", nil},
		{"half a header", "less than a header", open[:20]},
		{"another magic", "not a frame", again(0, 'x')},
		{"another version", "not a frame of version 1", again(2, 2)},
		{"unknown flag", "unknown flags", again(3, 3)},
		{"unknown codec", "unknown codec", again(3, 0xf1)},
		{"open with a length", "open frame", append(append([]byte(nil), sealed[:3]...), append([]byte{0}, sealed[4:]...)...)},
		{"too many slots", "exceed the limit", again(6, 0xff)},
		{"more slots than bytes", "row 0", again(5, 0xff)},
		{"wrong length", "the header says", again(8, sealed[8]+1)},
		{"flipped bit", "checksum", flip},
		{"cut", "the header says", sealed[:len(sealed)-1]},
		{"no tick", "0 ticks", again(len(sealed)-8, 0)},
		{"more ticks than numbers", "3 ticks", again(len(sealed)-8, 3)},
		{"other last seq", "the trailer says", again(len(sealed)-24, 7)},
		{"head", "row 1", again(len(open)-3, 0x40)},
		{"row without end", "row 1", open[:len(open)-1]},
		{"skip past the slots", "row 1", append(append([]byte(nil), open[:len(open)-2]...), 2)},
		{"skip past the end", "row 1", append(encode(&Encoder{}, []Tick{{Values: make([]int64, 9)}}), 0, 5, 2, 5, 2)},
	} {
		_, err := decode(c.b)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestAllocations(t *testing.T) {
	m := newMachine(rand.New(rand.NewPCG(1, 1)), 1500)
	var e Encoder
	buf := make([]byte, 0, 1<<20)
	buf = e.Begin(buf, m.next())
	n := testing.AllocsPerRun(100, func() { buf = e.Append(buf, m.next()) })
	if n != 0 {
		t.Errorf("Append allocates %v times", n)
	}
	buf = e.Seal(buf)
	var it Iterator
	it.Reset(buf)
	it.Next()
	if n := testing.AllocsPerRun(50, func() { it.Next() }); n != 0 {
		t.Errorf("Next allocates %v times", n)
	}
	if n := testing.AllocsPerRun(10, func() { it.Reset(buf); it.Next() }); n != 0 {
		t.Errorf("Reset allocates %v times", n)
	}
	n = testing.AllocsPerRun(10, func() { buf = e.Begin(buf[:0], m.next()) })
	if n != 0 {
		t.Errorf("Begin allocates %v times", n)
	}
}

// A frame that claims many slots gets memory only for what its bytes can hold.
func TestHostileSize(t *testing.T) {
	var e Encoder
	b := e.Begin(nil, &Tick{Values: make([]int64, 8), Present: []uint64{0}})
	binary.LittleEndian.PutUint32(b[offSlots:], MaxSlots)
	n := testing.AllocsPerRun(1, func() {
		var it Iterator
		if it.Reset(b) != nil || it.Next() || cap(it.tick.Values) != 0 {
			t.Error("memory was taken for slots that are not there")
		}
	})
	if n > 3 {
		t.Errorf("%v allocations", n)
	}
}
