package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// madeTree is a machine that there is none of at hand: what its kernel would show,
// in the layout of the version that is named.
type madeTree struct {
	name       string
	cpus       int
	nodes      int // of memory
	interfaces int
	disks      int
	softnet    int // columns of softnet_stat
	stat       int // columns of a CPU in stat
	diskstats  int // columns behind a disk's name
	conntrack  bool
	pressure   bool
	modern     bool // schedstat, snmp6 and the kernel's newer fields
}

var madeTrees = []madeTree{
	{name: "made-64cpu-numa", cpus: 64, nodes: 2, interfaces: 6, disks: 12, softnet: 15, stat: 10, diskstats: 17, conntrack: true, pressure: true, modern: true},
	{name: "made-300-interfaces", cpus: 4, nodes: 1, interfaces: 300, disks: 1, softnet: 13, stat: 10, diskstats: 15, conntrack: true, pressure: true, modern: true},
	{name: "made-no-conntrack", cpus: 2, nodes: 1, interfaces: 3, disks: 2, softnet: 11, stat: 10, diskstats: 11, modern: true},
	{name: "made-old-kernel", cpus: 1, nodes: 1, interfaces: 4, disks: 1, softnet: 9, stat: 8, diskstats: 11, conntrack: true},
}

// treeWriter writes one tree. All numbers are by chance.
type treeWriter struct {
	madeTree
	t    *testing.T
	root string
	r    *rand.Rand
}

