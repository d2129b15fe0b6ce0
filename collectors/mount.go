package collectors

import (
	"bytes"
	"errors"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// mount is a row of mountinfo (show_mountinfo in fs/proc_namespace.c); the slices lie
// in the row.
type mount struct {
	major, minor               uint64
	mountpoint, fstype, source []byte // as the kernel escapes them
	readonly                   bool
}

// parseMount takes apart a row like
//
//	36 35 98:0 /root /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue
//
// in which any number of fields may stand before the dash.
func parseMount(line []byte) (m mount, ok bool) {
	var options []byte
	at := 0
	for i := range 6 {
		start, end := field(line, at)
		if start == end {
			return m, false
		}
		switch f := line[start:end]; i {
		case 2:
			major, minor, both := bytes.Cut(f, []byte{':'})
			var f1, f2 found
			m.major, _, f1 = number(major, 0)
			m.minor, _, f2 = number(minor, 0)
			if !both || f1 != good || f2 != good {
				return m, false
			}
		case 4:
			m.mountpoint = f
		case 5:
			options = f
		}
		at = end
	}
	dash := bytes.Index(line[at:], []byte(" - "))
	if dash < 0 {
		return m, false
	}
	at += dash + len(" - ")
	start, end := field(line, at)
	m.fstype = line[start:end]
	start, end = field(line, end)
	m.source = line[start:end]
	start, end = field(line, end)
	super := line[start:end]
	if len(m.fstype) == 0 || len(m.source) == 0 {
		return m, false
	}
	m.readonly = hasOption(options, "ro") || hasOption(super, "ro") || hasOption(super, "emergency_ro")
	return m, true
}

// appendKey appends what tells a mount from the others: its labels.
func (m *mount) appendKey(dst []byte) []byte {
	dst = append(append(dst, m.source...), ' ')
	dst = append(append(dst, m.mountpoint...), ' ')
	return append(dst, m.fstype...)
}

// hasOption tells whether a list separated by commas has the option.
func hasOption(list []byte, option string) bool {
	for len(list) > 0 {
		o, rest, _ := bytes.Cut(list, []byte{','})
		if string(o) == option {
			return true
		}
		list = rest
	}
	return false
}

// unescape undoes the kernel's \040 for a space and its like.
func unescape(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	var plain []byte
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+3 < len(b) {
			if c, err := strconv.ParseUint(string(b[i+1:i+4]), 8, 8); err == nil {
				plain = append(plain, byte(c))
				i += 3
				continue
			}
		}
		plain = append(plain, b[i])
	}
	return plain
}

// mountRow is a mount that is asked for its size by a goroutine of its own, which
// exists while the mount does.
type mountRow struct {
	device, mountpoint, fstype string
	path                       string
	ignored, readonly          bool

	worker *mountWorker
	busy   bool // the worker was asked and has not answered
	said   bool // the log says that it fails
	stat   unix.Statfs_t
	err    error
	sets   map[string]*mountSlots
	shown  *mountSlots
	number [2]uint64 // of the device
	info   infoSet
}

// mountSlots are the series under one value of the label device_error.
type mountSlots [fsMetrics]int32

type mountWorker struct {
	ask    chan struct{}
	answer chan error
	stat   unix.Statfs_t
}

func (r *mountRow) init(m mount, root string) {
	point := string(unescape(m.mountpoint))
	r.mountpoint = label([]byte(stripRoot(root, point)))
	r.path = filepath.Join(root, stripRoot(root, point))
	r.device, r.fstype = label(unescape(m.source)), label(m.fstype)
	r.sets = map[string]*mountSlots{}
}

// ask starts a read, unless one is outstanding.
func (r *mountRow) ask(statfs func([]byte, *unix.Statfs_t) error) {
	if r.worker == nil {
		w := &mountWorker{ask: make(chan struct{}, 1), answer: make(chan error, 1)}
		r.worker = w
		go func(path []byte) {
			for range w.ask {
				err := statfs(path, &w.stat)
				w.answer <- err
			}
		}(append([]byte(r.path), 0))
	}
	if !r.busy {
		r.busy = true
		r.worker.ask <- struct{}{}
	}
}

