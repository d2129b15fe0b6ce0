package spool

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNothingWhileDelivered: no byte is written while receivers keep up.
func TestNothingWhileDelivered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	w := begin(t, dir, "s", nil, "a", "b")
	for range 200 {
		w.sample(10)
		w.ring.Delivered(w.seq)
		w.sp.Passed(0, w.sp.Epoch(), w.seq)
		w.sp.Passed(1, w.sp.Epoch(), w.seq)
		w.cycle()
	}
	if w.ring.Stats().EvictedTicks == 0 {
		t.Fatal("the ring evicted nothing")
	}
	w.stop()
	if n := w.sp.stats.written.Load(); n != 0 {
		t.Errorf("%d bytes were written", n)
	}
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Errorf("left in the directory: %v", list)
	}
}

// TestOutage: what the ring gave up is read from the spool, all of it, once, and
// goes when both receivers have it.
func TestOutage(t *testing.T) {
	w := begin(t, t.TempDir(), "s", nil, "a", "b")
	w.sample(300)
	a, b := w.joined(), w.joined()
	drain(t, a, 100)
	for range 30 {
		w.sample(100)
		w.cycle()
	}
	if w.sp.stats.spooled.Load() == 0 {
		t.Fatal("nothing was spooled")
	}
	before := w.sp.stats.segments.Load()
	seqs, lost := drain(t, b, -1)
	if want := all(0, w.seq); lost != 0 || !slices.Equal(seqs, want) {
		t.Errorf("b got %d ticks of %d, %d lost", len(seqs), len(want), lost)
	}
	w.sp.Passed(1, w.sp.Epoch(), w.seq)
	w.cycle()
	if n := w.sp.stats.segments.Load(); n != before {
		t.Errorf("%d segments, there were %d and a has nothing of them", n, before)
	}
	w.grow(30)
	for range 10 {
		w.sample(100)
		w.cycle()
	}
	seqs, lost = drain(t, a, -1)
	if want := ticksTo(w.seq) - 100; lost != 0 || len(seqs) != want {
		t.Errorf("a got %d ticks more, want %d; %d lost", len(seqs), want, lost)
	}
	for i := range 2 {
		w.sp.Passed(i, w.sp.Epoch(), w.seq)
	}
	w.cycle()
	if n := w.sp.stats.segments.Load(); n != 0 {
		t.Errorf("%d segments are left", n)
	}
	spooled := w.sp.stats.spooled.Load()
	w.sample(3)
	w.cycle()
	w.ring.Delivered(w.seq)
	w.stop()
	if n := w.sp.stats.spooled.Load(); n-spooled > 3 {
		t.Errorf("%d ticks were spooled after the outage", n-spooled)
	}
}

// TestRestart: a clean stop leaves all that is undelivered, the next session reads
// it, and a third what the second did not.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	w := begin(t, dir, "one", nil, "a", "b")
	for range 20 {
		w.sample(100)
		w.cycle()
	}
	w.grow(5)
	w.sample(50)
	end := w.seq
	w.sp.Passed(0, w.sp.Epoch(), 500)
	w.sp.Ahead(0, [][2]uint64{{1000, 1100}})
	w.stop()
	verify(t, dir)

	w = begin(t, dir, "two", nil, "a", "b")
	want := append(all(500, 1000), all(1100, end)...)
	got := readEarlier(t, w.sp.Earlier(0), true)
	if len(got) != 1 || got[0].session != "one" || !slices.Equal(got[0].seqs, want) || got[0].lost != 0 {
		t.Errorf("a: %d sessions, %d ticks of %d, %d lost", len(got), len(got[0].seqs), len(want), got[0].lost)
	}
	w.sample(30)
	w.stop()
	verify(t, dir)

	w = begin(t, dir, "three", nil, "a", "b")
	got = readEarlier(t, w.sp.Earlier(0), true)
	if len(got) != 1 || got[0].session != "two" || len(got[0].seqs) != 30 {
		t.Errorf("a: %+v", got)
	}
	got = readEarlier(t, w.sp.Earlier(1), true)
	if len(got) != 2 || len(got[0].seqs) != ticksTo(end) || len(got[1].seqs) != 30 {
		t.Errorf("b: %d sessions", len(got))
	}
	w.cycle()
	w.stop()
	list, err := names(disk{}, dir)
	if err != nil || slices.ContainsFunc(list, func(n string) bool { return strings.HasSuffix(n, suffix) }) {
		t.Errorf("left: %v, %v", list, err)
	}
}

