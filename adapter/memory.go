package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/ticktier/ticktier/adapter/store"
)

const (
	// settleAfter is when the start is over: the first fold is done, and what it took is
	// given back.
	settleAfter = 10 * time.Second
	// releaseEvery is how often pages of blocks that folds and queries have read are.
	releaseEvery = 5 * time.Minute
)

// keepSmall gives memory back that is not needed for what comes next: what the start
// took, and the pages of blocks' files, which the kernel's cache holds anyway.
func (a *adapter) keepSmall(ctx context.Context, logger *slog.Logger) error {
	t := time.NewTimer(settleAfter)
	defer t.Stop()
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		t.Reset(releaseEvery)
		release := []func() error{a.raw.Release, a.fine.Release, a.coarse.Release}
		if first {
			debug.FreeOSMemory()
			release = append(release, store.ReleaseProgram)
		}
		for _, f := range release {
			if err := f(); err != nil {
				logger.Debug("memory not given back", "err", err)
			}
		}
	}
}
