package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// netclassFields are the attributes of class/net/NAME that are numbers. speed is in
// megabits a second, and −1 where it is not known.
var netclassFields = [...]struct {
	file   string
	metric Metric
}{
	{"addr_assign_type", netclassMetric("address_assign_type")},
	{"carrier", netclassMetric("carrier")},
	{"carrier_changes", netclassCounter("carrier_changes_total")},
	{"carrier_up_count", netclassCounter("carrier_up_changes_total")},
	{"carrier_down_count", netclassCounter("carrier_down_changes_total")},
	{"dev_id", netclassMetric("device_id")},
	{"dormant", netclassMetric("dormant")},
	{"flags", netclassMetric("flags")},
	{"ifindex", netclassMetric("iface_id")},
	{"iflink", netclassMetric("iface_link")},
	{"link_mode", netclassMetric("iface_link_mode")},
	{"mtu", netclassMetric("mtu_bytes")},
	{"name_assign_type", netclassMetric("name_assign_type")},
	{"netdev_group", netclassMetric("net_dev_group")},
	{"speed", Metric{Name: "node_network_speed_bytes", Type: Gauge, Kind: Signed, Unit: "bytes", Mul: 1e6 / 8,
		Help: "Network device property: speed_bytes"}},
	{"tx_queue_len", netclassMetric("transmit_queue_length")},
	{"type", netclassMetric("protocol_type")},
	{"statistics/rx_nohandler", Metric{Name: "node_network_receive_nohandler_total", Type: Counter, Kind: Signed,
		Help: "Network device statistic receive_nohandler."}},
}

// netclassFlags is the place of flags, of which bit 0 says that the device is up.
const netclassFlags = 7

var (
	netclassUp = Metric{Name: "node_network_up", Type: Gauge, Kind: Signed,
		Help: "Value is 1 if operstate is 'up', 0 otherwise."}
	netclassInfo = Metric{Name: "node_network_info", Type: Gauge,
		Help: "Non-numeric data from /sys/class/net/<iface>, value is always 1."}
	// netclassTexts are labels of the info series; adminstate is made of the flags.
	netclassTexts = [...]string{"address", "broadcast", "duplex", "operstate", "ifalias"}
)

// netclassOperstate is the place of operstate in netclassTexts.
const netclassOperstate = 3

func netclassMetric(name string) Metric {
	return Metric{Name: "node_network_" + name, Type: Gauge, Kind: Signed, Help: "Network device property: " + name}
}

func netclassCounter(name string) Metric {
	m := netclassMetric(name)
	m.Type = Counter
	return m
}

type netclassRow struct {
	device  string
	ignored bool
	node    uint64 // of the device in sysfs: another has another
	nums    [len(netclassFields)]numAttr
	texts   [len(netclassTexts)]attr
	up      numAttr
	last    []byte // the texts that the info series was made of
	info    infoSet
}

type netclass struct {
	dir    dir
	filter filter
	rows   *table[netclassRow]
	keep   keeper
	buf    [attrBytes]byte
	now    []byte // texts of the device being read
}

func newNetclass(env Env) (Source, error) {
	if err := hostNet(env); err != nil {
		return nil, err
	}
	if err := hostSysfs(env); err != nil {
		return nil, err
	}
	s := &netclass{dir: newDir(filepath.Join(env.Sysfs, "class/net")), rows: newTable[netclassRow](maxInterfaces),
		filter: filter{exclude: env.option("netclass.ignored-devices", "")}}
	if err := s.dir.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir.path, err)
	}
	s.keep = newKeeper(env, s.dir.fd)
	return s, nil
}

func (s *netclass) Read(out *Out) error {
	s.rows.begin()
	err := s.dir.eachNode(func(node uint64, name []byte, regular bool) {
		if regular {
			return // bonding_masters
		}
		r, state := s.rows.find(name)
		if r == nil {
			if state == rowOver {
				out.Stats.Overflow.Add(1)
			}
			return
		}
		if state == rowNew {
			r.init(filepath.Join(s.dir.path, string(name)), label(name))
			r.ignored = s.filter.ignores(r.device)
		}
		if !r.ignored {
			if r.node != node {
				s.drop(r)
				r.node = node
			}
			s.device(out, r)
		}
	})
	s.rows.end(func(r *netclassRow) { s.drop(r); r.clear(out) })
	if err != nil {
		return fmt.Errorf("list %s: %w", s.dir.path, err)
	}
	return nil
}

func (r *netclassRow) init(dir, device string) {
	r.device = device
	for i := range r.nums {
		r.nums[i] = numAttr{attr: newAttr(filepath.Join(dir, netclassFields[i].file)),
			metric: &netclassFields[i].metric, label: Label{"device", device}}
	}
	for i, name := range netclassTexts {
		r.texts[i] = newAttr(filepath.Join(dir, name))
	}
	r.up = numAttr{metric: &netclassUp, label: Label{"device", device}}
}

func (s *netclass) device(out *Out, r *netclassRow) {
	adminstate := "unknown"
	for i := range r.nums {
		text, errno := s.keep.read(&r.nums[i].attr, s.buf[:])
		if r.nums[i].take(out, text, errno) && i == netclassFlags {
			adminstate = "down"
			if v, _ := out.Value(int(r.nums[i].slot - 1)); v&1 == 1 {
				adminstate = "up"
			}
		}
	}
	var ends [len(netclassTexts)]int
	s.now = s.now[:0]
	for i := range r.texts {
		text, _ := s.keep.read(&r.texts[i], s.buf[:])
		out.Stats.Bytes.Add(uint64(len(text)))
		if i == netclassOperstate {
			up := int64(0)
			if string(text) == "up" {
				up = 1
			}
			r.up.set(out, up)
		}
		s.now = append(s.now, text...)
		ends[i] = len(s.now)
		s.now = append(s.now, '\n') // no text has one
	}
	s.now = append(s.now, adminstate...)
	if r.info.active > 0 && bytes.Equal(s.now, r.last) {
		r.info.keep(out)
		return
	}
	r.last = append(r.last[:0], s.now...)
	labels := []Label{{"device", r.device}, {"adminstate", adminstate}}
	begin := 0
	for i, name := range netclassTexts {
		labels = append(labels, Label{name, label(s.now[begin:ends[i]])})
		begin = ends[i] + 1
	}
	r.info.set(out, &netclassInfo, labels)
}

// drop closes what is kept open of a device.
func (s *netclass) drop(r *netclassRow) {
	for i := range r.nums {
		s.keep.drop(&r.nums[i].attr)
	}
	for i := range r.texts {
		s.keep.drop(&r.texts[i])
	}
}

func (r *netclassRow) clear(out *Out) {
	for i := range r.nums {
		r.nums[i].clear(out)
	}
	r.up.clear(out)
	r.info.clear(out)
}

func (s *netclass) Close() error {
	for _, e := range s.rows.rows {
		s.drop(&e.row)
	}
	s.dir.close()
	return nil
}

// seriesless tells that the row has no series to keep a place for.
func (r *netclassRow) seriesless() bool { return r.ignored }
