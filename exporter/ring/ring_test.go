package ring

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/exporter/frame"
)

func open(t testing.TB, maxBytes int) *Ring {
	t.Helper()
	r, err := New(maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNewTooSmall(t *testing.T) {
	for _, n := range []int{-1, 0, MinBytes - 1} {
		if _, err := New(n); err == nil || !strings.Contains(err.Error(), "--ring.max-bytes") {
			t.Errorf("New(%d): %v, want an error that names the flag", n, err)
		}
	}
}

func TestEmpty(t *testing.T) {
	r := open(t, MinBytes)
	var tick frame.Tick
	rd := r.Reader()
	if r.Latest(&tick) || rd.Next() || rd.Tick().Seq != 0 || rd.Err() != nil {
		t.Error("an empty ring has a tick")
	}
	if diff := cmp.Diff(Stats{Capacity: MinBytes}, r.Stats()); diff != "" {
		t.Error(diff)
	}
}

func TestRefused(t *testing.T) {
	r := open(t, MinBytes)
	r.Append(5, 0, 0, nil, nil)
	r.Append(5, 1, 0, nil, nil)
	r.Append(4, 2, 0, nil, nil)
	r.Append(6, 3, 0, make([]int64, frame.MaxSlots+1), nil)
	r.Append(7, 4, 0, nil, nil)
	if s := r.Stats(); s.Refused != 3 || s.Ticks != 2 || s.LastSeq != 7 {
		t.Errorf("stats %+v, want 3 refused of 5", s)
	}
}

// A caught-up reader goes on in the same open frame without copying it again, and
// does not copy a frame it has read when that is sealed.
func TestReaderFollows(t *testing.T) {
	r := open(t, MinBytes)
	src := newSource(rand.New(rand.NewPCG(1, 1)), 100, 5)
	rd := r.Reader()
	src.feed(r, 1)
	if !rd.Next() || rd.Next() {
		t.Fatal("want one tick")
	}
	for i := range uint64(1000) {
		pos, id := rd.it.Pos(), rd.id
		src.feed(r, 1)
		if !rd.Next() {
			t.Fatalf("tick %d: Next is false", i)
		}
		if rd.id == id && rd.it.Pos() <= pos {
			t.Fatalf("tick %d: the frame was read again", i)
		}
		if !same(rd.Tick(), &src.tick) || rd.lost.Ticks != 0 {
			t.Fatalf("tick %d (-want +got):\n%s", i, cmp.Diff(src.tick, *rd.Tick()))
		}
		if rd.Next() {
			t.Fatalf("tick %d: Next is true at the end", i)
		}
	}
	if rd.id < 3 {
		t.Errorf("the reader came to frame %d only", rd.id)
	}
}

// A frame that cannot be decoded is passed over, and its ticks count as lost.
func TestBrokenFrame(t *testing.T) {
	r := open(t, MinBytes)
	src := newSource(rand.New(rand.NewPCG(1, 1)), 100, 5)
	for r.Stats().TotalFrames < 3 {
		src.feed(r, 1)
	}
	f := r.arena.all()[1]
	r.arena.buf[f.off+f.len/2] ^= 1
	rd := r.Reader()
	for n := range f.before {
		if !rd.Next() {
			t.Fatalf("tick %d: %v", n, rd.Err())
		}
	}
	if rd.Next() || rd.Err() == nil {
		t.Fatal("a broken frame was read")
	}
	if !rd.Next() || rd.Err() != nil || rd.Tick().Seq != f.lastSeq+1 {
		t.Fatalf("behind the broken frame: tick %d, %v, want %d", rd.Tick().Seq, rd.Err(), f.lastSeq+1)
	}
	if n, from, to := rd.Lost(); n != f.ticks || from > f.firstTime || to < f.lastTime {
		t.Errorf("lost %d ticks from %d to %d, want %d from %d to %d", n, from, to, f.ticks, f.firstTime, f.lastTime)
	}
}

// A frame is cut when slots are added, at its size, and after a while.
func TestCuts(t *testing.T) {
	r := open(t, MinBytes)
	src := newSource(rand.New(rand.NewPCG(1, 1)), 10, 0)
	frames := func() uint64 { return r.Stats().TotalFrames }
	for range 600 {
		src.feed(r, 1)
	}
	if frames() != 0 {
		t.Errorf("after 59.9 s: %d frames sealed, want 0", frames())
	}
	src.feed(r, 1)
	if frames() != 1 {
		t.Errorf("after 60 s: %d frames sealed, want 1", frames())
	}
	src.grow(11)
	src.feed(r, 1)
	if frames() != 2 {
		t.Errorf("after a slot was added: %d frames sealed, want 2", frames())
	}
	// At 1/60 Hz a minute is no reason: a frame has at least 256 ticks.
	for range minTicks - 1 {
		src.feed(r, 600)
	}
	if frames() != 2 {
		t.Errorf("after %d slow ticks: %d frames sealed, want 2", minTicks, frames())
	}
	src.feed(r, 600)
	if frames() != 3 {
		t.Errorf("after %d slow ticks: %d frames sealed, want 3", minTicks+1, frames())
	}
	src.move = 300
	for frames() == 3 {
		src.feed(r, 1)
	}
	if n := r.arena.all()[3].len; n < r.target || n > r.target*5/4 {
		t.Errorf("a full frame has %d bytes, want about %d", n, r.target)
	}
}

// A budget that cannot hold a frame keeps the newest tick, counts the rest and
// says so once; when the slots fit again it recovers.
func TestTooSmall(t *testing.T) {
	r := open(t, MinBytes)
	var log bytes.Buffer
	r.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r.Delivered(0)
	rnd := rand.New(rand.NewPCG(1, 1))
	big := newSource(rnd, 30000, 10)
	for i := range big.tick.Values {
		big.tick.Values[i] = int64(rnd.Uint64())
	}
	rd := r.Reader()
	for range 10 {
		big.feed(r, 1)
		if !rd.Next() || !same(rd.Tick(), &big.tick) {
			t.Fatal("the newest tick is not there")
		}
	}
	s := r.Stats()
	if !s.TooSmall || s.Ticks != 1 || s.EvictedUndelivered != 9 {
		t.Errorf("stats %+v, want one tick held, nine lost", s)
	}
	small := newSource(rnd, 10, 1)
	small.tick.Seq = big.tick.Seq
	for range 1000 {
		small.feed(r, 1)
	}
	if s := r.Stats(); s.TooSmall || s.Ticks != 1000 {
		t.Errorf("stats %+v, want 1000 ticks held", s)
	}
	if n := strings.Count(log.String(), "--ring.max-bytes"); n != 1 || !strings.Contains(log.String(), "again") {
		t.Errorf("%d warnings, want 1 and a recovery, in\n%s", n, log.String())
	}
}

// A key row that is large for the budget is still followed by rows.
func TestLargeKeyRow(t *testing.T) {
	r := open(t, MinBytes)
	src := newSource(rand.New(rand.NewPCG(1, 1)), 4000, 20)
	most := uint64(0)
	for i := range 2000 {
		src.feed(r, 1)
		s := r.Stats()
		if s.Bytes > s.Capacity {
			t.Fatalf("%d bytes are held of %d", s.Bytes, s.Capacity)
		}
		if most = max(most, s.Ticks); i > 400 && s.Ticks < 100 {
			t.Fatalf("after %d ticks %d are held", i, s.Ticks)
		}
	}
	if s := r.Stats(); s.TooSmall || most < 300 {
		t.Errorf("stats %+v, at most %d ticks were held, want 300", s, most)
	}
}

func TestUndelivered(t *testing.T) {
	// Ten ticks in 19 slots: nine were missed.
	s := span{firstSeq: 10, lastSeq: 28, firstTime: 1000, lastTime: 2800, ticks: 10}
	for _, c := range []struct {
		from  uint64
		ahead [][2]uint64
		want  Loss
	}{
		{0, nil, Loss{10, 10, 28, 1000, 2800}},
		{10, nil, Loss{10, 10, 28, 1000, 2800}},
		{19, nil, Loss{10, 19, 28, 1900, 2800}},
		{20, nil, Loss{9, 20, 28, 2000, 2800}},
		{28, nil, Loss{1, 28, 28, 2800, 2800}},
		{29, nil, Loss{}},
		{0, [][2]uint64{{2, 5}, {30, 40}}, Loss{10, 10, 28, 1000, 2800}},
		{0, [][2]uint64{{5, 29}}, Loss{}},
		{0, [][2]uint64{{5, 15}, {24, 50}}, Loss{9, 15, 23, 1500, 2300}},
		{0, [][2]uint64{{12, 27}}, Loss{4, 10, 28, 1000, 2800}},
		{12, [][2]uint64{{12, 14}, {20, 25}}, Loss{10, 14, 28, 1400, 2800}},
		{20, [][2]uint64{{20, 29}}, Loss{}},
	} {
		if diff := cmp.Diff(c.want, undelivered(s, c.from, c.ahead)); diff != "" {
			t.Errorf("from %d (-want +got):\n%s", c.from, diff)
		}
	}
}

func TestLosses(t *testing.T) {
	var e evicted
	span := func(i uint64) span {
		return span{firstSeq: 10 * i, lastSeq: 10*i + 9, firstTime: int64(100 * i), lastTime: int64(100*i + 90), ticks: 10}
	}
	evict := func(i, delivered uint64) {
		s := span(i)
		l := undelivered(s, delivered, nil)
		e.add(l, l.FirstSeq == s.firstSeq)
		e.lastSeq = s.lastSeq
	}
	evict(0, 0)
	evict(1, 5)  // all of it, joined
	evict(2, 25) // its second half
	evict(3, 25) // joined
	evict(4, 50) // none of it
	evict(5, 50) // all of it, not joined
	want := []Loss{
		{Ticks: 20, FirstSeq: 0, LastSeq: 19, FirstTime: 0, LastTime: 190},
		{Ticks: 15, FirstSeq: 25, LastSeq: 39, FirstTime: 250, LastTime: 390},
		{Ticks: 10, FirstSeq: 50, LastSeq: 59, FirstTime: 500, LastTime: 590},
	}
	if diff := cmp.Diff(want, e.losses); diff != "" || e.undelivered != 45 {
		t.Errorf("%d undelivered, losses (-want +got):\n%s", e.undelivered, diff)
	}
	for i := range uint64(2 * maxLosses) {
		evict(10+2*i, 105+20*i)
	}
	if len(e.losses) != maxLosses || e.losses[0].FirstSeq != 0 {
		t.Errorf("%d losses, the first %+v", len(e.losses), e.losses[0])
	}
}

// One writer and readers that stop and seek, for the race detector.
func TestConcurrent(t *testing.T) {
	r := open(t, MinBytes)
	const n = 5000
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(2, uint64(i)))
			rd := r.Reader()
			seen, last := uint64(0), uint64(0)
			var tick frame.Tick
			for last < n {
				for rd.Next() {
					tk := rd.Tick()
					lost, _, _ := rd.Lost()
					seen += 1 + lost
					if tk.Seq <= last || tk.Seq != seen || tk.Values[0] != int64(tk.Seq) {
						t.Errorf("tick %d with value %d after %d, %d seen or lost", tk.Seq, tk.Values[0], last, seen)
						return
					}
					last = tk.Seq
				}
				if rd.Err() != nil {
					t.Error(rd.Err())
					return
				}
				if rnd.IntN(10) == 0 && last > 0 {
					rd.Seek(last + 1)
				}
				r.Latest(&tick)
				r.Stats()
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	packed := make(chan error, 1)
	go func() { packed <- r.Run(ctx) }()
	src := newSource(rand.New(rand.NewPCG(3, 3)), 200, 30)
	for range n {
		src.tick.Values[0] = int64(src.tick.Seq + 1)
		src.move = 0
		for range 30 {
			src.tick.Values[1+src.r.IntN(199)] += 7
		}
		src.feed(r, 1)
	}
	wg.Wait()
	cancel()
	if err := <-packed; err != nil {
		t.Error(err)
	}
}

// Run compresses each frame when it is sealed, and readers in the midst of it do
// not notice.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, MinBytes)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		src := newSource(rand.New(rand.NewPCG(1, 1)), 100, 5)
		slow, quick := r.Reader(), r.Reader()
		for n := range 2000 {
			src.feed(r, 1)
			synctest.Wait()
			if s := r.Stats(); s.PackedFrames != s.TotalFrames {
				t.Fatalf("%d frames compressed of %d", s.PackedFrames, s.TotalFrames)
			}
			if !quick.Next() || quick.Tick().Seq != uint64(n+1) || n%2 == 0 && (!slow.Next() || slow.Tick().Seq != uint64(n/2+1)) {
				t.Fatalf("tick %d: the readers are at %d and %d, %v", n+1, quick.Tick().Seq, slow.Tick().Seq, slow.Err())
			}
		}
		if r.Stats().TotalFrames < 5 {
			t.Errorf("%d frames", r.Stats().TotalFrames)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestTooSmallIsSaidSeldom: a budget that cannot hold a frame is said at once, then once
// a minute with how many ticks that cost, under its own flag's name.
func TestTooSmallIsSaidSeldom(t *testing.T) {
	r := open(t, MinBytes)
	var log bytes.Buffer
	r.Logger, r.Flag = slog.New(slog.NewTextHandler(&log, nil)), "--scrape.ring-max-bytes"
	values, present := make([]int64, 10000), make([]uint64, 157)
	for i := range present {
		present[i] = ^uint64(0)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for seq := range uint64(600) {
		for i := range values {
			values[i] = int64(rnd.Uint64())
		}
		r.Append(seq, int64(seq)*1e9, 1, values, present)
	}
	if n := strings.Count(log.String(), "raise --scrape.ring-max-bytes"); n != 10 || strings.Contains(log.String(), "again") {
		t.Errorf("%d lines in ten minutes:\n%s", n, log.String())
	}
	if n := strings.Count(log.String(), "ticks=60"); n != 9 {
		t.Errorf("%d lines with the sum of a minute:\n%s", n, log.String())
	}
}
