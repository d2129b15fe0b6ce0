package collectors

import (
	"errors"
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