// wait takes the answer. It waits for it while there is patience, and tells whether
// there still is.
func (r *mountRow) wait(patience <-chan time.Time, patient bool) bool {
	if !r.busy {
		return patient
	}
	select {
	case err := <-r.worker.answer:
		r.take(err)
		return patient
	default:
	}
	if patient && !r.stuck() {
		select {
		case err := <-r.worker.answer:
			r.take(err)
			return true
		case <-patience:
			patient = false
		}
	}
	return patient
}

// stuck tells that the mount did not answer the last read either.
func (r *mountRow) stuck() bool { return errors.Is(r.err, errMountStuck) }

func (r *mountRow) take(err error) {
	r.busy = false
	r.stat, r.err = r.worker.stat, err
}

// report sets the series.
func (r *mountRow) report(out *Out) {
	if r.busy {
		r.err = errMountStuck
	}
	slots := r.slots(out)
	if slots != r.shown {
		r.clear(out)
		r.shown = slots
	}
	ro, failed := int64(0), int64(0)
	if r.readonly {
		ro = 1
	}
	if r.err != nil {
		failed = 1
	}
	out.Set(int(slots[fsReadonly]), ro)
	out.Set(int(slots[fsError]), failed)
	if r.err != nil {
		return
	}
	block := uint64(r.stat.Bsize)
	out.Set(int(slots[fsSize]), int64(r.stat.Blocks*block))
	out.Set(int(slots[fsFree]), int64(r.stat.Bfree*block))
	out.Set(int(slots[fsAvail]), int64(r.stat.Bavail*block))
	out.Set(int(slots[fsFiles]), int64(r.stat.Files))
	out.Set(int(slots[fsFilesFree]), int64(r.stat.Ffree))
	if r.info.active > 0 {
		r.info.keep(out)
		return
	}
	r.info.set(out, &filesystemMount, []Label{{"device", r.device}, {"mountpoint", r.mountpoint},
		{"major", strconv.FormatUint(r.number[0], 10)}, {"minor", strconv.FormatUint(r.number[1], 10)}})
}

// slots finds or makes the series for the state that the mount is in.
func (r *mountRow) slots(out *Out) *mountSlots {
	if r.shown != nil && r.sets[errorLabel(r.err)] == r.shown {
		return r.shown
	}
	text := errorLabel(r.err)
	if s := r.sets[text]; s != nil {
		return s
	}
	s := new(mountSlots)
	for i := range filesystemMetrics {
		if r.err != nil && i != fsReadonly && i != fsError {
			s[i] = -1
			continue
		}
		s[i] = int32(out.Add(&filesystemMetrics[i], Label{"device", r.device}, Label{"device_error", text},
			Label{"fstype", r.fstype}, Label{"mountpoint", r.mountpoint}))
	}
	r.sets[text] = s
	return s
}

func (r *mountRow) clear(out *Out) {
	if r.shown != nil {
		for _, slot := range r.shown {
			if slot >= 0 {
				out.Clear(int(slot))
			}
		}
	}
	r.info.clear(out)
}

// gone ends a mount that was unmounted. One that is stuck keeps its goroutine, so
// that it has no second one if it comes back.
func (r *mountRow) gone(out *Out) {
	r.clear(out)
	r.shown = nil
	if !r.busy {
		r.stop()
	}
}

// stop ends the goroutine; one that is stuck ends when the kernel lets go of it.
func (r *mountRow) stop() {
	if r.worker != nil {
		close(r.worker.ask)
	}
	r.worker, r.busy, r.err = nil, false, nil
}

// seriesless tells that the row has no series to keep a place for.
func (r *mountRow) seriesless() bool { return r.ignored }
