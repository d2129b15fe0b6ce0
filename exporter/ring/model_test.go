package ring

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/exporter/frame"
)

// model is what a ring must behave as: all ticks ever taken, in a slice, of which
// the first gone ones were evicted.
type model struct {
	t     *testing.T
	r     *rand.Rand
	ring  *Ring
	src   *source
	holes bool // slots may be missed

	ticks     []frame.Tick
	gone      int
	delivered uint64
	ahead     [2]uint64
	keeps     bool   // evicted frames are kept
	lost      uint64 // evicted from delivered on

	readers []*modelReader
	packer  packer
}

type modelReader struct {
	*Reader
	at    int  // index of the tick that comes next
	exact bool // the next loss is counted exactly
}

func newModel(t *testing.T, r *rand.Rand) *model {
	ring, err := New(MinBytes + r.IntN(MinBytes))
	if err != nil {
		t.Fatal(err)
	}
	m := &model{t: t, r: r, ring: ring, src: newSource(r, 1+r.IntN(300), 1+r.IntN(60)), holes: r.IntN(2) == 0}
	m.src.tick.Seq = r.Uint64N(1000)
	ring.Delivered(0)
	ring.Evicted = m.evicted
	for range 4 {
		m.readers = append(m.readers, &modelReader{Reader: ring.Reader(), exact: true})
	}
	return m
}

// evicted is the ring's hook: the frames that leave are exactly the oldest ticks.
func (m *model) evicted(e Eviction) (kept bool) {
	in, err := frame.Parse(e.Frame)
	if err != nil {
		m.t.Fatal(err)
	}
	left := decodeFrame(m.t, e.Frame)
	if len(left) != int(in.Ticks) {
		m.t.Fatalf("an evicted frame has %d ticks, its trailer says %d", len(left), in.Ticks)
	}
	exact := uint64(0)
	for i := range left {
		if !same(&left[i], &m.ticks[m.gone]) {
			m.t.Fatalf("evicted (-want +got):\n%s", cmp.Diff(m.ticks[m.gone], left[i]))
		}
		if seq := left[i].Seq; seq >= m.delivered && (seq < m.ahead[0] || seq >= m.ahead[1]) {
			exact++
		}
		m.gone++
	}
	if !m.keeps {
		m.lost += exact
	}
	if e.Undelivered != exact && (!m.holes || e.Undelivered < exact) {
		m.t.Fatalf("eviction says %d undelivered ticks, want %d", e.Undelivered, exact)
	}
	return m.keeps
}

