package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ticktier/ticktier/adapter/store"
)

// errReopen ends the run group so that everything is closed and opened again.
var errReopen = errors.New("the store has to be opened again")

// watchEvery is how often the data directory is looked at.
const watchEvery = time.Second

// watchStore looks at the room on the disk and waits for a write that failed. Then, or
// when there is next to no room, pushes are refused and nothing is folded; the room
// set aside lets the TSDB write what it has in memory, and queries go on. It returns
// errReopen once the disk takes something again. A data directory that was removed is
// not made again: what was in it is gone, and whoever removed it should hear of it.
func watchStore(ctx context.Context, raw *store.Raw, room *store.Room, dir string, logger *slog.Logger) error {
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
			logger.Error("pushes are refused until the store can be written to again", "err", raw.Cause())
			if err := room.GiveUp(); err != nil {
				logger.Warn("no room made", "err", err)
			}
		case <-tick.C:
		}
		is, err := os.Stat(filepath.Join(dir, "raw", "wal"))
		if err != nil || !os.SameFile(was, is) {
			if torn != nil {
				raw.Refuse(fmt.Errorf("the data directory %s was removed or replaced", dir))
			}
			continue
		}
		if torn == nil {
			if room.Plenty() {
				return errReopen
			}
			continue
		}
		if enough, err := room.Enough(); err != nil {
			logger.Debug("room not known", "err", err)
		} else if !enough {
			raw.Refuse(store.ErrNoRoom)
		}
	}
}

// isFull reports whether a start failed for want of room.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, store.ErrNoRoom)
}

// waitRoom answers everything with 503 until there is room, where there is not even
// enough to start with, and then returns errReopen.
func waitRoom(ctx context.Context, ln net.Listener, room *store.Room, cause error, logger *slog.Logger) error {
	logger.Error("the disk is full: nothing is answered until there is room", "addr", ln.Addr().String(), "err", cause)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() { stop(waitSignal(ctx, logger)) }()
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, store.ErrNoRoom.Error(), http.StatusServiceUnavailable)
	})}
	go srv.Serve(ln) //nolint:errcheck // it ends with Close
	defer srv.Close()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return errStopped
		case <-tick.C:
			if room.Plenty() {
				return errReopen
			}
		}
	}
}
