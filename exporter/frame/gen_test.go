package frame

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// seeded returns a random source whose seed is printed, and set by TEST_SEED.
func seeded(t testing.TB) *rand.Rand {
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

// machine makes ticks as a machine does: most slots rest, a few counters move by
// small steps, some gauges wander, now and then a slot goes or comes back, a tick
// is late or missed.
type machine struct {
	r      *rand.Rand
	tick   Tick
	period int64
	rate   []float64 // chance that a slot moves in a tick
	calm   bool      // no late and no missed ticks, no slot comes or goes
}

func newMachine(r *rand.Rand, slots int) *machine {
	m := &machine{r: r, period: 100e6, rate: make([]float64, slots)}
	m.tick = Tick{Time: 12345678, Values: make([]int64, slots), Present: make([]uint64, (slots+63)/64)}
	for i := range m.rate {
		switch {
		case i%17 == 0:
			m.rate[i] = 0.8 // the clock tick, CPU time, busy counters
		case i%5 == 0:
			m.rate[i] = 0.05
		}
		m.tick.Values[i] = int64(r.ExpFloat64() * 1e6)
		m.tick.Present[i>>6] |= 1 << (i & 63)
	}
	return m
}

// next moves on to the next tick, which is valid until the one after it.
func (m *machine) next() *Tick {
	t := &m.tick
	gap := uint64(1)
	if !m.calm && m.r.IntN(200) == 0 {
		gap += m.r.Uint64N(50)
	}
	slot := t.Time - t.Time%m.period + m.period*int64(gap)
	t.Seq += gap
	t.Time = slot
	if !m.calm && m.r.IntN(30) == 0 {
		t.Time += m.r.Int64N(m.period)
	}
	t.Read = 0xfff
	if t.Seq%10 == 0 {
		t.Read = 0xffff
	}
	for i := range t.Values {
		if m.rate[i] > 0 && m.r.Float64() < m.rate[i] {
			t.Values[i] += int64(m.r.ExpFloat64() * 20)
		}
	}
	if !m.calm && m.r.IntN(50) == 0 && len(t.Values) > 0 {
		i := m.r.IntN(len(t.Values))
		t.Present[i>>6] ^= 1 << (i & 63)
	}
	return t
}

func clone(t *Tick) Tick {
	c := *t
	c.Values = append([]int64(nil), t.Values...)
	c.Present = append([]uint64(nil), t.Present...)
	return c
}
