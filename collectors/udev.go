package collectors

import (
	"bytes"
	"math"
	"strconv"
)

var (
	diskFilesystemInfo = Metric{Name: "node_disk_filesystem_info", Type: Gauge, Help: "Info about disk filesystem."}
	diskMapperInfo     = Metric{Name: "node_disk_device_mapper_info", Type: Gauge, Help: "Info about disk device mapper."}
)

// diskATA are properties of ATA disks that are numbers.
var diskATA = [...]struct {
	property string
	metric   Metric
}{
	{"ID_ATA_WRITE_CACHE", ataMetric("write_cache", "ATA disk has a write cache.")},
	{"ID_ATA_WRITE_CACHE_ENABLED", ataMetric("write_cache_enabled", "ATA disk has its write cache enabled.")},
	{"ID_ATA_ROTATION_RATE_RPM", ataMetric("rotation_rate_rpm", "ATA disk rotation rate in RPMs (0 for SSDs).")},
}

func ataMetric(name, help string) Metric {
	return Metric{Name: "node_disk_ata_" + name, Type: Gauge, Kind: Float, Help: help}
}

// diskUdev is what udev knows of a disk. Its record is read when the disk appears;
// where udev does not run, as on routers, there is nothing.
type diskUdev struct {
	filesystem, mapper infoSet
	ata                [len(diskATA)]int32 // slot + 1
	values             [len(diskATA)]int64
	has                [len(diskATA)]bool
}

// learn makes the series of the record's properties.
func (d *diskUdev) learn(out *Out, device string, props map[string]string) {
	d.filesystem.clear(out)
	d.mapper.clear(out)
	if t := props["ID_FS_TYPE"]; t != "" {
		d.filesystem.set(out, &diskFilesystemInfo, []Label{{"device", device}, {"type", t},
			{"usage", props["ID_FS_USAGE"]}, {"uuid", props["ID_FS_UUID"]}, {"version", props["ID_FS_VERSION"]}})
	}
	if name := props["DM_NAME"]; name != "" {
		d.mapper.set(out, &diskMapperInfo, []Label{{"device", device}, {"name", name}, {"uuid", props["DM_UUID"]},
			{"vg_name", props["DM_VG_NAME"]}, {"lv_name", props["DM_LV_NAME"]}, {"lv_layer", props["DM_LV_LAYER"]}})
	}
	for i := range diskATA {
		v, err := strconv.ParseFloat(props[diskATA[i].property], 64)
		d.has[i] = err == nil && props["ID_ATA"] != ""
		d.values[i] = int64(math.Float64bits(v))
		if d.has[i] && d.ata[i] == 0 {
			d.ata[i] = int32(out.Add(&diskATA[i].metric, Label{"device", device})) + 1
		}
	}
	d.keep(out)
}

// keep reports what was learnt.
func (d *diskUdev) keep(out *Out) {
	d.filesystem.keep(out)
	d.mapper.keep(out)
	for i, slot := range d.ata {
		switch {
		case d.has[i]:
			out.Set(int(slot-1), d.values[i])
		case slot > 0:
			out.Clear(int(slot - 1))
		}
	}
}

func (d *diskUdev) clear(out *Out) {
	d.filesystem.clear(out)
	d.mapper.clear(out)
	for _, slot := range d.ata {
		if slot > 0 {
			out.Clear(int(slot - 1))
		}
	}
}

// readUdev reads the properties of a udev record; none where there is no record.
func readUdev(path string) map[string]string {
	text, err := ReadFile(path)
	if err != nil {
		return nil
	}
	return parseUdev(text)
}

func parseUdev(text []byte) map[string]string {
	props := make(map[string]string)
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		if prop, ok := bytes.CutPrefix(line, []byte("E:")); ok {
			if key, value, ok := bytes.Cut(prop, []byte{'='}); ok {
				props[string(key)] = label(value)
			}
		}
	}
	return props
}
