package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	maxTextFiles  = 256
	maxTextBytes  = 1 << 20
	maxTextSeries = 10_000 // over the exporter's life
)

var (
	textError = Metric{Name: "node_textfile_scrape_error", Type: Gauge, Kind: Signed,
		Help: "1 if there was an error opening or reading a file, 0 otherwise"}
	textFileError = Metric{Name: "node_textfile_file_error", Type: Gauge, Kind: Signed,
		Help: "1 if there was an error opening or reading this file, 0 otherwise"}
	textMtime = Metric{Name: "node_textfile_mtime_seconds", Type: Gauge, Kind: Signed, Unit: "seconds",
		Help: "Unixtime mtime of textfiles successfully read."}
)

// textRow is one file. What it held when it was last good stays while it is bad.
type textRow struct {
	path   string
	file   *file
	last   []byte // content of the last read, good or bad
	read   bool
	failed bool
	said   bool // the log says that it failed
	series []textSeries
	mtime  int64
	errors int32 // slot + 1
	mtimes int32 // slot + 1
}

type textSeries struct {
	key   string
	slot  int32
	value int64
}

// textfile serves what other programs write into *.prom files of a directory. A file
// that is bad, half written, or has a series that another has, harms only itself.
type textfile struct {
	dirs   []*dir
	lost   []bool // by directory: the log says that it cannot be read
	faults faults
	rows   *table[textRow]
	key    []byte
	slots  map[string]int32    // every series that ever was
	owner  map[string]*textRow // who serves it now
	names  map[string]*Metric
	total  int32 // slot + 1
}

func newTextfile(env Env) (Source, error) {
	s := &textfile{faults: newFaults(env, "textfile"), rows: newTable[textRow](maxTextFiles),
		slots: map[string]int32{}, owner: map[string]*textRow{}, names: map[string]*Metric{}}
	for _, pattern := range env.TextfileDirs {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			paths = []string{pattern} // not there yet
		}
		for _, path := range paths {
			d := newDir(path)
			s.dirs = append(s.dirs, &d)
		}
	}
	return s, nil
}

func (s *textfile) Read(out *Out) error {
	failed := false
	s.rows.begin()
	for i, d := range s.dirs {
		err := d.each(func(name []byte, _ bool) {
			if bytes.HasSuffix(name, []byte(".prom")) {
				failed = s.visit(out, d.path, name) || failed
			}
		})
		s.tell(i, err)
		failed = failed || err != nil
	}
	s.rows.end(func(r *textRow) { s.gone(out, r) })
	if s.total == 0 {
		s.total = int32(out.Add(&textError)) + 1
	}
	out.Set(int(s.total-1), oneIf(failed))
	return nil
}

// tell logs once that a directory cannot be read, and once that it can again.
func (s *textfile) tell(i int, err error) {
	if s.lost == nil {
		s.lost = make([]bool, len(s.dirs))
	}
	switch {
	case err != nil && !s.lost[i]:
		s.faults.log.Warn("directory of text files cannot be read, it is tried again", "directory", s.dirs[i].path, "err", err)
	case err == nil && s.lost[i]:
		s.faults.log.Info("directory of text files is there", "directory", s.dirs[i].path)
	}
	s.lost[i] = err != nil
}

func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// visit reads one file and tells whether it is bad.
func (s *textfile) visit(out *Out, dir string, name []byte) bool {
	s.key = append(append(append(s.key[:0], dir...), '/'), name...)
	r, state := s.rows.find(s.key)
	if r == nil {
		if state == rowOver {
			s.faults.overflow(out, s.key)
		}
		return true
	}
	if state == rowNew {
		r.path = string(s.key)
		r.file = laterFile(r.path, 4<<10, true)
		r.file.max = maxTextBytes
	}
	r.update(s, out)
	if r.errors == 0 {
		r.errors = int32(out.Add(&textFileError, Label{"file", label([]byte(r.path))})) + 1
	}
	out.Set(int(r.errors-1), oneIf(r.failed))
	for _, t := range r.series {
		out.Set(int(t.slot), t.value)
	}
	if r.mtimes > 0 {
		out.Set(int(r.mtimes-1), r.mtime)
	}
	return r.failed
}

