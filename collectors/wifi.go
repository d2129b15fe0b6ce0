package collectors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

var (
	wifiFrequency = Metric{Name: "node_wifi_interface_frequency_hertz", Type: Gauge, Unit: "hertz", Mul: 1e6,
		Help: "The current frequency a WiFi interface is operating at, in hertz."}
	wifiInfo = Metric{Name: "node_wifi_station_info", Type: Gauge,
		Help: "Labeled WiFi interface station information as provided by the operating system."}
)

const (
	// genlHead is a struct genlmsghdr: command, version, two bytes of nothing.
	genlHead = 4
	// maxWifi bounds interfaces, and networks, over the exporter's life; maxStations
	// stations, whose addresses change on purpose.
	maxWifi     = 64
	maxStations = 1024
	macBytes    = 6
	elementSSID = 0
)

type wifiInterface struct {
	frequency int32 // slot + 1
}

type wifiNetwork struct {
	info int32 // slot + 1
}

type wifiPeer struct {
	slots [len(wifiStation)]int32 // slot + 1
}

// wifiDevice is an interface of this read.
type wifiDevice struct {
	index uint32
	name  [unix.IFNAMSIZ]byte
	size  int
}

// wifi reads wireless interfaces and stations over nl80211.
type wifi struct {
	nl         *netlink
	family     uint16
	faults     faults
	interfaces *table[wifiInterface]
	networks   *table[wifiNetwork]
	stations   *table[wifiPeer]
	devices    []wifiDevice
	key        []byte

	out    *Out        // during a read
	device *wifiDevice // that is asked about
	each   [3]func(uint16, []byte)
}

// What each is called for.
const (
	eachInterface = iota
	eachNetwork
	eachStation
)

func newWifi(env Env) (Source, error) {
	if !env.ContainerNetwork && sysctlNet(env) == netnsContainer {
		return nil, errContainerNet
	}
	nl, err := openNetlink(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, err
	}
	s := makeWifi(env)
	s.nl = nl
	if s.family, err = nl.family("nl80211"); err != nil {
		nl.close()
		return nil, fmt.Errorf("look for wireless interfaces: %w", err)
	}
	return s, nil
}

func makeWifi(env Env) *wifi {
	s := &wifi{faults: newFaults(env, "wifi"), interfaces: newTable[wifiInterface](maxWifi),
		networks: newTable[wifiNetwork](maxWifi), stations: newTable[wifiPeer](maxStations)}
	for i, parse := range [...]func(*Out, []byte){s.parseInterface, s.parseNetwork, s.parseStation} {
		s.each[i] = func(_ uint16, body []byte) {
			if len(body) >= genlHead {
				parse(s.out, body[genlHead:])
			}
		}
	}
	return s
}

// family asks for the number of a family of generic netlink.
func (n *netlink) family(name string) (id uint16, err error) {
	n.begin(unix.GENL_ID_CTRL, 0)
	n.out = append(n.out, unix.CTRL_CMD_GETFAMILY, 1, 0, 0)
	n.attribute(unix.CTRL_ATTR_FAMILY_NAME, append([]byte(name), 0))
	err = n.ask(new(Out), func(_ uint16, body []byte) {
		if len(body) > genlHead {
			if b := attribute(body[genlHead:], unix.CTRL_ATTR_FAMILY_ID); len(b) >= 2 {
				id = binary.NativeEndian.Uint16(b)
			}
		}
	})
	if err == nil && id == 0 {
		err = errors.New("the kernel does not say by which number " + name + " goes")
	}
	return id, err
}

// ask asks nl80211 for a table, of one interface or of all.
func (s *wifi) ask(out *Out, command byte, d *wifiDevice, each int) error {
	s.nl.begin(s.family, unix.NLM_F_DUMP)
	s.nl.out = append(s.nl.out, command, 1, 0, 0)
	if s.device = d; d != nil {
		var index [4]byte
		binary.NativeEndian.PutUint32(index[:], d.index)
		s.nl.attribute(unix.NL80211_ATTR_IFINDEX, index[:])
	}
	return s.nl.ask(out, s.each[each])
}

