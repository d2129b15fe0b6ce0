package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/ticktier/ticktier/adapter/store"
)

// errReopen ends the run group so that everything is closed and opened again.
var errReopen = errors.New("the store has to be opened again")

const (
	// watchEvery is how often the data directory is looked at.
	watchEvery = time.Second
	// roomNeeded is what has to be writable before the store is opened again.
	roomNeeded = 4 << 20
)

// watchStore waits for a write that failed. It then returns errReopen once the
// disk takes something again; until then pushes are answered 503 and queries go
// on. A data directory that was removed is not made again: what was in it is gone,
// and whoever removed it should hear of it.
func watchStore(ctx context.Context, raw *store.Raw, dir string, logger *slog.Logger) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	was, err := os.Stat(filepath.Join(dir, "raw", "wal"))
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	torn := raw.Torn()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-torn:
			torn = nil
			logger.Error("a write to the store failed: pushes are refused until it can be written to again", "err", raw.Cause())
		case <-tick.C:
		}
		is, err := os.Stat(filepath.Join(dir, "raw", "wal"))
		if err != nil || !os.SameFile(was, is) {
			if torn != nil {
				raw.Refuse(fmt.Errorf("the data directory %s was removed or replaced", dir))
			}
			continue
		}
		if torn == nil && hasRoom(dir) {
			return errReopen
		}
	}
}

// hasRoom tries to write.
func hasRoom(dir string) bool {
	probe := filepath.Join(dir, ".writable")
	err := os.WriteFile(probe, make([]byte, roomNeeded), 0o666)
	return errors.Join(err, os.Remove(probe)) == nil
}
