package collectors

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// hwmonKinds are the kinds of sensors (Documentation/hwmon/sysfs-interface.rst).
var hwmonKinds = []string{"vrm", "beep_enable", "update_interval", "in", "cpu", "fan", "pwm", "temp", "curr",
	"power", "energy", "humidity", "intrusion", "freq"}

// hwmonSensor is the files of one sensor by what they tell, as in KIND1_ELEMENT. The
// file KIND1 has the element "".
type hwmonSensor struct {
	kind   string
	number int
	files  map[string]string
	label  string
}

func (s *hwmonSensor) name() string { return s.kind + strconv.Itoa(s.number) }

// hwmonSensors lists the sensors of a monitor, some of whose files may be in its
// device's directory.
func hwmonSensors(dir string) []*hwmonSensor {
	var all []*hwmonSensor
	for _, d := range []string{dir, filepath.Join(dir, "device")} {
		files, err := os.ReadDir(d)
		if err != nil {
			continue
		}
		for _, f := range files {
			kind, number, element, ok := splitSensor(f.Name())
			if !ok || !slices.Contains(hwmonKinds, kind) {
				continue
			}
			i := slices.IndexFunc(all, func(s *hwmonSensor) bool { return s.kind == kind && s.number == number })
			if i < 0 {
				i = len(all)
				all = append(all, &hwmonSensor{kind: kind, number: number, files: map[string]string{}})
			}
			all[i].files[element] = filepath.Join(d, f.Name())
		}
	}
	return all
}

// splitSensor takes temp12_max_alarm apart into temp, 12 and max_alarm.
func splitSensor(file string) (kind string, number int, element string, ok bool) {
	digits := strings.IndexAny(file, "0123456789")
	if digits < 0 {
		return file, 0, "", file != ""
	}
	if digits == 0 {
		return "", 0, "", false
	}
	rest := strings.TrimLeft(file[digits:], "0123456789")
	number, err := strconv.Atoi(file[digits : len(file)-len(rest)])
	if err != nil {
		return "", 0, "", false
	}
	if rest == "" {
		return file[:digits], number, "", true
	}
	element, ok = strings.CutPrefix(rest, "_")
	return file[:digits], number, element, ok && element != ""
}

// metric is what an element of the sensor is exported as, and under which sensor
// label; nil where it is not exported.
func (s *hwmonSensor) metric(element string) (*Metric, string) {
	if element == "label" {
		return nil, ""
	}
	m := &Metric{Name: "node_hwmon_" + s.kind, Type: Gauge, Kind: Signed}
	switch s.kind {
	case "beep_enable":
		m.Name, m.Help = "node_hwmon_beep_enabled", "Hardware beep enabled"
		return m, s.name()
	case "vrm":
		m.Name, m.Help = "node_hwmon_voltage_regulator_version", "Hardware voltage regulator"
		return m, s.name()
	case "update_interval":
		m.Name, m.Help, m.Div = "node_hwmon_update_interval_seconds", "Hardware monitor update interval", 1000
		return m, s.name()
	}
	_, bare := s.files[""]
	if element == "input" && bare {
		m.Name += "_input"
	} else if element != "input" && element != "" {
		m.Name += "_" + cleanName(element)
	}
	switch element {
	case "fault", "alarm":
		m.Help = "Hardware sensor " + element + " status (" + s.kind + ")"
		return m, s.name()
	case "beep":
		m.Name, m.Help = m.Name+"_enabled", "Hardware monitor sensor has beeping enabled"
		return m, s.name()
	}
	return s.withUnit(m, element)
}

// withUnit gives the metric the kernel's unit for the kind.
func (s *hwmonSensor) withUnit(m *Metric, element string) (*Metric, string) {
	unit := func(suffix string, div float64, help string) {
		m.Name, m.Div, m.Help = m.Name+suffix, div, "Hardware monitor "+help
	}
	of := " (" + element + ")"
	switch {
	case s.kind == "in", s.kind == "cpu":
		unit("_volts", 1e3, "for voltage"+of)
	case s.kind == "temp" && element == "":
		unit("_celsius", 1e3, "for temperature (input)")
	case s.kind == "temp" && element != "type":
		unit("_celsius", 1e3, "for temperature"+of)
	case s.kind == "curr":
		unit("_amps", 1e3, "for current"+of)
	case s.kind == "energy":
		unit("_joule_total", 1e6, "for joules used so far"+of)
		m.Type = Counter
	case s.kind == "power" && element == "accuracy":
		unit("", 1e6, "power meter accuracy, as a ratio")
	case s.kind == "power" && strings.HasPrefix(element, "average_interval"):
		unit("_seconds", 1e3, "power usage update interval"+of)
	case s.kind == "power":
		unit("_watt", 1e6, "for power usage in watts"+of)
	case s.kind == "humidity":
		unit("", 1e6, "for humidity, as a ratio (multiply with 100.0 to get the humidity as a percentage)"+of)
	case s.kind == "fan" && slices.Contains([]string{"input", "min", "max", "target"}, element):
		unit("_rpm", 0, "for fan revolutions per minute"+of)
	case s.kind == "freq" && element == "input":
		unit("_freq_mhz", 1e6, "for GPU frequency in MHz")
		if s.label == "" {
			return nil, ""
		}
		return m, cleanName(s.label)
	default:
		unit("", 0, s.kind+" element "+element)
	}
	return m, s.name()
}