func (s *wifi) Read(out *Out) error {
	s.begin(out)
	err := s.ask(out, unix.NL80211_CMD_GET_INTERFACE, nil, eachInterface)
	for i := range s.devices {
		// An interface may be of a kind that has neither, or be gone by now.
		_ = s.ask(out, unix.NL80211_CMD_GET_SCAN, &s.devices[i], eachNetwork)
		_ = s.ask(out, unix.NL80211_CMD_GET_STATION, &s.devices[i], eachStation)
	}
	s.end(out)
	return err
}

func (s *wifi) begin(out *Out) {
	s.out = out
	s.devices = s.devices[:0]
	s.interfaces.begin()
	s.networks.begin()
	s.stations.begin()
}

func (s *wifi) end(out *Out) {
	s.interfaces.end(func(r *wifiInterface) { clearSlots(out, r.frequency) })
	s.networks.end(func(r *wifiNetwork) { clearSlots(out, r.info) })
	s.stations.end(func(r *wifiPeer) { clearSlots(out, r.slots[:]...) })
}

// clearSlots marks slots absent, which are given plus 1.
func clearSlots(out *Out, slots ...int32) {
	for _, slot := range slots {
		if slot > 0 {
			out.Clear(int(slot - 1))
		}
	}
}

// parseInterface takes the attributes of an interface. One without a name is no
// network device.
func (s *wifi) parseInterface(out *Out, b []byte) {
	name := cString(attribute(b, unix.NL80211_ATTR_IFNAME))
	index, ok := num32(attribute(b, unix.NL80211_ATTR_IFINDEX))
	if len(name) == 0 || len(name) > unix.IFNAMSIZ || !ok {
		return
	}
	r, state := s.interfaces.find(name)
	if r == nil {
		s.faults.refused(out, state, name)
		return
	}
	d := wifiDevice{index: index, size: len(name)}
	copy(d.name[:], name)
	s.devices = append(s.devices, d)
	frequency, ok := num32(attribute(b, unix.NL80211_ATTR_WIPHY_FREQ))
	if !ok {
		clearSlots(out, r.frequency)
		return
	}
	if r.frequency == 0 {
		r.frequency = int32(out.Add(&wifiFrequency, Label{"device", label(name)})) + 1
	}
	out.Set(int(r.frequency-1), int64(frequency))
}

// parseNetwork takes what was seen of a network in a scan; those that the interface
// belongs to have a status.
func (s *wifi) parseNetwork(out *Out, b []byte) {
	b = attribute(b, unix.NL80211_ATTR_BSS)
	status, ok := num32(attribute(b, unix.NL80211_BSS_STATUS))
	id := attribute(b, unix.NL80211_BSS_BSSID)
	if !ok || len(id) != macBytes || s.device == nil {
		return
	}
	mode := "unknown"
	switch status {
	case unix.NL80211_BSS_STATUS_AUTHENTICATED, unix.NL80211_BSS_STATUS_ASSOCIATED:
		mode = "client"
	case unix.NL80211_BSS_STATUS_IBSS_JOINED:
		mode = "ad-hoc"
	}
	device := s.device.name[:s.device.size]
	ssid := element(attribute(b, unix.NL80211_BSS_INFORMATION_ELEMENTS), elementSSID)
	s.key = append(append(append(append(s.key[:0], id...), device...), 0), mode...)
	s.key = append(append(s.key, 0), ssid...)
	r, state := s.networks.find(s.key)
	if r == nil {
		s.faults.refused(out, state, device)
		return
	}
	if r.info == 0 {
		r.info = int32(out.Add(&wifiInfo, Label{"device", label(device)}, Label{"bssid", net.HardwareAddr(id).String()},
			Label{"ssid", label(ssid)}, Label{"mode", mode})) + 1
	}
	out.Set(int(r.info-1), 1)
}

// element finds an information element: a number, a size, and so many bytes.
func element(b []byte, want byte) []byte {
	for len(b) >= 2 && len(b) >= 2+int(b[1]) {
		if b[0] == want {
			return b[2 : 2+b[1]]
		}
		b = b[2+int(b[1]):]
	}
	return nil
}

func (s *wifi) Close() error {
	s.nl.close()
	return nil
}
