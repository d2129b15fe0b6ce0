package collectors

import (
	"encoding/binary"
	"errors"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// attr makes an attribute; nest makes one of several.
func nlAttr(typ uint16, value []byte) []byte {
	n := &netlink{}
	n.attribute(typ, value)
	return n.out
}

func nest(typ uint16, parts ...[]byte) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	return nlAttr(typ|unix.NLA_F_NESTED, all)
}

func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }

// message makes a netlink message.
func nlMessage(typ uint16, seq uint32, body []byte) []byte {
	b := u32(uint32(unix.NLMSG_HDRLEN + len(body)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, 0)
	b = append(append(b, u32(seq)...), u32(0)...)
	b = append(b, body...)
	return append(b, make([]byte, -len(b)&3)...)
}

func TestMessages(t *testing.T) {
	row := nlMessage(40, 7, []byte{1, 2, 3})
	stale := nlMessage(40, 6, []byte{9})
	done := nlMessage(unix.NLMSG_DONE, 7, u32(0))
	refused := nlMessage(unix.NLMSG_ERROR, 7, u32(^uint32(unix.EPERM)+1))
	for _, c := range []struct {
		name string
		b    []byte
		n    int
		done bool
		err  error
	}{
		{"nothing", nil, 0, false, nil},
		{"rows", append(append([]byte{}, row...), row...), 2, false, nil},
		{"the end", append(append(append([]byte{}, row...), done...), row...), 1, true, nil},
		{"of another request", append(append([]byte{}, stale...), row...), 1, false, nil},
		{"refused", refused, 0, false, unix.EPERM},
		{"acknowledged", nlMessage(unix.NLMSG_ERROR, 7, u32(0)), 0, true, nil},
		{"an error cut short", nlMessage(unix.NLMSG_ERROR, 7, nil), 0, false, unix.EIO},
	} {
		n := 0
		done, err := messages(c.b, 7, func(uint16, []byte) { n++ })
		if n != c.n || done != c.done || !errors.Is(err, c.err) {
			t.Errorf("%s: got %d rows, %v, %v; want %d, %v, %v", c.name, n, done, err, c.n, c.done, c.err)
		}
	}
	long := append(u32(200), row[4:]...)
	if _, err := messages(long, 7, func(uint16, []byte) { t.Error("a row that is cut short") }); err == nil {
		t.Error("a size beyond the end is no error")
	}
}

// inNetns runs f on a thread in a network of its own, set up by ip commands.
func inNetns(t *testing.T, commands [][]string, f func()) {
	t.Helper()
	ip, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("there is no ip to set up a network with")
	}
	refused := make(chan error)
	go func() {
		defer close(refused)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			refused <- err
			return
		}
		for _, args := range commands {
			if out, err := exec.Command(ip, args...).CombinedOutput(); err != nil {
				refused <- errors.New(string(out))
				return
			}
		}
		f()
	}()
	if err := <-refused; err != nil {
		t.Skipf("set up a network: %v", err)
	}
}

// A bridge of the kernel's own, with a port that has learned two addresses.
func TestBridgeOfThisMachine(t *testing.T) {
	inNetns(t, [][]string{
		{"link", "add", "br0", "type", "bridge"}, {"link", "add", "p0", "type", "veth", "peer", "name", "x0"}, {"link", "set", "p0", "master", "br0"},
		{"link", "set", "br0", "up"}, {"link", "set", "p0", "up"},
		{"link", "set", "x0", "addrgenmode", "none"}, {"link", "set", "x0", "up"}, {"link", "add", "p1", "type", "veth", "peer", "name", "x1"}, {"link", "set", "p1", "master", "br0"},
	}, func() {
		src, err := newBridge(Env{ContainerNetwork: true})
		if err != nil {
			t.Error(err)
			return
		}
		p := newProbe(t, src)
		const forwarding = 3 // the kernel gets there in its own time, and learns nothing before
		for i := 0; p.read()[`node_bridge_port_state{device="p0"}`] != forwarding && i < 1000; i++ {
			time.Sleep(10 * time.Millisecond)
		}
		for _, mac := range []string{"02:00:00:00:00:11", "02:00:00:00:00:12"} {
			if out, err := exec.Command("bridge", "fdb", "add", mac, "dev", "p0", "master", "dynamic").CombinedOutput(); err != nil {
				t.Errorf("bridge fdb add: %v: %s", err, out)
			}
		}
		got := p.read()
		want(t, got, "info", map[string]float64{`node_bridge_port_info{bridge="br0",device="p0"}`: 1, `node_bridge_port_info{bridge="br0",device="p1"}`: 1})
		want(t, got, "state", map[string]float64{`node_bridge_port_state{device="p0"}`: 3, `node_bridge_port_state{device="p1"}`: 0})
		want(t, got, "learned", map[string]float64{`node_bridge_port_learned_addresses{device="p0"}`: 2, `node_bridge_port_learned_addresses{device="p1"}`: 0})
		if n := testing.AllocsPerRun(20, func() { _ = src.Read(p.out) }); n != 0 {
			t.Errorf("%v allocations a read", n)
		}
		if out, err := exec.Command("ip", "link", "del", "p0").CombinedOutput(); err != nil {
			t.Errorf("ip link del: %v: %s", err, out)
		}
		want(t, p.read(), `device="p0"`, map[string]float64{})
	})
}

