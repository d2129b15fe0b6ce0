package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ticktier/ticktier/adapter/store"
)

// snapshotPath is Prometheus' own.
const snapshotPath = "/api/v1/admin/tsdb/snapshot"

// snapshotCmd has a running adapter make a snapshot.
type snapshotCmd struct {
	URL  string    `help:"Running adapter (default ${default})." default:"http://localhost:9748" placeholder:"URL"`
	HTTP httpFlags `embed:""`
}

func (c *snapshotCmd) run(ctx context.Context, out io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.URL, "/")+snapshotPath, nil)
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	client, err := c.HTTP.client()
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("reach the adapter: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	var a struct {
		Error string
		Data  struct{ Dir string }
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&a); err != nil {
		return fmt.Errorf("the adapter answers %s: %w", resp.Status, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the adapter answers %s: %s", resp.Status, a.Error)
	}
	fmt.Fprintln(out, a.Data.Dir)
	return nil
}

// snapshot makes a data directory below dir that holds what this one does now. Blocks
// are hard links. Raw samples come first: what a bucket is made of is in it, or the
// bucket is in a block already; and nothing is folded or dropped meanwhile.
func (a *adapter) snapshot(dir string) (path string, err error) {
	id := make([]byte, 8)
	rand.Read(id)
	all := filepath.Join(dir, "snapshots")
	path = filepath.Join(all, time.Now().UTC().Format("20060102T150405Z")+"-"+hex.EncodeToString(id))
	tmp := path + ".tmp"
	if err := os.MkdirAll(tmp, 0o777); err != nil {
		return "", fmt.Errorf("make the snapshot's directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	err = a.driver.Paused(func() error {
		small := func() error {
			for _, name := range []string{"late.journal", "devices.json", heldFile} {
				if err := store.CopyFile(filepath.Join(dir, name), filepath.Join(tmp, name)); err != nil {
					return err
				}
			}
			return nil
		}
		if err := a.raw.SnapshotTo(filepath.Join(tmp, "raw"), small); err != nil {
			return err
		}
		if err := a.fine.SnapshotTo(filepath.Join(tmp, a.fine.Name())); err != nil {
			return err
		}
		return a.coarse.SnapshotTo(filepath.Join(tmp, a.coarse.Name()))
	})
	if err != nil {
		return "", fmt.Errorf("make a snapshot: %w", err)
	}
	if err := store.Rename(tmp, path); err != nil {
		return "", fmt.Errorf("make a snapshot: %w", err)
	}
	return filepath.Abs(path)
}

// serveSnapshot answers as Prometheus does, and with the directory.
func (a *adapter) serveSnapshot(dir string, logger *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		start := time.Now()
		path, err := a.snapshot(dir)
		if err != nil {
			logger.Error("no snapshot", "err", err)
			answerError(w, http.StatusInternalServerError, err)
			return
		}
		logger.Info("snapshot made", "dir", path, "took", time.Since(start).Round(time.Millisecond))
		answerJSON(w, map[string]string{"name": filepath.Base(path), "dir": path})
	}
}

// answerJSON and answerError answer in the envelope of Prometheus' API.
func answerJSON(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data}) //nolint:errcheck // who asked is gone
}

func answerError(w http.ResponseWriter, code int, err error) {
	kind := "internal"
	if code/100 == 4 {
		kind = "bad_data"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": kind, "error": err.Error()}) //nolint:errcheck // who asked is gone
}
