package spool

import (
	"bytes"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/frame"
	"github.com/ticktier/ticktier/exporter/ring"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("SPOOL_TEST_VICTIM"); dir != "" {
		victim(dir)
	}
	goleak.VerifyTestMain(m)
}

// seed is of the run's random numbers; TEST_SEED replays one.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := rand.Uint64()
	if v := os.Getenv("TEST_SEED"); v != "" {
		var err error
		if s, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("TEST_SEED=%d", s)
	return s
}

const (
	hertz  = int64(100)
	period = 1_000_000_000 / hertz
	// floor is the time before which no clock is set.
	floor = int64(1_700_000_000_000)
)

// world is a run of the exporter as far as the spool sees it: a real ring, a schema
// that may grow, a clock that may be set.
type world struct {
	t      testing.TB
	log    *bytes.Buffer
	schema *collectors.Schema
	ring   *ring.Ring
	sp     *Spool
	base   int64 // wall ms of monotonic 0
	now    time.Time
	seq    uint64
	values []int64
	offset []offset
	sealed int // frames given by Sealed
}

// begin opens dir for a new run.
func begin(t testing.TB, dir, id string, change func(*Config), receivers ...string) *world {
	t.Helper()
	w, err := tryBegin(t, dir, id, change, receivers...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func tryBegin(t testing.TB, dir, id string, change func(*Config), receivers ...string) (*world, error) {
	r, err := ring.New(ring.MinBytes)
	if err != nil {
		return nil, err
	}
	r.Delivered(0)
	w := &world{t: t, log: &bytes.Buffer{}, schema: &collectors.Schema{}, ring: r,
		base: floor + 1_000_000, now: time.Unix(1_700_000_000, 0)}
	w.offset = []offset{{0, w.base * 1e6}}
	w.grow(100)
	c := Config{Dir: dir, MaxBytes: 4 << 20, Session: id, Receivers: receivers, Schema: w.schema,
		Start: func(s *collectors.Series) (int64, bool) { return 7, s.Source == 0 },
		Clock: func() iter.Seq2[int64, int64] {
			return func(yield func(int64, int64) bool) {
				for _, o := range w.offset {
					if !yield(o.mono, o.offset) {
						return
					}
				}
			}
		},
		Now:       func() int64 { return wall(w.offset, int64(w.seq)*period) },
		NotBefore: floor,
		Sealed: func(seq uint64, buf []byte) (Frame, bool) {
			e, ok := r.Sealed(seq, buf)
			w.sealed++
			return evicted(e), ok
		},
		Spilling: r.Spill,
		Logger:   slog.New(slog.NewTextHandler(w.log, nil)),
	}
	if change != nil {
		change(&c)
	}
	if w.sp, err = Open(c); err != nil {
		return nil, err
	}
	r.Evicted = func(e ring.Eviction) bool {
		if e.Undelivered > 0 {
			w.sp.Offer(evicted(e))
		}
		return true
	}
	return w, nil
}

func evicted(e ring.Eviction) Frame {
	return Frame{Bytes: e.Frame, Before: e.Before, Ticks: e.Span.Ticks, FirstSeq: e.Span.FirstSeq, LastSeq: e.Span.LastSeq,
		FirstTime: e.Span.FirstTime, LastTime: e.Span.LastTime}
}

var metricA = &collectors.Metric{Name: "a_total", Help: "Help of a.", Unit: "seconds", Type: collectors.Counter, Div: 100}
var metricB = &collectors.Metric{Name: "b", Type: collectors.Gauge, Kind: collectors.Float}

// grow adds n series.
func (w *world) grow(n int) {
	for range n {
		i := w.schema.Len()
		m := metricA
		if i%5 == 4 {
			m = metricB
		}
		w.schema.Add(uint8(i%3), m, collectors.Label{Name: "i", Value: strconv.Itoa(i)})
	}
}

// valueOf is the value of a slot in a tick: what a reader gets is held against it.
func valueOf(seq uint64, slot int) int64 {
	h := (seq+1)*0x9e3779b97f4a7c15 ^ uint64(slot)*0xbf58476d1ce4e5b9
	return int64(seq)*int64(slot+1) + int64(h>>50)
}

// sample appends n ticks; skip slots are missed before each with a chance of 1 in 50.
func (w *world) sample(n int) {
	for range n {
		if w.seq%53 == 52 {
			w.seq += 3
		}
		w.values = w.values[:0]
		for slot := range w.schema.Len() {
			w.values = append(w.values, valueOf(w.seq, slot))
		}
		present := make([]uint64, (len(w.values)+63)/64)
		for i := range present {
			present[i] = ^uint64(0)
		}
		present[len(present)-1] &= 1<<(len(w.values)&63) - 1
		w.ring.Append(w.seq, int64(w.seq)*period, 7, w.values, present)
		w.seq++
	}
}

// ticksTo is how many ticks have numbers below seq.
func ticksTo(seq uint64) int {
	n := 0
	for s := uint64(0); s < seq; {
		if s%53 == 52 {
			s += 3
		}
		if s < seq {
			n++
		}
		s++
	}
	return n
}

// cycle lets a second pass for the writer.
func (w *world) cycle() {
	w.now = w.now.Add(time.Second)
	w.sp.cycle(w.now)
}

// stop stops as the exporter does.
func (w *world) stop() {
	w.t.Helper()
	w.ring.Seal()
	if err := w.sp.Close(); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// kill ends the run without a word.
func (w *world) kill() {
	if w.sp.w.f != nil {
		_ = w.sp.w.f.Close()
	}
	if w.sp.lock != nil {
		_ = w.sp.lock.Close()
	}
}

// checkTick compares a tick with what was sampled.
func checkTick(t *frame.Tick) error {
	if t.Time != int64(t.Seq)*period {
		return fmt.Errorf("tick %d is at %d", t.Seq, t.Time)
	}
	for slot, v := range t.Values {
		if v != valueOf(t.Seq, slot) || !t.Has(slot) {
			return fmt.Errorf("tick %d, slot %d: %d, %v", t.Seq, slot, v, t.Has(slot))
		}
	}
	return nil
}

// got is what a reader gave of one session.
type got struct {
	session string
	seqs    []uint64
	lost    uint64
}

// readEarlier reads all of what former sessions left.
func readEarlier(t testing.TB, e *Earlier, passed bool) []got {
	t.Helper()
	var out []got
	for e.Next() {
		tick := e.Tick()
		if len(out) == 0 || out[len(out)-1].session != e.Session() {
			out = append(out, got{session: e.Session()})
		}
		g := &out[len(out)-1]
		if n := len(g.seqs); n > 0 && tick.Seq <= g.seqs[n-1] {
			t.Fatalf("%s: tick %d after tick %d", g.session, tick.Seq, g.seqs[n-1])
		}
		if err := checkTick(tick); err != nil {
			t.Fatalf("%s: %v", g.session, err)
		}
		if want := floor + 1_000_000 + tick.Time/1e6; e.Wall(tick.Time) != want {
			t.Fatalf("%s: tick %d is of %d, want %d", g.session, tick.Seq, e.Wall(tick.Time), want)
		}
		checkSeries(t, e, len(tick.Values))
		n, _, _ := e.Lost()
		g.lost += n
		g.seqs = append(g.seqs, tick.Seq)
		if passed {
			e.Passed(e.Epoch(), tick.Seq+1)
		}
	}
	return out
}

func checkSeries(t testing.TB, e *Earlier, slots int) {
	t.Helper()
	s := e.Series()
	if len(s) < slots {
		t.Fatalf("%d series for %d slots", len(s), slots)
	}
	last := s[slots-1]
	want := metricA
	if (slots-1)%5 == 4 {
		want = metricB
	}
	if *last.Metric != *want || last.Source != uint8((slots-1)%3) ||
		!slices.Equal(last.Labels, []collectors.Label{{Name: "i", Value: strconv.Itoa(slots - 1)}}) {
		t.Fatalf("series of slot %d is %+v %+v", slots-1, last, last.Metric)
	}
	if mono, ok := e.Start(slots - 1); ok != (last.Source == 0) || ok && mono != 7 {
		t.Fatalf("start of slot %d is %d, %v", slots-1, mono, ok)
	}
}

// verify demands that a directory is sound.
func verify(t testing.TB, dir string) {
	t.Helper()
	var out strings.Builder
	if err := Verify(dir, &out); err != nil {
		t.Errorf("verify: %v\n%s", err, out.String())
	}
}

// joined makes a reader of this session over ring and spool.
func (w *world) joined() *Reader { return w.sp.Reader(w.ring.Reader()) }

// drain reads n ticks, or all, checks them and returns how many were lost on the
// way.
func drain(t testing.TB, r *Reader, n int) (seqs []uint64, lost uint64) {
	t.Helper()
	for (n < 0 || len(seqs) < n) && r.Next() {
		if err := checkTick(r.Tick()); err != nil {
			t.Fatal(err)
		}
		k, _, _ := r.Lost()
		lost += k
		seqs = append(seqs, r.Tick().Seq)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return seqs, lost
}

// all are the numbers of the ticks from one number to another, excluded.
func all(from, to uint64) []uint64 {
	var out []uint64
	for s := uint64(0); s < to; s++ {
		if s%53 == 52 {
			s += 3
		}
		if s >= from && s < to {
			out = append(out, s)
		}
	}
	return out
}