// A queue of the kernel's own.
func TestQdiscOfThisMachine(t *testing.T) {
	inNetns(t, [][]string{{"link", "add", "d0", "type", "veth", "peer", "name", "x0"}, {"link", "set", "x0", "up"}, {"link", "set", "d0", "up"},
		{"link", "set", "lo", "up"}, {"tuntap", "add", "tap0", "mode", "tap"}, {"link", "set", "tap0", "up"}}, func() {
		src, err := newQdisc(Env{ContainerNetwork: true, Options: map[string]string{"qdisc.device-exclude": "^(lo|.0)$"}})
		if err != nil {
			t.Error(err)
			return
		}
		p := newProbe(t, src)
		got := p.read()
		if len(got) != len(qdiscMetrics) {
			t.Errorf("got %v", got)
		}
		if n := testing.AllocsPerRun(20, func() { _ = src.Read(p.out) }); n != 0 {
			t.Errorf("%v allocations a read", n)
		}
	})
}

// qdiscMessage is a queue as the kernel tells of it, with 64 bits of packets or not.
func qdiscMessage(parent uint32, wide bool) []byte {
	b := append(append(append(u32(0), u32(1)...), u32(0)...), u32(parent)...)
	b = append(b, u32(0)...)
	b = append(b, nlAttr(tcaKind, []byte("fq_codel\x00"))...)
	queue := append(append(append(append(u32(3), u32(4000)...), u32(5)...), u32(6)...), u32(7)...)
	parts := [][]byte{nlAttr(statsBasic, append(u64(1<<40), u32(9)...)), nlAttr(statsQueue, queue)}
	if wide {
		parts = append(parts, nlAttr(statsPkt64, u64(1<<33)))
	}
	return append(b, nest(tcaStats2, parts...)...)
}

