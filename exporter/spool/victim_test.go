package spool

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// victim is a process that samples and spools until it is killed. It says what it
// had spooled, line by line.
func victim(dir string) {
	w, err := tryBegin(nil, dir, "victim", func(c *Config) { c.MaxBytes = 1 << 20 }, "a")
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for {
		w.sample(20)
		w.cycle()
		fmt.Println(w.sp.spooledTo)
	}
}

// TestKilled kills a real process at any moment: what it had spooled is there.
func TestKilled(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seed(t), 3))
	for range 12 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "SPOOL_TEST_VICTIM="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		spooled := uint64(0)
		lines := bufio.NewScanner(out)
		stop := time.AfterFunc(time.Duration(50+rnd.IntN(250))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			if _, err := fmt.Sscan(lines.Text(), &spooled); err != nil {
				t.Errorf("the process says %q", lines.Text())
			}
		}
		_ = cmd.Wait()
		stop.Stop()

		w := begin(t, dir, "next", nil, "a")
		got := readEarlier(t, w.sp.Earlier(0), true)
		var seqs []uint64
		for _, g := range got {
			seqs = g.seqs
		}
		from := uint64(0)
		if len(seqs) > 0 {
			from = seqs[0] // what came before was dropped for room
		}
		for _, s := range all(from, spooled) {
			if !slices.Contains(seqs, s) {
				t.Fatalf("tick %d of %d is not there; %d are", s, spooled, len(seqs))
			}
		}
		w.stop()
		verify(t, dir)
	}
}

// TestDiskFull is TestFull on a real disk that is really full.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=600k"); err != nil {
		t.Fatalf("mount a small tmpfs (this test has to be root): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 200<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	spool := filepath.Join(dir, "spool")
	w := begin(t, spool, "one", nil, "a")
	r := w.joined()
	for range 40 {
		w.sample(200)
		w.cycle()
	}
	if !w.sp.stats.failing.Load() || !strings.Contains(w.log.String(), "no space left on device") {
		t.Fatalf("the disk is not full: %s", w.log)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		w.sample(5)
		w.cycle()
	}
	seqs, lost := drain(t, r, -1)
	dropped := uint64(w.sp.stats.droppedQ.Load())
	if dropped == 0 || lost != dropped || len(seqs)+int(lost) != ticksTo(w.seq) {
		t.Errorf("%d sampled, %d read, %d lost, %d dropped", ticksTo(w.seq), len(seqs), lost, dropped)
	}
	w.stop()
	verify(t, spool)

	// A start on a disk that is full to the last byte reads what is there.
	for n := 64 << 10; n > 0; n /= 2 {
		for {
			f, err := os.CreateTemp(dir, "ballast")
			if err == nil {
				_, err = f.Write(make([]byte, n))
				_ = f.Close()
			}
			if err != nil {
				break
			}
		}
	}
	w = begin(t, spool, "two", nil, "a")
	if got := readEarlier(t, w.sp.Earlier(0), false); len(got) == 0 {
		t.Error("nothing is read from a full disk")
	}
	w.sample(2000)
	w.cycle()
	w.stop()
	verify(t, spool)
}
