package collectors

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

var dmiInfo = Metric{Name: "node_dmi_info", Type: Gauge,
	Help: "A metric with a constant '1' value labeled by bios_date, bios_release, bios_vendor, bios_version, " +
		"board_asset_tag, board_name, board_serial, board_vendor, board_version, chassis_asset_tag, " +
		"chassis_serial, chassis_vendor, chassis_version, product_family, product_name, product_serial, " +
		"product_sku, product_uuid, product_version, system_vendor if provided by DMI."}

// dmiFiles are the attributes of class/dmi/id, which are the labels but for sys_vendor.
// Serial numbers can be read by root only.
var dmiFiles = []string{"bios_date", "bios_release", "bios_vendor", "bios_version", "board_asset_tag", "board_name",
	"board_serial", "board_vendor", "board_version", "chassis_asset_tag", "chassis_serial", "chassis_vendor",
	"chassis_version", "product_family", "product_name", "product_serial", "product_sku", "product_uuid",
	"product_version", "sys_vendor"}

// dmi is read once: the firmware's tables do not change while the machine runs.
type dmi struct {
	labels []Label
	info   infoSet
}

func newDMI(env Env) (Source, error) {
	dir := filepath.Join(env.Sysfs, "class/dmi/id")
	s := &dmi{}
	buf := make([]byte, attrBytes)
	for _, name := range dmiFiles {
		text, errno := newAttr(filepath.Join(dir, name)).read(buf)
		if errno != 0 || len(text) == 0 {
			continue
		}
		l := Label{name, label(text)}
		if name == "sys_vendor" {
			l.Name = "system_vendor"
		}
		s.labels = append(s.labels, l)
	}
	if len(s.labels) == 0 {
		return nil, fmt.Errorf("read %s: %w", dir, unix.ENOENT)
	}
	return s, nil
}

func (s *dmi) Read(out *Out) error {
	if s.info.active == 0 {
		s.info.set(out, &dmiInfo, s.labels)
	}
	s.info.keep(out)
	return nil
}

func (s *dmi) Close() error { return nil }
