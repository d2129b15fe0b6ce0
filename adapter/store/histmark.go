package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/prometheus/prometheus/tsdb"
)

// histMarkName is the file in the directory of raw samples that says that it may hold
// native histograms. It is empty, and stays once it is there.
const histMarkName = "native-histograms"

// histMark knows whether raw samples may be native histograms, so that queries of
// buckets need not look for some in vain. It is safe for concurrent use.
type histMark struct {
	path string
	some atomic.Bool
	mu   sync.Mutex // of those that write the file
}

// open reads the mark, and the blocks' own account.
func (m *histMark) open(dir string, blocks []*tsdb.Block) error {
	m.path = filepath.Join(dir, histMarkName)
	for _, b := range blocks {
		if b.Meta().Stats.NumHistogramSamples > 0 {
			return m.note()
		}
	}
	switch _, err := os.Stat(m.path); {
	case err == nil:
		m.some.Store(true)
	case !os.IsNotExist(err):
		return fmt.Errorf("look for the mark of native histograms: %w", err)
	}
	return nil
}

// note notes that there is one. The mark is on disk before it returns.
func (m *histMark) note() error {
	if m.some.Load() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.some.Load() {
		return nil
	}
	if err := m.write(); err != nil {
		return fmt.Errorf("mark that there are native histograms: %w", err)
	}
	m.some.Store(true)
	return nil
}

func (m *histMark) write() error {
	f, err := os.Create(m.path)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(m.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// NativeHistograms reports whether raw samples may be native histograms.
func (r *Raw) NativeHistograms() bool { return r.hist.some.Load() }