// TestBudget: the oldest segments go, and everything that goes is counted.
func TestBudget(t *testing.T) {
	w := begin(t, t.TempDir(), "s", func(c *Config) { c.MaxBytes = MinBytes }, "a")
	r := w.joined()
	for range 150 {
		w.sample(100)
		w.cycle()
		if n := w.sp.stats.bytes.Load(); n > MinBytes {
			t.Fatalf("%d bytes are held", n)
		}
	}
	dropped := uint64(w.sp.stats.droppedCap.Load())
	seqs, lost := drain(t, r, -1)
	if dropped == 0 || dropped != lost || len(seqs)+int(lost) != ticksTo(w.seq) {
		t.Errorf("%d sampled, %d read, %d lost, %d counted as dropped", ticksTo(w.seq), len(seqs), lost, dropped)
	}
	if !strings.Contains(w.log.String(), "spool dropped ticks that not every receiver has") {
		t.Errorf("log: %s", w.log)
	}
	w.stop()
}

// TestAge: what is too old goes, but not by a clock that is not set.
func TestAge(t *testing.T) {
	w := begin(t, t.TempDir(), "s", func(c *Config) { c.MaxAge = 20 * time.Second }, "a")
	set := w.offset
	w.offset = []offset{{0, 40e9}}
	for range 60 {
		w.sample(100)
		w.cycle()
	}
	if n := w.sp.stats.droppedAge.Load(); n != 0 {
		t.Errorf("%d ticks were dropped by a clock that is not set", n)
	}
	w.offset = set
	w.cycle()
	if n := w.sp.stats.droppedAge.Load(); n < 2000 || n > 4100 {
		t.Errorf("%d ticks were dropped for their age, want about 4000 less a segment's", n)
	}
	seqs, lost := drain(t, w.joined(), -1)
	if int64(lost) != w.sp.stats.droppedAge.Load() || len(seqs)+int(lost) != ticksTo(w.seq) {
		t.Errorf("%d read, %d lost", len(seqs), lost)
	}
	w.stop()
}

// TestClockSetLate: what was sampled and spooled before the clock was set has its
// right time after a restart; what never had a clock is counted.
func TestClockSetLate(t *testing.T) {
	for _, set := range []bool{true, false} {
		dir := t.TempDir()
		w := begin(t, dir, "one", nil, "a")
		right := w.offset
		w.offset = []offset{{0, 40e9}}
		for range 15 {
			w.sample(100)
			w.cycle()
		}
		if set {
			w.offset = right
		}
		w.sample(200)
		w.stop()
		end := w.seq

		w = begin(t, dir, "two", nil, "a")
		got := readEarlier(t, w.sp.Earlier(0), true)
		if set && (len(got) != 1 || len(got[0].seqs) != ticksTo(end)) {
			t.Errorf("%d sessions", len(got))
		}
		if !set && (len(got) != 0 || w.sp.stats.undated.Load() != int64(ticksTo(end))) {
			t.Errorf("%d sessions, %d ticks undated", len(got), w.sp.stats.undated.Load())
		}
		w.stop()
	}
}

// TestQueue: where the disk does not come along, the oldest in memory go and are
// counted.
func TestQueue(t *testing.T) {
	w := begin(t, t.TempDir(), "s", nil, "a")
	w.grow(400)
	r := w.joined()
	w.sample(9000) // and no cycle
	dropped := uint64(w.sp.stats.droppedQ.Load())
	if w.sp.waiting > maxPending {
		t.Errorf("%d bytes wait", w.sp.waiting)
	}
	seqs, lost := drain(t, r, -1)
	if dropped == 0 || lost != dropped || len(seqs)+int(lost) != ticksTo(w.seq) {
		t.Errorf("%d sampled, %d read, %d lost, %d dropped", ticksTo(w.seq), len(seqs), lost, dropped)
	}
	w.cycle()
	seqs, lost = drain(t, w.joined(), -1)
	if lost != dropped || len(seqs)+int(lost) != ticksTo(w.seq) {
		t.Errorf("then %d read, %d lost, %d dropped", len(seqs), lost, dropped)
	}
	w.stop()
}

