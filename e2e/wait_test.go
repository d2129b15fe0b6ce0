package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// eventually calls check until it returns nil, and fails the test with its last
// error when that takes longer than within.
func eventually(t testing.TB, within time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %v", what, within, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// pause waits because time itself is what the test needs: ticks have to be taken.
func pause(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

func writeFile(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func nowMs() int64 { return time.Now().UnixMilli() }
