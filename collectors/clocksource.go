package collectors

import (
	"bytes"
	"path/filepath"
	"strconv"
)

var (
	clockSourceAvailable = Metric{Name: "node_time_clocksource_available_info", Type: Gauge,
		Help: "Available clocksources read from '/sys/devices/system/clocksource'."}
	clockSourceCurrent = Metric{Name: "node_time_clocksource_current_info", Type: Gauge,
		Help: "Current clocksource read from '/sys/devices/system/clocksource'."}
)

// clockSource is one directory clocksourceN. The kernel drops a source that it
// finds unstable, so both files are read again and again.
type clockSource struct {
	device             string
	current, available *file
	last               [2][]byte
	info               infoSet
	names              *table[infoSet]
}

func openClockSources(dir string) []*clockSource {
	var all []*clockSource
	dirs, err := filepath.Glob(filepath.Join(dir, "clocksource[0-9]*"))
	if err != nil {
		return nil
	}
	for i, d := range dirs {
		current, err := openFile(filepath.Join(d, "current_clocksource"), 256, true)
		if err != nil {
			continue
		}
		available, err := openFile(filepath.Join(d, "available_clocksource"), 256, true)
		if err != nil {
			current.close()
			continue
		}
		all = append(all, &clockSource{device: strconv.Itoa(i), current: current, available: available,
			names: newTable[infoSet](maxInfos)})
	}
	return all
}

func (c *clockSource) read(out *Out) {
	if text, err := c.current.readInto(out); err != nil {
		c.info.clear(out)
		c.last[0] = c.last[0][:0]
	} else if !bytes.Equal(text, c.last[0]) || c.info.active == 0 {
		c.last[0] = append(c.last[0][:0], text...)
		c.info.set(out, &clockSourceCurrent, c.labels(trim(text)))
	} else {
		c.info.keep(out)
	}
	text, err := c.available.readInto(out)
	if err != nil {
		text = nil
	}
	c.names.begin()
	for start, end := field(text, 0); start < end && text[start] != '\n'; start, end = field(text, end) {
		name := trim(text[start:end])
		info, state := c.names.find(name)
		switch {
		case info == nil:
		case state == rowSame:
			info.keep(out)
		default:
			info.set(out, &clockSourceAvailable, c.labels(name))
		}
	}
	c.names.end(func(i *infoSet) { i.clear(out) })
}

func (c *clockSource) labels(name []byte) []Label {
	return []Label{{"device", c.device}, {"clocksource", label(name)}}
}