// update takes the file's content over if it changed and is good.
func (r *textRow) update(s *textfile, out *Out) {
	text, err := r.file.read()
	out.Stats.Bytes.Add(uint64(len(text)))
	if err == nil && r.read && bytes.Equal(text, r.last) {
		r.touch(out)
		return
	}
	r.read = err == nil
	r.last = append(r.last[:0], text...)
	if err == nil {
		var p *promText
		if p, err = parsePromText(text, maxTextSeries); err == nil {
			err = s.take(out, r, p)
		}
	}
	r.failed = err != nil
	r.touch(out)
	if r.failed && !r.said {
		s.faults.log.Warn("text file left out, what it held when it was good is kept", "file", r.path, "err", err)
	}
	r.said = r.failed
}

// touch notes when a good file was changed.
func (r *textRow) touch(out *Out) {
	var st unix.Stat_t
	if r.failed || r.file.fd < 0 || unix.Fstat(r.file.fd, &st) != nil {
		return
	}
	if r.mtimes == 0 {
		r.mtimes = int32(out.Add(&textMtime, Label{"file", label([]byte(r.path))})) + 1
	}
	r.mtime = st.Mtim.Nano() / 1e9
}

// take makes the samples the file's series, or none of them if one cannot be.
func (s *textfile) take(out *Out, r *textRow, p *promText) error {
	var fresh []textSeries
	for i := range p.samples {
		key := p.samples[i].key()
		if o := s.owner[key]; o != nil && o != r {
			return fmt.Errorf("series %s: file %s has it too", p.samples[i].name, o.path)
		}
		if _, known := s.slots[key]; !known {
			if len(s.slots) >= maxTextSeries {
				return errors.New("too many series in text files")
			}
			if out.taken(p.samples[i].name, p.samples[i].labels) {
				return fmt.Errorf("series %s: the exporter has it itself", p.samples[i].name)
			}
		}
		fresh = append(fresh, textSeries{key: key, value: int64(math.Float64bits(p.samples[i].value))})
	}
	s.drop(out, r)
	for i := range fresh {
		slot, known := s.slots[fresh[i].key]
		if !known {
			slot = int32(out.Add(s.metric(p, p.samples[i].name), p.samples[i].labels...))
			s.slots[fresh[i].key] = slot
		}
		fresh[i].slot = slot
		s.owner[fresh[i].key] = r
	}
	r.series = fresh
	return nil
}

// metric is the metric of that name; what the first file says of it holds.
func (s *textfile) metric(p *promText, name string) *Metric {
	if m := s.names[name]; m != nil {
		return m
	}
	t, help := p.family(name)
	m := &Metric{Name: name, Help: firstOf(help, "Metric read from a text file."), Type: t, Kind: Float}
	s.names[name] = m
	return m
}

// drop ends the series of a file.
func (s *textfile) drop(out *Out, r *textRow) {
	for _, t := range r.series {
		out.Clear(int(t.slot))
		delete(s.owner, t.key)
	}
	r.series = nil
}

func (s *textfile) gone(out *Out, r *textRow) {
	s.drop(out, r)
	r.file.close()
	r.read, r.failed, r.said, r.last = false, false, false, r.last[:0]
	for _, slot := range []int32{r.errors, r.mtimes} {
		if slot > 0 {
			out.Clear(int(slot - 1))
		}
	}
	r.mtimes = 0
}

func (s *textfile) Close() error {
	for _, d := range s.dirs {
		d.close()
	}
	for _, e := range s.rows.rows {
		e.row.file.close()
	}
	return nil
}