// TestSecondProcess: a directory has one user. A second waits until it is free, and
// leaves what the first did not deliver to the next start.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	w := begin(t, dir, "s", nil, "a")
	w.sample(100)
	second := begin(t, dir, "t", nil, "a")
	second.sample(100)
	second.ring.Seal()
	second.cycle()
	if !strings.Contains(second.log.String(), "in use") || second.sp.Owes() || !second.sp.stats.failing.Load() {
		t.Errorf("opened twice: %s", second.log)
	}
	end := w.seq
	w.stop()
	for range 20 {
		second.cycle()
	}
	if !second.sp.Owes() || second.sp.stats.failing.Load() {
		t.Errorf("a free directory is not taken: %s", second.log)
	}
	second.sp.Ahead(0, [][2]uint64{{0, 50}})
	end2 := second.seq
	second.stop()
	third := begin(t, dir, "u", nil, "a")
	got := readEarlier(t, third.sp.Earlier(0), true)
	if len(got) != 2 || len(got[0].seqs) != ticksTo(end) || got[1].seqs[0] != 50 || len(got[1].seqs) != len(all(50, end2)) || got[0].lost+got[1].lost > 0 {
		t.Errorf("the third start finds %+v", got)
	}
	third.stop()
	verify(t, dir)
}

// TestLateDirectory: a directory that cannot be used at the start, or is gone later, is
// used as soon as it can be.
func TestLateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // in its place
		t.Fatal(err)
	}
	w := begin(t, dir, "s", nil, "a")
	r := w.joined()
	for range 20 {
		w.sample(100)
		w.cycle()
	}
	if n := strings.Count(w.log.String(), "spool cannot be used"); n != 1 || !w.sp.stats.failing.Load() {
		t.Errorf("said %d times: %s", n, w.log)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		w.sample(100)
		w.cycle()
	}
	if n := strings.Count(w.log.String(), "spool can be written again"); n != 1 || w.sp.stats.failing.Load() || w.sp.stats.spooled.Load() == 0 {
		t.Errorf("said %d times, %d ticks spooled: %s", n, w.sp.stats.spooled.Load(), w.log)
	}
	dropped := uint64(w.sp.stats.droppedQ.Load())
	seqs, lost := drain(t, r, -1)
	if lost != dropped || len(seqs)+int(lost) != ticksTo(w.seq) {
		t.Errorf("%d sampled, %d read, %d lost, %d dropped", ticksTo(w.seq), len(seqs), lost, dropped)
	}
	// It goes, with all that is in it.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	spooled := w.sp.stats.spooled.Load()
	for range 80 {
		w.grow(2)
		w.sample(100)
		w.cycle()
	}
	if w.sp.stats.spooled.Load() == spooled || w.sp.stats.failing.Load() {
		t.Errorf("a directory that is gone is not made again: %s", w.log)
	}
	w.stop()
	verify(t, dir)
}

// TestSameBoot: a session whose clock was never set gets its times by the clock of a
// later one of the same boot.
func TestSameBoot(t *testing.T) {
	for _, boot := range []string{"b1", "another", ""} {
		dir := t.TempDir()
		unset := func(c *Config) { c.Boot, c.BootTime = "b1", 5e9 }
		w := begin(t, dir, "one", unset, "a")
		w.offset = []offset{{0, 40_000e6}} // 1970
		w.sample(100)
		end := w.seq
		w.stop()
		// The second begins 65 s after the first.
		second := begin(t, dir, "two", func(c *Config) { c.Boot, c.BootTime = boot, 70e9 }, "a")
		second.offset = []offset{{0, (floor + 1_000_000 + 65_000) * 1e6}}
		got := readEarlier(t, second.sp.Earlier(0), false) // which looks at the times
		if boot == "b1" && (len(got) != 1 || len(got[0].seqs) != ticksTo(end)) {
			t.Errorf("the same boot: %d sessions", len(got))
		}
		if boot != "b1" && (len(got) != 0 || second.sp.stats.undated.Load() != int64(ticksTo(end))) {
			t.Errorf("boot %q: %d sessions, %d ticks undated", boot, len(got), second.sp.stats.undated.Load())
		}
		second.stop()
		verify(t, dir)
	}
}

