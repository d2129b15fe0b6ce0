package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// maxClassDevices bounds the devices of a class.
const maxClassDevices = 256

// class says what is read of each device in a directory under sys/class.
type class struct {
	dir   string // under the sysfs root
	label string // that names the device
	nums  []classNum
	// info is a series whose labels are texts; nil leaves it out. A text is a file,
	// and the label of the same name.
	info  *Metric
	texts []string
	skip  func(name []byte) bool // may be nil
	// ignored is the option that says which devices are left out, or empty.
	ignored string
}

// classNum is a file that is one number.
type classNum struct {
	file   string
	metric *Metric // Kind must be Signed
}

type classRow struct {
	device  string
	ignored bool
	nums    []numAttr
	texts   []attr
	last    []byte // the texts that the info series was made of
	info    infoSet
}

// classSource reads the devices of a class. An attribute that a device does not have
// is absent.
type classSource struct {
	class  *class
	filter filter
	dir    dir
	rows   *table[classRow]
	buf    [attrBytes]byte
	now    []byte
}

func newClassSource(env Env, c *class) (Source, error) {
	s := &classSource{class: c, dir: newDir(filepath.Join(env.Sysfs, c.dir)), rows: newTable[classRow](maxClassDevices)}
	s.filter.exclude = env.option(c.ignored, "")
	if err := s.dir.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir.path, err)
	}
	return s, nil
}

func (s *classSource) Read(out *Out) error {
	s.rows.begin()
	err := s.dir.each(func(name []byte, regular bool) {
		if regular || s.class.skip != nil && s.class.skip(name) {
			return
		}
		r, state := s.rows.find(name)
		if r == nil {
			if state == rowOver {
				out.Stats.Overflow.Add(1)
			}
			return
		}
		if state == rowNew {
			r.init(s.class, filepath.Join(s.dir.path, string(name)), label(name))
			r.ignored = s.filter.ignores(r.device)
		}
		if !r.ignored {
			s.device(out, r)
		}
	})
	s.rows.end(func(r *classRow) {
		for i := range r.nums {
			r.nums[i].clear(out)
		}
		r.info.clear(out)
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", s.dir.path, err)
	}
	return nil
}

func (r *classRow) init(c *class, dir, device string) {
	r.device = device
	for _, n := range c.nums {
		r.nums = append(r.nums, numAttr{attr: newAttr(filepath.Join(dir, n.file)), metric: n.metric, label: Label{c.label, device}})
	}
	for _, name := range c.texts {
		r.texts = append(r.texts, newAttr(filepath.Join(dir, name)))
	}
}

func (s *classSource) device(out *Out, r *classRow) {
	for i := range r.nums {
		r.nums[i].update(out, s.buf[:])
	}
	if s.class.info == nil {
		return
	}
	s.now = s.now[:0]
	for i := range r.texts {
		text, _ := r.texts[i].read(s.buf[:])
		out.Stats.Bytes.Add(uint64(len(text)))
		s.now = append(append(s.now, text...), '\n')
	}
	if r.info.active > 0 && bytes.Equal(s.now, r.last) {
		r.info.keep(out)
		return
	}
	r.last = append(r.last[:0], s.now...)
	labels := []Label{{s.class.label, r.device}}
	rest := s.now
	for _, name := range s.class.texts {
		var text []byte
		text, rest, _ = bytes.Cut(rest, []byte{'\n'})
		labels = append(labels, Label{name, label(text)})
	}
	r.info.set(out, s.class.info, labels)
}

func (s *classSource) Close() error {
	s.dir.close()
	return nil
}

// seriesless tells that the row has no series to keep a place for.
func (r *classRow) seriesless() bool { return r.ignored }
