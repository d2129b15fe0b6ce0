package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
)

// TestAdapterDiskFull: with a full disk pushes are answered 503 and queries go on;
// once there is room the adapter takes pushes again by itself, and everything that
// it ever acknowledged is there after the next start.
func TestAdapterDiskFull(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	mount := func(flags uintptr, size string) {
		t.Helper()
		if err := syscall.Mount("tmpfs", disk, "tmpfs", flags, "size="+size); err != nil {
			t.Fatalf("mount a small tmpfs (this test has to be root): %v", err)
		}
	}
	mount(0, "8m")
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount the tmpfs: %v", err)
		}
	})
	dir := filepath.Join(disk, "data")
	flags := []string{"--no-self.store"}
	adapter := startAdapter(t, dir, flags...)

	began := nowMs() - 100*60_000
	acked := map[string]int{}
	at := began
	pushRound := func(name string, series int) int {
		t.Helper()
		var all []client.Series
		for i := range series {
			s := client.Series{Labels: map[string]string{"__name__": name, "s": fmt.Sprint(i)}}
			for k := range int64(10) {
				s.Samples = append(s.Samples, client.Sample{T: at + k*100, V: float64((at+k)*7919%1000003) / 7})
			}
			all = append(all, s)
		}
		resp, err := adapter.Push(t.Context(), client.V1, all)
		if err != nil {
			return 0 // its port is closed while it opens the store again
		}
		if resp.Status == 204 {
			acked[name] += series * 10
		}
		return resp.Status
	}
	status := 0
	for range 3000 {
		if status = pushRound("old", 200); status != 204 {
			break
		}
		at += 1000
	}
	if status != 503 {
		t.Fatalf("a full disk is answered %d, want 503", status)
	}
	count := func(name string) (float64, error) {
		r, err := adapter.Query(t.Context(), fmt.Sprintf("sum(count_over_time(%s[2h]))", name), nowMs(), "tier", "raw")
		if err != nil {
			return 0, err
		}
		return r.Value()
	}
	if n, err := count("old"); err != nil || n == 0 {
		t.Errorf("queries with a full disk: %v, %v", n, err)
	}
	mount(syscall.MS_REMOUNT, "200m")
	eventually(t, 30*time.Second, "pushes are taken again", func(context.Context) error {
		at += 1000
		if s := pushRound("old", 200); s != 204 {
			return fmt.Errorf("status %d", s)
		}
		return nil
	})
	for range 20 {
		at += 1000
		for name, n := range map[string]int{"old": 200, "new": 50} {
			if s := pushRound(name, n); s != 204 {
				t.Fatalf("after the disk had room again: status %d", s)
			}
		}
	}
	adapter.stop(t)
	adapter = startAdapter(t, dir, flags...)
	for name, want := range acked {
		// What was stored but not acknowledged may be there too.
		if n, err := count(name); err != nil || n < float64(want) {
			t.Errorf("%v samples of %q after a restart, %d were acknowledged (%v)", n, name, want, err)
		}
	}
	adapter.stop(t)
}

// TestAdapterStartsOnFullDisk: an adapter that is started on a full disk answers
// queries and refuses pushes, and takes them by itself once there is room. Where
// somebody took even the room that it had set aside, it waits.
func TestAdapterStartsOnFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=16m"); err != nil {
		t.Fatalf("mount a small tmpfs (this test has to be root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount the tmpfs: %v", err)
		}
	})
	dir, fill := filepath.Join(disk, "data"), filepath.Join(disk, "fill")
	fillUp := func() {
		t.Helper()
		f, err := os.Create(fill)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, size := range []int{1 << 20, 4096} {
			for err == nil {
				_, err = f.Write(make([]byte, size))
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			err = nil
		}
	}
	adapter := startAdapter(t, dir, "--no-self.store")
	at, n := nowMs()-3600_000, 0
	push := func() int {
		at, n = at+1000, n+1
		resp, err := adapter.Push(t.Context(), client.V1, []client.Series{{
			Labels: map[string]string{"__name__": "x"}, Samples: []client.Sample{{T: at, V: float64(n)}},
		}})
		if err != nil {
			return 0
		}
		if resp.Status == 503 && resp.Header.Get("Retry-After") == "" {
			t.Error("a refusal does not say when to try again")
		}
		return resp.Status
	}
	stored := func(want float64) {
		t.Helper()
		r, err := adapter.Query(t.Context(), "count_over_time(x[2h])", nowMs(), "tier", "raw")
		if err != nil {
			t.Fatal(err)
		}
		if v, err := r.Value(); err != nil || v != want {
			t.Errorf("%v samples, want %v (%v)", v, want, err)
		}
	}
	taken := func() {
		t.Helper()
		eventually(t, 60*time.Second, "pushes are taken again", func(context.Context) error {
			if s := push(); s != 204 {
				return fmt.Errorf("status %d", s)
			}
			return nil
		})
	}
	for range 500 {
		if s := push(); s != 204 {
			t.Fatalf("status %d", s)
		}
	}
	adapter.stop(t)
	fillUp()
	adapter = startAdapter(t, dir, "--no-self.store")
	stored(500)
	if s := push(); s != 503 {
		t.Errorf("a push to a full disk is answered %d, want 503", s)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	taken()
	stored(501)
	adapter.stop(t)
	if err := os.Remove(filepath.Join(dir, "reserve")); err != nil {
		t.Errorf("no room is set aside again: %v", err)
	}
	fillUp()
	// It is not ready before there is room, which is what the start waits for.
	room := time.AfterFunc(2*time.Second, func() {
		if err := os.Remove(fill); err != nil {
			t.Error(err)
		}
	})
	defer room.Stop()
	adapter = startAdapter(t, dir, "--no-self.store")
	taken()
	stored(502)
	adapter.stop(t)
}
