package main

import (
	"errors"
	"strconv"
)

// foreign is what flags of node_exporter's say that are no flags here. A device that
// goes over to ticktier keeps its command line: what has another name here is
// understood, what changes nothing is passed over with a word in the log.
type foreign struct {
	noDefaults bool
	passedOver []string
}

// foreignNames are node_exporter's names of flags that have another here, or had
// before it renamed them.
var foreignNames = map[string]string{
	"collector.netdev.device-whitelist":         "netdev.device-include",
	"collector.netdev.device-blacklist":         "netdev.device-exclude",
	"collector.diskstats.ignored-devices":       "diskstats.device-exclude",
	"collector.filesystem.ignored-mount-points": "filesystem.mount-points-exclude",
	"collector.filesystem.ignored-fs-types":     "filesystem.fs-types-exclude",
	"collector.qdisk.device-include":            "qdisc.device-include",
	"collector.qdisk.device-exclude":            "qdisc.device-exclude",
}

// foreignPart are sources that node_exporter has under another name, or as a part of
// another: to read that one alone means to read these.
var foreignPart = map[string]string{"power_supply": "powersupplyclass", "stat": "cpu"}

// foreignSources are node_exporter's sources that are not read here.
var foreignSources = []string{
	"bcache", "bcachefs", "bonding", "btrfs", "cgroups", "cpu_vulnerabilities", "dmmultipath", "drbd", "drm", "edac",
	"ethtool", "fibrechannel", "infiniband", "ipvs", "ksmd", "lnstat", "logind", "mdadm", "meminfo_numa", "mountstats",
	"netclass_rtnl", "network_route", "nfs", "nfsd", "ntp", "nvme", "nvmesubsystem", "pcidevice", "rapl",
	"runit", "supervisord", "swap", "sysctl", "systemd", "tapestats", "tcpstat", "watchdog", "xfrm", "xfs", "zfs",
}

// foreignSwitches and foreignValues are its flags that change nothing here: most say
// how it reads, not what, or belong to sources that are not read here. Both lists are
// complete as of node_exporter 1.12.1.
var (
	foreignSwitches = []string{
		"collector.arp.netlink", "collector.netdev.netlink", "collector.netclass.netlink",
		"collector.netclass.ignore-invalid-speed", "collector.cpu.guest", "collector.cpu.info",
		"collector.stat.softirq", "collector.interrupts.include-zeros", "collector.perf.disable-hardware-profilers",
		"collector.perf.disable-software-profilers", "collector.perf.disable-cache-profilers",
		"web.disable-exporter-metrics", "collector.bcache.priorityStats", "collector.netclass_rtnl.with-stats",
		"collector.netdev.address-info", "collector.netdev.enable-detailed-metrics",
		"collector.netdev.label-ifalias", "collector.ntp.server-is-local", "collector.pcidevice.names",
		"collector.rapl.enable-zone-label", "collector.systemd.enable-task-metrics",
		"collector.systemd.enable-restarts-metrics", "collector.systemd.enable-start-time-metrics",
		"web.systemd-socket", "collector.systemd.private",
	}
	foreignValues = []string{
		"collector.filesystem.mount-timeout", "collector.filesystem.stat-workers", "collector.perf.cpus",
		"collector.perf.tracepoint", "collector.perf.hardware-profilers", "collector.perf.software-profilers",
		"collector.perf.cache-profilers", "runtime.gomaxprocs", "web.max-requests",
		"collector.cpu.info.flags-include", "collector.cpu.info.bugs-include", "collector.ethtool.device-include",
		"collector.ethtool.device-exclude", "collector.ethtool.metrics-include",
		"collector.infiniband.device-include", "collector.infiniband.device-exclude",
		"collector.ipvs.backend-labels", "collector.ntp.server", "collector.ntp.server-port",
		"collector.ntp.protocol-version", "collector.ntp.ip-ttl", "collector.ntp.max-distance",
		"collector.ntp.local-offset-tolerance", "path.udev.data", "collector.pcidevice.idsfile",
		"collector.qdisc.fixtures", "collector.runit.servicedir", "collector.supervisord.url",
		"collector.sysctl.include", "collector.sysctl.include-info", "collector.systemd.unit-include",
		"collector.systemd.unit-exclude", "collector.tapestats.ignored-devices", "collector.wifi.fixtures",
		"collector.systemd.unit-whitelist", "collector.systemd.unit-blacklist",
	}
)

// addForeign adds node_exporter's flags.
func (r *runFlags) addForeign() {
	for name, option := range foreignNames {
		r.set.Hidden(func(v string) error {
			r.options[option] = v
			return nil
		}, name, false)
	}
	r.set.Hidden(func(v string) error {
		r.config.Listen = v
		return nil
	}, "web.listen-address", false)
	r.set.Hidden(func(v string) error {
		if v != "/metrics" {
			r.foreign.passedOver = append(r.foreign.passedOver, "--web.telemetry-path")
		}
		return nil
	}, "web.telemetry-path", false)
	r.set.Hidden(func(v string) error {
		if v == "" {
			return nil
		}
		return errors.New("this exporter serves without TLS and passwords: listen on a loopback address (--listen=127.0.0.1:9747) behind a proxy that has them, or push")
	}, "web.config.file", false)
	if s := r.source("power_supply"); s != nil {
		r.set.Hidden(func(v string) (err error) {
			s.on, err = strconv.ParseBool(v)
			return err
		}, "collector.powersupplyclass", true)
	}
	for _, name := range foreignSources {
		if r.source(name) == nil {
			r.passOver("collector."+name, true)
		}
	}
	for _, name := range foreignSwitches {
		r.passOver(name, true)
	}
	for _, name := range foreignValues {
		r.passOver(name, false)
	}
}

func (r *runFlags) source(name string) *sourceFlag {
	for i := range r.sources {
		if s := &r.sources[i]; s.spec.Name == name {
			return s
		}
	}
	return nil
}

// passOver adds a flag that changes nothing. To switch off what is not there is
// worth no word.
func (r *runFlags) passOver(name string, isSwitch bool) {
	r.set.Hidden(func(v string) error {
		on, err := strconv.ParseBool(v)
		if isSwitch && err != nil {
			return err
		}
		if !isSwitch || on {
			r.foreign.passedOver = append(r.foreign.passedOver, "--"+name)
		}
		return nil
	}, name, isSwitch)
}