// write writes the tree. TEST_SEED makes the same again.
func (m madeTree) write(t *testing.T, root string) {
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("TEST_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("TEST_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("TEST_SEED=%d", seed)
	w := &treeWriter{madeTree: m, t: t, root: root, r: rand.New(rand.NewPCG(seed, 0))}
	w.kernel()
	w.memory()
	w.network()
	w.disksAndFiles()
	w.sysNet()
	w.sysCPU()
	w.sysDevices()
}

func (w *treeWriter) put(path, text string) {
	w.t.Helper()
	path = filepath.Join(w.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// n is a number below some power of two, so that small and large ones both come up.
func (w *treeWriter) n(bits int) uint64 { return w.r.Uint64() >> (64 - 1 - w.r.IntN(bits)) }

// row is so many numbers with spaces between.
func (w *treeWriter) row(count, bits int) string {
	var b strings.Builder
	for range count {
		fmt.Fprintf(&b, " %d", w.n(bits))
	}
	return b.String()
}

// perCPU is a head with every CPU and a row for each name.
func (w *treeWriter) perCPU(names []string, tail func(string) string) string {
	var b strings.Builder
	b.WriteString("          ")
	for cpu := range w.cpus {
		fmt.Fprintf(&b, " %10s", fmt.Sprint("CPU", cpu))
	}
	b.WriteString("\n")
	for _, name := range names {
		fmt.Fprintf(&b, "%10s:", name)
		for range w.cpus {
			fmt.Fprintf(&b, " %10d", 1+w.n(31))
		}
		b.WriteString(tail(name) + "\n")
	}
	return b.String()
}

func (w *treeWriter) kernel() {
	var b strings.Builder
	fmt.Fprintf(&b, "cpu %s\n", w.row(w.stat, 40))
	for cpu := range w.cpus {
		fmt.Fprintf(&b, "cpu%d%s\n", cpu, w.row(w.stat, 40))
	}
	fmt.Fprintf(&b, "intr %d%s\nctxt %d\nbtime 1700000000\nprocesses %d\nprocs_running 3\nprocs_blocked 1\nsoftirq %d%s\n",
		w.n(40), w.row(40, 30), w.n(40), w.n(30), w.n(40), w.row(10, 30))
	w.put("proc/stat", b.String())
	w.put("proc/loadavg", "1.50 0.75 0.05 2/345 6789\n")
	w.put("proc/uptime", "12345.67 54321.00\n")
	w.put("proc/softirqs", w.perCPU([]string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"},
		func(string) string { return "" }))
	w.put("proc/interrupts", w.perCPU([]string{"0", "8", "24", "131", "NMI", "LOC", "RES"}, func(name string) string {
		if name[0] > '9' {
			return "   Some interrupts"
		}
		return fmt.Sprintf("  IO-APIC  %s-edge      eth0-%s", name, name)
	})+"ERR:          5\nMIS:          7\n")
	b.Reset()
	for cpu := range w.cpus {
		columns := make([]string, w.softnet)
		for i := range columns {
			columns[i] = fmt.Sprintf("%08x", uint32(w.n(32)))
		}
		if w.softnet > 12 {
			columns[12] = fmt.Sprintf("%08x", cpu)
		}
		b.WriteString(strings.Join(columns, " ") + "\n")
	}
	w.put("proc/net/softnet_stat", b.String())
	if w.modern {
		b.Reset()
		b.WriteString("version 15\ntimestamp 4300000000\n")
		for cpu := range w.cpus {
			fmt.Fprintf(&b, "cpu%d%s\ndomain0 ff%s\n", cpu, w.row(9, 50), w.row(36, 20))
		}
		w.put("proc/schedstat", b.String())
	}
	if w.pressure {
		for _, what := range []string{"cpu", "io", "memory", "irq"} {
			text := ""
			for _, who := range []string{"some", "full"} {
				if what == "irq" && who == "some" {
					continue
				}
				text += fmt.Sprintf("%s avg10=0.00 avg60=1.25 avg300=0.30 total=%d\n", who, w.n(40))
			}
			w.put("proc/pressure/"+what, text)
		}
	}
	w.put("proc/sys/kernel/random/entropy_avail", "256\n")
	w.put("proc/sys/kernel/random/poolsize", "256\n")
	w.put("proc/sys/kernel/threads-max", "12345\n")
	w.put("proc/sys/kernel/pid_max", "32768\n")
	w.put("proc/sys/fs/file-nr", "1234\t0\t98765\n")
	w.put("proc/42/stat", "42 (a) b) S 1 42 42 0 -1 4194560"+w.row(10, 20)+" 3 0 100"+w.row(30, 20)+"\n")
	w.put("proc/42/task/42/stat", "42 (a) b) S 1 42 42 0 -1 4194560"+w.row(10, 20)+" 3 0 100"+w.row(30, 20)+"\n")
	w.put("proc/42/task/43/stat", "43 (a) b) D 1 42 42 0 -1 4194560"+w.row(10, 20)+" 3 0 100"+w.row(30, 20)+"\n")
}

func (w *treeWriter) memory() {
	var b strings.Builder
	b.WriteString("MemTotal:        4194304 kB\n") // the exporter refuses to start on less than it needs
	for _, name := range []string{"MemFree", "MemAvailable", "Buffers", "Cached", "SwapCached", "Active", "Inactive",
		"Active(anon)", "Inactive(anon)", "Unevictable", "SwapTotal", "SwapFree", "Dirty", "Writeback", "Slab", "CommitLimit", "Hugepagesize", "DirectMap4k"} {
		fmt.Fprintf(&b, "%-16s %8d kB\n", name+":", w.n(40))
	}
	b.WriteString("HugePages_Total:       3\nHugePages_Free:        1\n")
	w.put("proc/meminfo", b.String())
	b.Reset()
	for _, name := range []string{"nr_free_pages", "pgpgin", "pgpgout", "pswpin", "pswpout", "pgfault", "pgmajfault", "pgalloc_normal", "oom_kill"} {
		fmt.Fprintf(&b, "%s %d\n", name, w.n(50))
	}
	w.put("proc/vmstat", b.String())
	var buddy, zones strings.Builder
	for node := range w.nodes {
		for _, zone := range []string{"DMA", "DMA32", "Normal"} {
			fmt.Fprintf(&buddy, "Node %d, zone %8s%s\n", node, zone, w.row(11, 12))
			fmt.Fprintf(&zones, "Node %d, zone %8s\n", node, zone)
			if zone == "DMA" && w.modern {
				fmt.Fprintf(&zones, "  per-node stats\n      nr_inactive_anon %d\n      nr_active_anon %d\n", w.n(20), w.n(20))
			}
			fmt.Fprintf(&zones, "  pages free     %d\n        min      %d\n        low      %d\n        high     %d\n        spanned  %d\n        present  %d\n        managed  %d\n",
				w.n(30), w.n(20), w.n(20), w.n(20), w.n(30), w.n(30), w.n(30))
			fmt.Fprintf(&zones, "        protection: (0, 1000, 2000)\n      nr_free_pages %d\n      numa_hit     %d\n      numa_miss    %d\n  pagesets\n    cpu: 0\n              count: %d\n              high:  %d\n              batch: 7\n  start_pfn:           1\n",
				w.n(30), w.n(30), w.n(30), w.n(10), w.n(10))
		}
	}
	w.put("proc/buddyinfo", buddy.String())
	w.put("proc/zoneinfo", zones.String())
	b.Reset()
	b.WriteString("slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n")
	for i := range 90 {
		fmt.Fprintf(&b, "cache-%-16d%s : tunables    0    0    0 : slabdata%s\n", i, w.row(5, 20), w.row(3, 20))
	}
	w.put("proc/slabinfo", b.String())
}

// interfaceName is the name of an interface.
func interfaceName(i int) string {
	switch {
	case i == 0:
		return "lo"
	case i < 4:
		return fmt.Sprint("eth", i-1)
	}
	return fmt.Sprint("vlan", i, ".", i%7)
}

func (w *treeWriter) network() {
	var b strings.Builder
	b.WriteString("Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n")
	for i := range w.interfaces {
		fmt.Fprintf(&b, "%6s:%s\n", interfaceName(i), w.row(16, 63))
	}
	w.put("proc/net/dev", b.String())
	tcp := "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\nTcp: 1 200 120000 -1" + w.row(11, 40) + "\n"
	w.put("proc/net/snmp", "Ip: Forwarding DefaultTTL InReceives\nIp: 1 64 "+strconv.FormatUint(w.n(40), 10)+
		"\nIcmp: InMsgs InErrors OutMsgs\nIcmp:"+w.row(3, 40)+"\nIcmpMsg: InType3 OutType3\nIcmpMsg:"+w.row(2, 20)+"\n"+tcp+
		"Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp:"+w.row(6, 40)+"\n")
	w.put("proc/net/netstat", "TcpExt: SyncookiesSent SyncookiesRecv SyncookiesFailed ListenOverflows ListenDrops TCPTimeouts TCPSynRetrans TCPOFOQueue TCPRcvQDrop\nTcpExt:"+w.row(9, 40)+
		"\nIpExt: InNoRoutes InOctets OutOctets\nIpExt:"+w.row(3, 60)+"\n")
	if w.modern {
		b.Reset()
		for _, name := range []string{"Ip6InReceives", "Ip6InOctets", "Ip6OutOctets", "Icmp6InMsgs", "Icmp6InErrors", "Icmp6OutMsgs", "Udp6InDatagrams", "Udp6NoPorts", "Udp6InErrors", "Udp6OutDatagrams"} {
			fmt.Fprintf(&b, "%-32s\t%d\n", name, w.n(50))
		}
		w.put("proc/net/snmp6", b.String())
		w.put("proc/net/sockstat6", "TCP6: inuse 5\nUDP6: inuse 2\nUDPLITE6: inuse 0\nRAW6: inuse 1\nFRAG6: inuse 0 memory 0\n")
	}
	w.put("proc/net/sockstat", "sockets: used 345\nTCP: inuse 12 orphan 1 tw 4 alloc 20 mem 3\nUDP: inuse 5 mem 2\nUDPLITE: inuse 0\nRAW: inuse 1\nFRAG: inuse 0 memory 0\n")
	w.put("proc/net/arp", "IP address       HW type     Flags       HW address            Mask     Device\n"+
		"192.0.2.1        0x1         0x2         02:fc:00:00:00:05     *        eth0\n192.0.2.2        0x1         0x2         02:fc:00:00:00:06     *        eth0\n192.0.2.3        0x1         0x2         02:fc:00:00:00:07     *        eth1\n")
	head := "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n"
	w.put("proc/net/udp", head+"  1: 00000000:0044 00000000:0000 07 00000010:00000300 00:00000000 00000000     0        0 1 2 0 0\n")
	w.put("proc/net/udp6", head)
	if w.conntrack {
		w.put("proc/sys/net/netfilter/nf_conntrack_count", "1234\n")
		w.put("proc/sys/net/netfilter/nf_conntrack_max", "65536\n")
		b.Reset()
		b.WriteString("entries  searched found new invalid ignore delete delete_list insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart\n")
		for range w.cpus {
			for i := range 17 {
				fmt.Fprintf(&b, "%08x%s", uint32(w.n(32)), map[bool]string{true: "\n", false: " "}[i == 16])
			}
		}
		w.put("proc/net/stat/nf_conntrack", b.String())
	}
}

func (w *treeWriter) disksAndFiles() {
	var b strings.Builder
	for i := range w.disks {
		fmt.Fprintf(&b, "   8 %7d sd%c%s\n", i*16, 'a'+rune(i), w.row(w.diskstats, 31))
		fmt.Fprintf(&b, "   8 %7d sd%c1%s\n", i*16+1, 'a'+rune(i), w.row(w.diskstats, 31))
	}
	w.put("proc/diskstats", b.String())
	w.put("etc/os-release", "NAME=\"Made Linux\"\nID=made\nVERSION_ID=\"12.5\"\nPRETTY_NAME=\"Made Linux 12.5\"\n")
}

func (w *treeWriter) sysNet() {
	for i := range w.interfaces {
		dir := "sys/class/net/" + interfaceName(i) + "/"
		for _, name := range []string{"carrier_changes", "carrier_up_count", "carrier_down_count", "ifindex", "iflink", "link_mode", "mtu", "name_assign_type", "netdev_group", "tx_queue_len", "type"} {
			w.put(dir+name, fmt.Sprintln(w.n(16)))
		}
		w.put(dir+"addr_assign_type", "0\n")
		w.put(dir+"addr_len", "6\n")
		w.put(dir+"address", fmt.Sprintf("02:00:00:00:%02x:%02x\n", i>>8, i&255))
		w.put(dir+"broadcast", "ff:ff:ff:ff:ff:ff\n")
		w.put(dir+"carrier", fmt.Sprintln(i&1))
		w.put(dir+"dev_id", "0x0\n")
		w.put(dir+"dormant", "0\n")
		w.put(dir+"duplex", []string{"full\n", "half\n", "unknown\n"}[i%3])
		w.put(dir+"flags", "0x1003\n")
		w.put(dir+"ifalias", []string{"\n", "to the left\n"}[i%2])
		w.put(dir+"operstate", []string{"up\n", "down\n", "unknown\n"}[i%3])
		w.put(dir+"speed", []string{"1000\n", "-1\n", "10\n"}[i%3])
	}
}

func (w *treeWriter) sysCPU() {
	w.put("sys/devices/system/cpu/offline", "\n")
	w.put("sys/devices/system/cpu/online", fmt.Sprintf("0-%d\n", w.cpus-1))
	for cpu := range w.cpus {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", cpu)
		w.put(dir+"topology/core_id", fmt.Sprintln(cpu/2))
		w.put(dir+"topology/physical_package_id", fmt.Sprintln(cpu*w.nodes/w.cpus))
		w.put(dir+"thermal_throttle/core_throttle_count", fmt.Sprintln(cpu/2))
		w.put(dir+"thermal_throttle/package_throttle_count", fmt.Sprintln(cpu*w.nodes/w.cpus))
		for name, text := range map[string]string{
			"cpuinfo_min_freq": "800000\n", "cpuinfo_max_freq": "3600000\n", "cpuinfo_cur_freq": "2100000\n", "scaling_min_freq": "800000\n",
			"scaling_max_freq": "3600000\n", "scaling_cur_freq": fmt.Sprintln(800000 + cpu), "scaling_governor": "ondemand\n",
			"scaling_available_governors": "ondemand performance\n", "scaling_driver": "made\n", "related_cpus": fmt.Sprintln(cpu), "scaling_setspeed": "<unsupported>\n",
		} {
			w.put(dir+"cpufreq/"+name, text)
		}
	}
}

func (w *treeWriter) sysDevices() {
	w.put("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n")
	w.put("sys/class/thermal/thermal_zone0/temp", "45123\n")
	w.put("sys/class/thermal/thermal_zone0/policy", "step_wise\n")
	w.put("sys/class/thermal/cooling_device0/type", "fan\n")
	w.put("sys/class/thermal/cooling_device0/cur_state", "2\n")
	w.put("sys/class/thermal/cooling_device0/max_state", "9\n")
	hwmon := "sys/class/hwmon/hwmon0/"
	for name, text := range map[string]string{
		"name": "made_chip\n", "temp1_input": "38500\n", "temp1_max": "90000\n", "temp1_label": "Board\n", "fan1_input": "1350\n",
		"in0_input": "11980\n", "curr1_input": "250\n", "power1_average": "3000000\n", "humidity1_input": "45000\n", "temp1_crit_alarm": "0\n",
	} {
		w.put(hwmon+name, text)
	}
	for name, text := range map[string]string{"type": "Mains\n", "online": "1\n"} {
		w.put("sys/class/power_supply/AC/"+name, text)
	}
	for name, text := range map[string]string{"type": "Battery\n", "capacity": "87\n", "status": "Charging\n", "voltage_now": "12345000\n",
		"charge_full": "5000000\n", "cycle_count": "12\n", "present": "1\n", "manufacturer": "Made\n", "technology": "Li-ion\n"} {
		w.put("sys/class/power_supply/BAT0/"+name, text)
	}
	for name, text := range map[string]string{"bios_vendor": "Made\n", "product_name": "Box\n", "sys_vendor": "Made Ltd\n", "board_version": " 1.0 \n"} {
		w.put("sys/class/dmi/id/"+name, text)
	}
}
