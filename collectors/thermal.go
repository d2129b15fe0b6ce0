package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
)

var (
	thermalTemp = Metric{Name: "node_thermal_zone_temp", Type: Gauge, Kind: Signed, Div: 1000,
		Help: "Zone temperature in Celsius"}
	coolingCurrent = Metric{Name: "node_cooling_device_cur_state", Type: Gauge, Kind: Signed,
		Help: "Current throttle state of the cooling device"}
	coolingMax = Metric{Name: "node_cooling_device_max_state", Type: Gauge, Kind: Signed,
		Help: "Maximum throttle state of the cooling device"}
)

// maxThermal bounds the zones and cooling devices; a server with 128 CPUs has as
// many of the latter.
const maxThermal = 4096

// thermalRow is a zone or a cooling device. Its type is a label, read when it
// appears.
type thermalRow struct {
	files []thermalFile
}

type thermalFile struct {
	attr
	metric *Metric
	labels []Label
	slot   int32 // slot + 1
}

// thermal reads class/thermal. A zone whose sensor does not answer is absent.
type thermal struct {
	dir  dir
	rows *table[thermalRow]
	buf  [attrBytes]byte
}

func newThermal(env Env) (Source, error) {
	s := &thermal{dir: newDir(filepath.Join(env.Sysfs, "class/thermal")), rows: newTable[thermalRow](maxThermal)}
	if err := s.dir.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir.path, err)
	}
	return s, nil
}

func (s *thermal) Read(out *Out) error {
	s.rows.begin()
	err := s.dir.each(func(name []byte, _ bool) {
		zone, isZone := bytes.CutPrefix(name, []byte("thermal_zone"))
		device, isDevice := bytes.CutPrefix(name, []byte("cooling_device"))
		if !isZone && !isDevice {
			return
		}
		r, state := s.rows.find(name)
		if r == nil {
			if state == rowOver {
				out.Stats.Overflow.Add(1)
			}
			return
		}
		if state != rowSame {
			// The number may have gone to another device.
			r.clear(out)
			s.init(r, filepath.Join(s.dir.path, string(name)), isZone, label(zone), label(device))
		}
		for i := range r.files {
			r.files[i].update(out, s.buf[:])
		}
	})
	s.rows.end(func(r *thermalRow) { r.clear(out) })
	if err != nil {
		return fmt.Errorf("list %s: %w", s.dir.path, err)
	}
	return nil
}

func (s *thermal) init(r *thermalRow, dir string, isZone bool, zone, device string) {
	text, _ := newAttr(filepath.Join(dir, "type")).read(s.buf[:])
	kind := Label{"type", label(text)}
	if isZone {
		r.update([]thermalFile{{attr: newAttr(filepath.Join(dir, "temp")), metric: &thermalTemp,
			labels: []Label{{"zone", zone}, kind}}})
		return
	}
	labels := []Label{{"name", device}, kind}
	r.update([]thermalFile{
		{attr: newAttr(filepath.Join(dir, "cur_state")), metric: &coolingCurrent, labels: labels},
		{attr: newAttr(filepath.Join(dir, "max_state")), metric: &coolingMax, labels: labels},
	})
}

// update keeps the slots where the labels are those that the row had before.
func (r *thermalRow) update(files []thermalFile) {
	if len(r.files) == len(files) && r.files[0].labels[1] == files[0].labels[1] {
		return
	}
	r.files = files
}

func (f *thermalFile) update(out *Out, buf []byte) {
	text, errno := f.read(buf)
	out.Stats.Bytes.Add(uint64(len(text)))
	v, ok := parseValue(text)
	if errno != 0 || !ok {
		if f.slot > 0 {
			out.Clear(int(f.slot - 1))
		}
		return
	}
	if f.slot == 0 {
		f.slot = int32(out.Add(f.metric, append([]Label(nil), f.labels...)...)) + 1
	}
	out.Set(int(f.slot-1), v)
}

func (r *thermalRow) clear(out *Out) {
	for _, f := range r.files {
		if f.slot > 0 {
			out.Clear(int(f.slot - 1))
		}
	}
}

func (s *thermal) Close() error {
	s.dir.close()
	return nil
}
