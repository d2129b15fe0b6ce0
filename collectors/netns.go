package collectors

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
)

// ErrNetwork is what every source's error is that refuses because the network that is
// seen is not known to be the host's.
var ErrNetwork = errors.New("the network that is seen is not the host's")

// networkError is a reason for that.
type networkError string

func (e networkError) Error() string { return string(e) }

func (networkError) Is(target error) bool { return target == ErrNetwork }

// errContainerNet is why sources of a network namespace are not there in a
// container with a network of its own.
const errContainerNet = networkError("the network namespace is this container's and not the host's: " +
	"share the host's network, or give --path.procfs a tree of the host's")

var netnsIsHost = Metric{Name: "ticktier_exporter_network_namespace_is_host", Type: Gauge, Kind: Signed,
	Help: "Whether the network that is seen is the host's: 1, or a container's: 0."}

// netns is whose network a procfs shows.
type netns uint8

const (
	netnsUnknown netns = iota
	netnsHost
	netnsContainer
	netnsHidden // nobody can tell
)

// errHiddenNet is why they are not there where nobody can tell whose network it is.
const errHiddenNet = networkError("net is that of whoever reads it, and the host's, 1/net, is not shown: " +
	"share the host's network and processes, or say --container-network")

// whoseNet tells whose network the files under net are of. In a tree of a host
// mounted elsewhere those of process 1 are read, and they are the host's unless that
// process is the container's own.
func whoseNet(env Env) netns {
	if filepath.Clean(env.Procfs) == "/proc" {
		return sysctlNet(env)
	}
	ours := sysctlNet(env)
	if exists(filepath.Join(env.Procfs, "1/net/dev")) {
		if ours == netnsContainer && sameNet(env.Procfs, "1", "self") {
			return netnsContainer
		}
		return netnsHost
	}
	if ours == netnsUnknown && readerNet(env.Procfs) {
		return netnsHidden
	}
	return ours
}

// sameNet tells whether two processes are known to share a network.
func sameNet(procfs, a, b string) bool {
	of := func(pid string) string {
		link, err := os.Readlink(filepath.Join(procfs, pid, "ns/net"))
		if err != nil {
			return ""
		}
		return link
	}
	return of(a) != "" && of(a) == of(b)
}

// readerNet tells whether net is that of the reading process, as in every procfs since
// Linux 2.6.25; in a captured tree it is a directory.
func readerNet(procfs string) bool {
	link, err := os.Readlink(filepath.Join(procfs, "net"))
	return err == nil && link == "self/net"
}

// HostNetwork tells whether the network that is seen is known to be the host's.
func HostNetwork(env Env) bool { return whoseNet(env) == netnsHost }

// sysctlNet tells whose network the files under sys/net are of: those of the reading
// process, wherever procfs is mounted. The first namespace alone has the limits that
// are the whole machine's, so that their absence gives another away (net_core_table
// in net/core/sysctl_net_core.c).
func sysctlNet(env Env) netns {
	dir := filepath.Join(env.Procfs, "sys/net/core")
	switch {
	case exists(filepath.Join(dir, "dev_weight")):
		return netnsHost
	case exists(filepath.Join(dir, "somaxconn")):
		return netnsContainer
	}
	return netnsUnknown
}

// hostNet is an error where the interfaces to be seen are a container's: to show
// them as the device's would be wrong.
func hostNet(env Env) error {
	if env.ContainerNetwork {
		return nil
	}
	switch whoseNet(env) {
	case netnsContainer:
		return errContainerNet
	case netnsHidden:
		return errHiddenNet
	}
	return nil
}

// errContainerSysfs is why the interfaces of sysfs are not shown beside a host's procfs.
const errContainerSysfs = networkError("class/net shows other interfaces than the host's procfs: " +
	"a sysfs is of the network that it was mounted in, give --path.sysfs the host's")

// hostSysfs is an error where a host's procfs stands beside a sysfs of another network,
// as in a container that was given the one and not the other. The names must be the
// same, and what the interfaces received, as far as sysfs tells, must lie between two
// readings of procfs.
func hostSysfs(env Env) error {
	path := filepath.Join(env.Procfs, "1/net/dev")
	if env.ContainerNetwork || filepath.Clean(env.Procfs) == "/proc" || !exists(path) {
		return nil
	}
	before, err := received(path)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(env.Sysfs, "class/net"))
	if err != nil {
		return err
	}
	inSysfs := map[string]uint64{}
	for _, e := range entries {
		if e.Type().IsRegular() {
			continue // bonding_masters
		}
		if _, ok := before[e.Name()]; !ok {
			return errContainerSysfs
		}
		text, err := ReadFile(filepath.Join(env.Sysfs, "class/net", e.Name(), "statistics/rx_bytes"))
		if v, ok := parseValue(text); err == nil && ok {
			inSysfs[e.Name()] = uint64(v)
		}
	}
	after, err := received(path)
	if err != nil {
		return err
	}
	for name, v := range inSysfs {
		if low, high := before[name], after[name]; low <= high && (v < low || v > high) {
			return errContainerSysfs
		}
	}
	return nil
}

// received is how many bytes each interface of a net/dev received.
func received(path string) (map[string]uint64, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]uint64{}
	for line := range bytes.Lines(text) {
		// A name may have a colon in it; the last one is behind it.
		if i := bytes.LastIndexByte(line, ':'); i > 0 {
			v, _, _ := number(line, i+1)
			out[string(trim(line[:i]))] = v
		}
	}
	return out, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
