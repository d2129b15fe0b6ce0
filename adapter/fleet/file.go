package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// file is the JSON document the devices are kept in.
type file struct {
	Version int `json:"version"`
	// Saved is when it was written, by which the next start knows how long the adapter
	// was down; Absences are the times before.
	Saved    time.Time `json:"saved,omitzero"`
	Absences []Span    `json:"absences,omitempty"`
	Devices  []Device  `json:"devices"`
}

const (
	fileVersion = 1
	// maxFileBytes is far more than the largest fleet takes: 10,000 devices of 1 KiB.
	maxFileBytes = 64 << 20
)

// load reads the file. No file is no devices.
func (f *Fleet) load() error {
	b, err := readFile(f.cfg.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the list of devices: %w", err)
	}
	var doc file
	if err := json.Unmarshal(b, &doc); err != nil {
		f.setAside(err)
		return nil
	}
	if doc.Version != fileVersion {
		f.setAside(fmt.Errorf("version %d is not known", doc.Version))
		return nil
	}
	f.absent(&doc)
	for i := range doc.Devices {
		d := &doc.Devices[i]
		if !d.tidy() || len(f.devices) >= f.cfg.MaxDevices {
			continue
		}
		f.devices[d.Instance] = d
		if d.Sender != "" {
			s := sender{id: d.Sender, interval: time.Duration(d.IntervalSeconds * float64(time.Second))}
			f.gates[d.Instance] = &gate{holder: holder{id: d.Sender, seen: d.LastPush, patience: s.patience()}}
		}
	}
	return nil
}

// absent takes over when the adapter was down, with the time from the file's last
// writing to now.
func (f *Fleet) absent(doc *file) {
	now := f.cfg.Now().Round(0)
	for _, a := range append(doc.Absences, Span{doc.Saved, now}) {
		if a.From.IsZero() || !a.To.After(a.From) || a.To.After(now) || now.Sub(a.To) > outageMemory {
			continue
		}
		f.absences = append(f.absences, a)
	}
	f.absences = f.absences[max(0, len(f.absences)-maxAbsences):]
}

func readFile(path string) ([]byte, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxFileBytes))
}

// setAside renames a damaged file, so that it can be looked at and does not stand in
// the way.
func (f *Fleet) setAside(why error) {
	aside := f.cfg.Path + ".damaged-" + f.cfg.Now().UTC().Format("20060102T150405.000")
	if err := os.Rename(f.cfg.Path, aside); err != nil {
		f.cfg.Logger.Warn("the list of devices is damaged and will be overwritten", "file", f.cfg.Path, "damage", why, "err", err)
		return
	}
	f.cfg.Logger.Warn("the list of devices is damaged and was moved aside", "file", aside, "damage", why)
}

// save writes the file if anything is known or changed since it was written last: a
// new one beside it, then the name. Also what did not change is written, for its time.
func (f *Fleet) save() error {
	f.mu.Lock()
	dirty := f.dirty || len(f.devices) > 0
	f.dirty = false
	f.mu.Unlock()
	if !dirty || f.cfg.Path == "" {
		return nil
	}
	err := writeFile(f.cfg.Path, file{Version: fileVersion, Saved: f.cfg.Now().Round(0), Absences: f.absences, Devices: f.Devices()})
	if err != nil {
		f.mu.Lock()
		f.dirty = true
		f.mu.Unlock()
		return fmt.Errorf("write the list of devices: %w", err)
	}
	f.metrics.saved.Set(float64(f.cfg.Now().UnixNano()) / float64(time.Second))
	return nil
}

// writeFile replaces path as a whole: whenever the machine stops, the old or the new
// document is there.
func writeFile(path string, doc file) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	enc := json.NewEncoder(tmp)
	enc.SetIndent("", " ")
	if err := errors.Join(enc.Encode(doc), tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