// TestDamage: whatever happens to the files, a start succeeds, what is good is read,
// and what is not is set aside.
func TestDamage(t *testing.T) {
	first := seed(t)
	src := t.TempDir()
	w := begin(t, src, "one", nil, "a")
	for range 30 {
		w.sample(100)
		w.cycle()
	}
	w.sp.Passed(0, w.sp.Epoch(), 100)
	w.cycle()
	w.stop()
	total := ticksTo(w.seq) - ticksTo(100)
	for i := range uint64(60) {
		rnd := rand.New(rand.NewPCG(first+i, 1))
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(src)); err != nil {
			t.Fatal(err)
		}
		list, _ := names(disk{}, dir)
		damage(t, rnd, filepath.Join(dir, list[rnd.IntN(len(list))]))
		w := begin(t, dir, "two", nil, "a")
		read, lost := 0, 0
		for _, g := range readEarlier(t, w.sp.Earlier(0), false) {
			read += len(g.seqs)
			lost += int(g.lost)
		}
		st := &w.sp.stats
		if read+lost < total && st.quarantined.Load()+st.torn.Load() == 0 {
			t.Errorf("seed %d: %d read, %d lost, of %d, and nothing is said\n%s", first+i, read, lost, total, w.log)
		}
		if read < total/2 {
			t.Errorf("seed %d: only %d of %d ticks are read", first+i, read, total)
		}
		w.stop()
		verify(t, dir)
	}
}

// damage does to a file what bad disks do.
func damage(t *testing.T, rnd *rand.Rand, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch at := rnd.IntN(len(b)); rnd.IntN(4) {
	case 0:
		b[at] ^= byte(1 << rnd.IntN(8))
	case 1:
		b = b[:at]
	case 2:
		clear(b[at:min(len(b), at+4096)])
	case 3:
		b = append(b, make([]byte, rnd.IntN(5000))...)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDamageWhileOpen: a segment that goes bad after the start.
func TestDamageWhileOpen(t *testing.T) {
	dir := t.TempDir()
	w := begin(t, dir, "s", func(c *Config) { c.MaxBytes = 1 << 20 }, "a")
	r := w.joined()
	for range 25 {
		w.sample(100)
		w.cycle()
	}
	g := w.sp.segs[1]
	b, err := os.ReadFile(g.path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	if err := os.WriteFile(g.path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	seqs, lost := drain(t, r, -1)
	if lost == 0 || len(seqs)+int(lost) != ticksTo(w.seq) || int64(lost) != w.sp.stats.quarantinedTicks.Load() {
		t.Errorf("%d read, %d lost, %d in quarantine, of %d", len(seqs), lost, w.sp.stats.quarantinedTicks.Load(), ticksTo(w.seq))
	}
	w.stop()
	verify(t, dir)
}

// TestOfferTakesNoMemory: the hook runs with the ring's lock held.
func TestOfferTakesNoMemory(t *testing.T) {
	w := begin(t, t.TempDir(), "s", nil, "a")
	w.sample(3000)
	w.cycle()
	f, ok := w.sp.cfg.Sealed(0, nil)
	if !ok {
		t.Fatal("no frame")
	}
	f.FirstSeq, f.LastSeq = 1<<40, 1<<40+f.Ticks
	if n := testing.AllocsPerRun(100, func() {
		w.sp.Offer(f)
		w.sp.mu.Lock()
		w.sp.popPending()
		w.sp.mu.Unlock()
	}); n > 1 { // the list of what waits
		t.Errorf("%v allocations", n)
	}
	w.stop()
}
