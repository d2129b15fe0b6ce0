package collectors

import (
	"fmt"
	"path/filepath"
	"strings"
)

// maxSensors bounds what the monitors of one machine may add.
const maxSensors = 4096

// hwmon reads class/hwmon. What is there is listed when a monitor comes or goes;
// between that, only the files are read.
type hwmon struct {
	dir    dir
	faults faults
	filter [2]filter        // of chips, of sensors
	chips  *table[struct{}] // the directories at the last read
	files  []hwmonFile
	slots  map[string]int32 // every series that ever was, by its name
	buf    [attrBytes]byte
}

// hwmonFile is a file of a monitor and the series it fills. A series that does not
// change has no file.
type hwmonFile struct {
	attr
	slot  int32
	fixed bool
	flag  bool // only "1" is true
}

func newHwmon(env Env) (Source, error) {
	s := &hwmon{dir: newDir(filepath.Join(env.Sysfs, "class/hwmon")), faults: newFaults(env, "hwmon"),
		chips: newTable[struct{}](maxSensors), slots: map[string]int32{},
		filter: [2]filter{env.filter("hwmon.chip", ""), env.filter("hwmon.sensor", "")}}
	if err := s.dir.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir.path, err)
	}
	return s, nil
}

func (s *hwmon) Read(out *Out) error {
	changed := false
	s.chips.begin()
	err := s.dir.each(func(name []byte, regular bool) {
		if regular {
			return
		}
		if r, state := s.chips.find(name); r != nil && state != rowSame {
			changed = true
		}
	})
	s.chips.end(func(*struct{}) { changed = true })
	if err != nil {
		return fmt.Errorf("list %s: %w", s.dir.path, err)
	}
	if changed {
		s.scan(out)
	}
	for i := range s.files {
		s.read(out, &s.files[i])
	}
	return nil
}

func (s *hwmon) read(out *Out, f *hwmonFile) {
	if f.fixed {
		out.Set(int(f.slot), 1)
		return
	}
	text, errno := f.attr.read(s.buf[:])
	out.Stats.Bytes.Add(uint64(len(text)))
	v, ok := parseValue(text)
	switch {
	case f.flag && errno == 0:
		v = 0
		if string(text) == "1" {
			v = 1
		}
		out.Set(int(f.slot), v)
	case errno != 0 || !ok:
		out.Clear(int(f.slot)) // a sensor that does not answer
	default:
		out.Set(int(f.slot), v)
	}
}

// scan lists the monitors anew.
func (s *hwmon) scan(out *Out) {
	out.ClearAll()
	s.files = s.files[:0]
	var names []string
	for _, i := range s.chips.order {
		names = append(names, s.chips.rows[i].key)
	}
	for _, c := range hwmonChips(s.dir.path, names) {
		if !s.filter[0].ignores(c.label) {
			s.chip(out, c)
		}
	}
}

func (s *hwmon) chip(out *Out, c hwmonChip) {
	if c.human != "" {
		s.add(out, hwmonFile{fixed: true}, &Metric{Name: "node_hwmon_chip_names", Type: Gauge,
			Help: "Annotation metric for human-readable chip names"}, Label{"chip", c.label}, Label{"chip_name", c.human})
	}
	for _, sensor := range hwmonSensors(c.dir) {
		name := sensor.name()
		if s.filter[1].ignores(c.label + ";" + name) {
			continue
		}
		if text, ok := sensor.files["label"]; ok {
			b, _ := newAttr(text).read(s.buf[:])
			sensor.label = label(b)
			s.add(out, hwmonFile{fixed: true}, &Metric{Name: "node_hwmon_sensor_label", Type: Gauge,
				Help: "Label for given chip and sensor"},
				Label{"chip", c.label}, Label{"label", sensor.label}, Label{"sensor", name})
		}
		for element, path := range sensor.files {
			m, as := sensor.metric(element)
			if m == nil {
				continue
			}
			s.add(out, hwmonFile{attr: newAttr(path), flag: sensor.kind == "beep_enable"}, m,
				Label{"chip", c.label}, Label{"sensor", as})
		}
	}
}

// add adds a file and its series, which is the one of that name if there ever was.
func (s *hwmon) add(out *Out, f hwmonFile, m *Metric, labels ...Label) {
	key := m.Name
	for _, l := range labels {
		key += "\x00" + l.Value
	}
	slot, ok := s.slots[key]
	if !ok {
		if len(s.slots) >= maxSensors {
			s.faults.overflow(out, []byte(key))
			return
		}
		slot = int32(out.Add(m, labels...))
		s.slots[key] = slot
	}
	f.slot = slot
	s.files = append(s.files, f)
}

func (s *hwmon) Close() error {
	s.dir.close()
	return nil
}

// hwmonChip is a directory hwmonN.
type hwmonChip struct {
	dir   string
	label string // of the chip: stable, and of no other
	human string // what the driver calls itself
}

// hwmonChips names the monitors. Their numbers depend on the order in which modules
// were loaded, so the place of the device in the tree is the name; where several
// monitors share it, the driver's name, or at last the number, tells them apart.
func hwmonChips(dir string, names []string) []hwmonChip {
	var chips []hwmonChip
	places, drivers := map[string]int{}, map[string]int{}
	for _, name := range names {
		c := hwmonChip{dir: filepath.Join(dir, name)}
		if text, err := ReadFile(filepath.Join(c.dir, "name")); err == nil {
			c.human = cleanName(string(text))
		}
		c.label = firstOf(hwmonPlace(c.dir), c.human, cleanName(name))
		places[c.label]++
		drivers[c.label+"\x00"+c.human]++
		chips = append(chips, c)
	}
	for i := range chips {
		c := &chips[i]
		if places[c.label] < 2 {
			continue
		}
		suffix := c.human
		if suffix == "" || drivers[c.label+"\x00"+c.human] > 1 {
			suffix = cleanName(filepath.Base(c.dir))
		}
		c.label += "_" + suffix
	}
	return chips
}

// hwmonPlace makes a name of the device's bus and its own.
func hwmonPlace(dir string) string {
	device, err := filepath.EvalSymlinks(filepath.Join(dir, "device"))
	if err != nil {
		return ""
	}
	bus, name := cleanName(filepath.Base(filepath.Dir(device))), cleanName(filepath.Base(device))
	if bus != "" && name != "" {
		return bus + "_" + name
	}
	return name
}

// cleanName makes lower-case letters, digits and underscores of a name.
func cleanName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == ':' {
			return r
		}
		return '_'
	}, strings.ToLower(strings.TrimSpace(s)))
	return strings.Trim(s, "_")
}
