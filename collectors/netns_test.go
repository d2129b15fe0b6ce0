package collectors

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWhoseNet(t *testing.T) {
	tr := newTree(t)
	if got := whoseNet(tr.env()); got != netnsUnknown {
		t.Errorf("a tree without process 1: got %d", got)
	}
	tr.write("proc/1/net/dev", netdevHead)
	if got := whoseNet(tr.env()); got != netnsHost {
		t.Errorf("a host's tree: got %d", got)
	}
	// The sysctl files of that tree would be those of the container that reads it.
	tr.write("proc/sys/net/netfilter/nf_conntrack_count", "12\n")
	tr.write("proc/sys/net/netfilter/nf_conntrack_max", "65536\n")
	tr.write("proc/sys/net/core/somaxconn", "4096\n")
	if _, err := newConntrack(tr.env()); !errors.Is(err, errContainerNet) {
		t.Errorf("the container's connections are shown: %v", err)
	}
	tr.write("proc/sys/net/core/dev_weight", "64\n")
	if src, err := newConntrack(tr.env()); err != nil {
		t.Error(err)
	} else {
		src.Close()
	}
	env := thisMachine()
	switch whoseNet(env) {
	case netnsContainer:
		if err := hostNet(env); err == nil {
			t.Error("a container's network is shown")
		}
		env.ContainerNetwork = true
	case netnsUnknown:
		t.Skip("there is no sysctl")
	}
	if err := hostNet(env); err != nil {
		t.Error(err)
	}
}

// A procfs that hides process 1, or whose process 1 is the container's own, does not
// pass for the host's.
func TestHiddenNet(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/self/net/dev", netdevHead+netdevLine("eth0", 1))
	if err := os.Symlink("self/net", filepath.Join(tr.dir, "proc/net")); err != nil {
		t.Fatal(err)
	}
	env := tr.env()
	if _, err := newNetdev(env); !errors.Is(err, errHiddenNet) {
		t.Errorf("hidden: got %v", err)
	}
	env.ContainerNetwork = true
	if src, err := newNetdev(env); err != nil {
		t.Errorf("hidden, but meant: %v", err)
	} else {
		src.Close()
	}
	tr.write("proc/sys/net/core/somaxconn", "4096\n")
	if _, err := newNetdev(tr.env()); !errors.Is(err, errContainerNet) {
		t.Errorf("a container's: got %v", err)
	}
	tr.write("proc/1/net/dev", netdevHead+netdevLine("wan", 1))
	tr.write("proc/self/net/snmp", "Tcp: CurrEstab\nTcp: 5\n")
	want(t, tr.open("netdev").read(), `receive_bytes_total`, map[string]float64{`node_network_receive_bytes_total{device="wan"}`: 1})
	if _, err := newNetstat(tr.env()); err == nil {
		t.Error("a file of the container stands in for one that the host has not")
	}
	for pid, link := range map[string]string{"1": "net:[4026531840]", "self": "net:[4026532000]"} {
		tr.write("proc/"+pid+"/ns/x", "")
		if err := os.Symlink(link, filepath.Join(tr.dir, "proc", pid, "ns/net")); err != nil {
			t.Fatal(err)
		}
	}
	if got := whoseNet(tr.env()); got != netnsHost {
		t.Errorf("another's process 1: got %d", got)
	}
	own := filepath.Join(tr.dir, "proc/1/ns/net")
	if err := errors.Join(os.Remove(own), os.Symlink("net:[4026532000]", own)); err != nil {
		t.Fatal(err)
	}
	if _, err := newNetdev(tr.env()); !errors.Is(err, errContainerNet) {
		t.Errorf("the container's own process 1: got %v", err)
	}
}

// A host's procfs beside a container's sysfs: the interfaces of the latter are not the
// device's, even if they are called the same.
func TestContainerSysfs(t *testing.T) {
	for _, c := range []struct {
		name, rx string
		want     error
	}{{"wan", "1\n", nil}, {"wan", "2\n", errContainerSysfs}, {"eth0", "1\n", errContainerSysfs}, {"wan", "", nil}} {
		tr := newTree(t)
		tr.write("proc/1/net/dev", netdevHead+netdevLine("wan", 1)+netdevLine("lan", 1))
		tr.write("sys/class/net/"+c.name+"/mtu", "1500\n")
		tr.write("sys/class/net/bonding_masters", "\n")
		if c.rx != "" {
			tr.write("sys/class/net/"+c.name+"/statistics/rx_bytes", c.rx)
		}
		env := tr.env()
		if src, err := newNetclass(env); !errors.Is(err, c.want) {
			t.Errorf("%s, %q: got %v, want %v", c.name, c.rx, err, c.want)
		} else if err == nil {
			src.Close()
		}
		env.ContainerNetwork = true
		if src, err := newNetclass(env); err != nil {
			t.Error(err)
		} else {
			src.Close()
		}
	}
}

func TestCPUThrottles(t *testing.T) {
	tr := newTree(t)
	for cpu, core := range map[string]string{"0": "0", "1": "0", "2": "1"} {
		dir := "sys/devices/system/cpu/cpu" + cpu + "/"
		tr.write(dir+"online", "1\n")
		tr.write(dir+"topology/physical_package_id", "0\n")
		tr.write(dir+"topology/core_id", core+"\n")
		tr.write(dir+"thermal_throttle/core_throttle_count", "5\n")
		tr.write(dir+"thermal_throttle/package_throttle_count", "7\n")
	}
	tr.write("sys/devices/system/cpu/isolated", "2-3\n")
	p := tr.open("cpu")
	want(t, p.read(), "", map[string]float64{
		`node_cpu_online{cpu="0"}`: 1, `node_cpu_online{cpu="1"}`: 1, `node_cpu_online{cpu="2"}`: 1,
		`node_cpu_isolated{cpu="2"}`: 1, `node_cpu_isolated{cpu="3"}`: 1,
		`node_cpu_core_throttles_total{core="0",package="0"}`: 5, `node_cpu_core_throttles_total{core="1",package="0"}`: 5,
		`node_cpu_package_throttles_total{package="0"}`: 7})
}