func openTestQdisc(t testing.TB) *qdisc {
	s := &qdisc{nl: &netlink{fd: -1}, rows: newTable[qdiscRow](8), faults: newFaults(Env{}, "qdisc")}
	if err := s.links.open(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQdisc(t *testing.T) {
	s := openTestQdisc(t)
	if s.links.name(1) == nil {
		t.Skip("there is no interface 1")
	}
	p := newProbe(t, s)
	for _, c := range []struct {
		wide    bool
		packets float64
	}{{false, 9}, {true, 1 << 33}} {
		s.rows.begin()
		s.message(p.out, qdiscMessage(1<<16, false)) // of a class
		s.message(p.out, qdiscMessage(^uint32(0), c.wide))
		s.message(p.out, []byte("short"))
		s.rows.end(func(r *qdiscRow) { r.clear(p.out) })
		labels := `{device="` + string(s.links.name(1)) + `",kind="fq_codel"}`
		want(t, p.present(), "", map[string]float64{
			"node_qdisc_bytes_total" + labels: 1 << 40, "node_qdisc_packets_total" + labels: c.packets, "node_qdisc_drops_total" + labels: 5,
			"node_qdisc_requeues_total" + labels: 6, "node_qdisc_overlimits_total" + labels: 7, "node_qdisc_current_queue_length" + labels: 3,
			"node_qdisc_backlog" + labels: 4000})
	}
	p.wantStats(2, 0, 0)
}

// wifiMessages are an access point's interface, the network that a client belongs to
// and one that it only sees, and a station.
func wifiMessages() (iface, network, seen, station []byte) {
	mac := []byte{2, 0, 0, 0, 0, 1}
	iface = append(append(nlAttr(unix.NL80211_ATTR_IFINDEX, u32(3)), nlAttr(unix.NL80211_ATTR_IFNAME, []byte("wlan0\x00"))...),
		nlAttr(unix.NL80211_ATTR_WIPHY_FREQ, u32(5180))...)
	elements := append([]byte{1, 2, 8, 8}, append([]byte{0, 4}, "home"...)...)
	network = nest(unix.NL80211_ATTR_BSS, nlAttr(unix.NL80211_BSS_BSSID, mac), nlAttr(unix.NL80211_BSS_STATUS, u32(1)),
		nlAttr(unix.NL80211_BSS_INFORMATION_ELEMENTS, elements))
	seen = nest(unix.NL80211_ATTR_BSS, nlAttr(unix.NL80211_BSS_BSSID, mac))
	station = append(nlAttr(unix.NL80211_ATTR_MAC, mac), nest(unix.NL80211_ATTR_STA_INFO,
		nlAttr(unix.NL80211_STA_INFO_CONNECTED_TIME, u32(60)), nlAttr(unix.NL80211_STA_INFO_INACTIVE_TIME, u32(1500)),
		nlAttr(unix.NL80211_STA_INFO_RX_BYTES, u32(5)), nlAttr(unix.NL80211_STA_INFO_RX_BYTES64, u64(1<<40)),
		nlAttr(unix.NL80211_STA_INFO_TX_BYTES, u32(6)), nlAttr(unix.NL80211_STA_INFO_SIGNAL, []byte{256 - 61}),
		nest(unix.NL80211_STA_INFO_TX_BITRATE, nlAttr(unix.NL80211_RATE_INFO_BITRATE, []byte{1, 0}), nlAttr(unix.NL80211_RATE_INFO_BITRATE32, u32(8667))),
		nest(unix.NL80211_STA_INFO_RX_BITRATE, nlAttr(unix.NL80211_RATE_INFO_BITRATE, binary.NativeEndian.AppendUint16(nil, 540))))...)
	return iface, network, seen, station
}

func TestWifi(t *testing.T) {
	s := makeWifi(Env{})
	s.nl = &netlink{fd: -1}
	p := newProbe(t, s)
	iface, network, seen, station := wifiMessages()
	read := func(messages ...[]byte) {
		s.begin(p.out)
		s.parseInterface(p.out, iface)
		s.device = &s.devices[0]
		for _, m := range messages {
			s.parseNetwork(p.out, m)
			s.parseStation(p.out, m)
		}
		s.end(p.out)
	}
	read(network, seen, station)
	peer := `{device="wlan0",mac_address="02:00:00:00:00:01"}`
	want(t, p.present(), "", map[string]float64{
		`node_wifi_interface_frequency_hertz{device="wlan0"}`:                                        5.18e9,
		`node_wifi_station_info{bssid="02:00:00:00:00:01",device="wlan0",mode="client",ssid="home"}`: 1,
		"node_wifi_station_connected_seconds_total" + peer:                                           60, "node_wifi_station_inactive_seconds" + peer: 1.5,
		"node_wifi_station_receive_bytes_total" + peer: 1 << 40, "node_wifi_station_transmit_bytes_total" + peer: 6,
		"node_wifi_station_signal_dbm" + peer: -61, "node_wifi_station_transmit_bits_per_second" + peer: 866.7e6,
		"node_wifi_station_receive_bits_per_second" + peer: 54e6})
	if n := testing.AllocsPerRun(20, func() { read(network, seen, station) }); n != 0 {
		t.Errorf("%v allocations a read", n)
	}
	slots := p.schema.Len()
	read() // the station leaves
	want(t, p.present(), "station", map[string]float64{})
	read(network, station)
	if p.schema.Len() != slots {
		t.Errorf("a station that returns has new series: %d, there were %d", p.schema.Len(), slots)
	}
}

func FuzzNetlink(f *testing.F) {
	iface, network, _, station := wifiMessages()
	genl := func(b []byte) []byte { return nlMessage(40, 1, append([]byte{0, 0, 0, 0}, b...)) }
	f.Add(append(genl(iface), append(genl(network), genl(station)...)...))
	f.Add(nlMessage(unix.RTM_NEWQDISC, 1, qdiscMessage(0, true)))
	f.Add(nlMessage(unix.RTM_NEWLINK, 1, append(make([]byte, unix.SizeofIfInfomsg), nest(unix.IFLA_PROTINFO, nlAttr(brportState, []byte{3}))...)))
	q := openTestQdisc(f)
	links := linkNamer{}
	if err := links.open(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w := makeWifi(Env{})
		w.nl = &netlink{fd: -1}
		br := &bridge{nl: w.nl, links: links, rows: newTable[bridgeRow](8), faults: newFaults(Env{}, "bridge")}
		q.rows = newTable[qdiscRow](8)
		p := &probe{t: t, src: w}
		p.out = NewOut(&p.schema, &p.row, 0)
		w.begin(p.out)
		br.rows.begin()
		q.rows.begin()
		_, _ = messages(b, 1, func(_ uint16, body []byte) {
			w.each[eachInterface](0, body)
			for i := range w.devices {
				w.device = &w.devices[i]
				w.each[eachNetwork](0, body)
				w.each[eachStation](0, body)
			}
			br.port(p.out, body)
			br.address(body)
			q.message(p.out, body)
		})
		w.end(p.out)
		p.present()
	})
}