func decodeFrame(t testing.TB, b []byte) []frame.Tick {
	var c frame.Compressor
	b, err := c.Expand(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	var it frame.Iterator
	if err := it.Reset(b); err != nil {
		t.Fatal(err)
	}
	var out []frame.Tick
	for it.Next() {
		out = append(out, clone(it.Tick()))
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return out
}

func same(a, b *frame.Tick) bool {
	return a.Seq == b.Seq && a.Time == b.Time && a.Read == b.Read &&
		slices.Equal(a.Values, b.Values) && slices.Equal(a.Present, b.Present)
}

// The ring does what the model does, for random operations.
func TestModel(t *testing.T) {
	r := seedRand(t)
	gone, packed := 0, uint64(0)
	for range 10 {
		m := newModel(t, r)
		for range 3000 {
			m.step()
		}
		for _, rd := range m.readers {
			for m.read(rd) {
			}
		}
		gone += m.gone
		packed += m.ring.Stats().PackedFrames
	}
	if gone == 0 || packed == 0 {
		t.Errorf("%d ticks were evicted, %d frames packed", gone, packed)
	}
}

func (m *model) step() {
	rd := m.readers[m.r.IntN(len(m.readers))]
	switch m.r.IntN(20) {
	case 0:
		for range m.r.IntN(200) { // a reader catches up, and the others do not
			m.read(rd)
		}
	case 1, 2, 3, 4:
		m.read(rd)
	case 5:
		if m.r.IntN(10) == 0 {
			m.seek(rd)
		}
	case 6:
		if m.r.IntN(20) == 0 && len(m.ticks) > 0 {
			seq := m.ticks[m.r.IntN(len(m.ticks))].Seq
			m.delivered = max(m.delivered, seq)
			from := m.ticks[m.r.IntN(len(m.ticks))].Seq
			m.ahead = [2]uint64{from, from + m.r.Uint64N(1000)}
			m.ring.Delivered(seq, m.ahead)
			m.keeps = m.r.IntN(3) == 0
		}
	case 7:
		if m.r.IntN(30) == 0 {
			m.src.grow(len(m.src.tick.Values) + 1 + m.r.IntN(20))
		}
	case 8:
		m.check()
	case 9:
		m.packer.pack(m.ring)
	default:
		gap := uint64(1)
		if m.holes && m.r.IntN(30) == 0 {
			gap += m.r.Uint64N(20)
		}
		m.src.next(gap)
		m.ticks = append(m.ticks, clone(&m.src.tick))
		t := &m.src.tick
		m.ring.Append(t.Seq, t.Time, t.Read, t.Values, t.Present)
	}
}

// read moves a reader on by one tick and compares.
func (m *model) read(rd *modelReader) bool {
	ok := rd.Next()
	if rd.Err() != nil {
		m.t.Fatal(rd.Err())
	}
	want := max(rd.at, m.gone)
	if ok != (want < len(m.ticks)) {
		m.t.Fatalf("Next is %v at tick %d of %d", ok, want, len(m.ticks))
	}
	if !ok {
		return false
	}
	// A copied frame stays readable after its eviction.
	for want > rd.at && m.ticks[want].Seq != rd.Tick().Seq {
		want--
	}
	if !same(rd.Tick(), &m.ticks[want]) {
		m.t.Fatalf("tick (-want +got):\n%s", cmp.Diff(m.ticks[want], *rd.Tick()))
	}
	m.checkLost(rd, want)
	rd.at, rd.exact = want+1, true
	return true
}

func (m *model) checkLost(rd *modelReader, want int) {
	l, missed := rd.lost, uint64(want-rd.at)
	if l.Ticks != missed && (rd.exact || l.Ticks < missed) {
		m.t.Fatalf("lost %+v, want %d ticks", l, missed)
	}
	if missed == 0 {
		return
	}
	first, last := &m.ticks[rd.at], &m.ticks[want-1]
	if l.FirstSeq > first.Seq || l.LastSeq < last.Seq || l.LastSeq >= m.ticks[want].Seq ||
		l.FirstTime > first.Time || l.LastTime < last.Time {
		m.t.Fatalf("lost %+v, want %d to %d, %d ns to %d ns", l, first.Seq, last.Seq, first.Time, last.Time)
	}
}

func (m *model) seek(rd *modelReader) {
	if len(m.ticks) == 0 {
		return
	}
	seq := m.ticks[m.r.IntN(len(m.ticks))].Seq
	switch m.r.IntN(6) {
	case 0:
		seq = m.ticks[len(m.ticks)-1].Seq + 1
	case 1:
		seq = 0
	}
	rd.Seek(seq)
	rd.at, _ = slices.BinarySearchFunc(m.ticks, seq, func(t frame.Tick, seq uint64) int {
		return int(int64(t.Seq - seq))
	})
	rd.exact = seq == 0 || rd.at == len(m.ticks)
}

// check compares what the ring says of itself.
func (m *model) check() {
	s := m.ring.Stats()
	var latest frame.Tick
	if ok := m.ring.Latest(&latest); ok != (len(m.ticks) > 0) {
		m.t.Fatalf("Latest is %v with %d ticks", ok, len(m.ticks))
	}
	if len(m.ticks) == 0 {
		return
	}
	newest, oldest := &m.ticks[len(m.ticks)-1], &m.ticks[m.gone]
	if !same(&latest, newest) {
		m.t.Fatalf("latest (-want +got):\n%s", cmp.Diff(*newest, latest))
	}
	want := Stats{
		Bytes: s.Bytes, Capacity: s.Capacity, Frames: s.Frames, TotalFrames: s.TotalFrames, PackedFrames: s.PackedFrames, EvictedFrames: s.EvictedFrames,
		Ticks: uint64(len(m.ticks) - m.gone), Slots: len(newest.Values),
		FirstSeq: oldest.Seq, FirstTime: oldest.Time, LastSeq: newest.Seq, LastTime: newest.Time,
		TotalTicks: uint64(len(m.ticks)), EvictedTicks: uint64(m.gone),
		EvictedUndelivered: s.EvictedUndelivered,
	}
	if diff := cmp.Diff(want, s); diff != "" {
		m.t.Fatalf("stats (-want +got):\n%s", diff)
	}
	if s.Bytes > s.Capacity || s.Frames != int(s.TotalFrames-s.EvictedFrames)+1 {
		m.t.Fatalf("stats %+v", s)
	}
	if s.EvictedUndelivered != m.lost && (!m.holes || s.EvictedUndelivered < m.lost) {
		m.t.Fatalf("%d undelivered, want %d", s.EvictedUndelivered, m.lost)
	}
	m.checkLosses(s.EvictedUndelivered)
}

func (m *model) checkLosses(sum uint64) {
	ls := m.ring.Losses(nil)
	if len(ls) > maxLosses {
		m.t.Fatalf("%d losses", len(ls))
	}
	next := uint64(0)
	for _, l := range ls {
		sum -= l.Ticks
		if l.FirstSeq < next || l.LastSeq < l.FirstSeq || l.Ticks == 0 || l.LastTime < l.FirstTime {
			m.t.Fatalf("losses %+v", ls)
		}
		next = l.LastSeq + 1
	}
	if sum != 0 {
		m.t.Fatalf("the losses' ticks differ from EvictedUndelivered by %d", sum)
	}
}
