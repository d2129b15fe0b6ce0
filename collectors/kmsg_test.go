package collectors

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestKmsg(t *testing.T) {
	tr := newTree(t)
	if _, err := newKmsg(tr.env()); err == nil {
		t.Error("no log and no error")
	}
	tr.write("sys/class/net/eth1/mtu", "1500\n")
	tr.write("sys/class/net/eth1.100/mtu", "1500\n")
	tr.write("sys/class/net/br0/mtu", "1500\n")
	tr.write("dev/kmsg", "6,10,1,-,caller=T1;br0: port 2(eth1) entered blocking state, eth1\n SUBSYSTEM=net\n DEVICE=n1\n"+
		"12,11,2,-;eth1.100 is down\n3,15,3,c;eth10 has nothing to do with it\nrubbish\n4,x,1,-;y\n\n")
	p := tr.open("kmsg")
	got := p.read()
	level := func(name string) string { return `node_kmsg_records_total{level="` + name + `"}` }
	for name, n := range map[string]float64{"info": 1, "warning": 1, "err": 1, "emerg": 0, "notice": 0} {
		if v, ok := got[level(name)]; !ok || v != n {
			t.Errorf("%s: got %v (%v), want %v", name, v, ok, n)
		}
	}
	want(t, got, "lost", map[string]float64{"node_kmsg_lost_records_total": 3})
	device := func(name string) string { return `node_kmsg_network_records_total{device="` + name + `"}` }
	want(t, got, "network", map[string]float64{device("eth1"): 1, device("br0"): 1, device("eth1.100"): 1})
	p.wantStats(2, 0, 0)
	p.out.ClearAll()
	want(t, p.read(), "network", map[string]float64{device("eth1"): 1, device("br0"): 1, device("eth1.100"): 1})
}

// What this machine's kernel logged before is left out.
func TestKmsgOfThisMachine(t *testing.T) {
	src, err := newKmsg(thisMachine())
	if err != nil {
		t.Skip(err)
	}
	p := newProbe(t, src)
	sum := 0.0
	for _, n := range p.read() {
		sum += n
	}
	if sum > 100 {
		t.Errorf("got %v records at once", sum)
	}
}

// Each record is an event, in order, with how many were lost before it; what could not
// be read is none.
func TestKmsgEvents(t *testing.T) {
	tr := newTree(t)
	tr.write("sys/class/net/br0/mtu", "1500\n")
	tr.write("sys/class/net/eth1/mtu", "1500\n")
	tr.write("dev/kmsg", "6,10,1,-,caller=T1;br0: port 1(eth1) up\n SUBSYSTEM=net\nrubbish\n12,14,2500000,-;eth1 is down\n4,15,x,-;no time\n")
	env := tr.env()
	var got []string
	env.Event = func(e Event) {
		got = append(got, fmt.Sprintf("%s %d-%d %d %d.%d %v %s", e.Source, e.Seq, e.Lost, e.Mono, e.Facility, e.Level, e.Devices, e.Text))
	}
	src, err := newKmsg(env)
	if err != nil {
		t.Fatal(err)
	}
	newProbe(t, src).read()
	want := []string{"kmsg 10-0 1000 0.6 [br0 eth1] br0: port 1(eth1) up", "kmsg 14-3 2500000000 1.4 [eth1] eth1 is down"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A device is named by its whole name and nothing else.
func TestKmsgNames(t *testing.T) {
	tr := newTree(t)
	for _, name := range []string{"eth1", "eth1.100", "br-lan", "lan", "wl0", "a", "b", "c", "d", "e"} {
		tr.write("sys/class/net/"+name+"/mtu", "1500\n")
	}
	d := newKmsgDevices(filepath.Join(tr.dir, "sys/class/net"))
	defer d.dir.close()
	d.list()
	for text, want := range map[string][]string{
		"eth1: link up": {"eth1"}, "mvpp2 f2000000.ethernet eth1: Link is Down": {"eth1"},
		"br-lan: port 2(eth1.100) entered disabled state": {"br-lan", "eth1.100"}, "left promiscuous mode on eth1.": {"eth1"},
		"eth10 eth1.1000 xeth1 eth1_": {}, "device lan, eth1 and lan again": {"lan", "eth1"}, "vlan lan-x": {}, "eth1- went": {"eth1"},
		"wl0[3]=eth1;": {"wl0", "eth1"}, "": {}, "eth1": {"eth1"}, "a b c d e": {"a", "b", "c", "d"},
	} {
		if got := d.count([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A device that goes is counted as it goes; its series ends after that and goes on
// when it is back.
func TestKmsgDeviceGone(t *testing.T) {
	tr := newTree(t)
	dir := filepath.Join(tr.dir, "sys/class/net/usb0")
	tr.write("sys/class/net/usb0/mtu", "1500\n")
	d := newKmsgDevices(filepath.Dir(dir))
	defer d.dir.close()
	d.list() // as it is opened
	p := newProbe(t, &kmsg{fd: -1, devices: newKmsgDevices("")})
	read := func(text string, n map[string]float64) {
		t.Helper()
		d.list()
		d.count([]byte(text))
		d.set(p.out)
		want(t, p.present(), "", n)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	usb := `node_kmsg_network_records_total{device="usb0"}`
	read("usb0: unregister 'cdc_ether'", map[string]float64{usb: 1})
	read("something else", map[string]float64{})
	tr.write("sys/class/net/usb0/mtu", "1500\n")
	read("usb0: register 'cdc_ether'", map[string]float64{usb: 2})
	if n := testing.AllocsPerRun(20, func() { d.count([]byte("usb0: link up on usb0.")); d.set(p.out) }); n != 0 {
		t.Errorf("%v allocations a record", n)
	}
}

func FuzzKmsg(f *testing.F) {
	fuzzSource(f, "dev/kmsg", func() (Source, func(*Out, []byte) error) {
		s := &kmsg{fd: -1, faults: newFaults(Env{}, "kmsg"), devices: newKmsgDevices("")}
		s.devices.rows.begin()
		s.devices.rows.find([]byte("br0"))
		s.devices.rows.end(func(*kmsgDevice) {})
		return s, func(out *Out, text []byte) error { s.parse(out, text); s.set(out); return nil }
	})
}
