package ring

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ticktier/ticktier/exporter/frame"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seedRand returns a random source whose seed is printed, and set by TEST_SEED.
func seedRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// source makes ticks: slots of which a share moves each time.
type source struct {
	r    *rand.Rand
	tick frame.Tick
	move int // slots that move in a tick
}

func newSource(r *rand.Rand, slots, move int) *source {
	s := &source{r: r, move: move}
	s.tick.Read = 1
	s.grow(slots)
	return s
}

func (s *source) grow(slots int) {
	for len(s.tick.Values) < slots {
		s.tick.Values = append(s.tick.Values, int64(len(s.tick.Values))*1000)
	}
	for len(s.tick.Present)*64 < slots {
		s.tick.Present = append(s.tick.Present, 0)
	}
	for i := range s.tick.Values {
		s.tick.Present[i>>6] |= 1 << (i & 63)
	}
}

// next is the tick gap slots after the last.
func (s *source) next(gap uint64) *frame.Tick {
	t := &s.tick
	t.Seq += gap
	t.Time = int64(t.Seq) * int64(100*time.Millisecond)
	for range s.move {
		i := s.r.IntN(len(t.Values))
		t.Values[i] += s.r.Int64N(1000)
	}
	return t
}

func (s *source) feed(r *Ring, gap uint64) {
	t := s.next(gap)
	r.Append(t.Seq, t.Time, t.Read, t.Values, t.Present)
}

func clone(t *frame.Tick) frame.Tick {
	c := *t
	c.Values = append([]int64(nil), t.Values...)
	c.Present = append([]uint64(nil), t.Present...)
	return c
}
