package collectors

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNetstat(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/net/snmp", "Ip: Forwarding DefaultTTL\nIp: 1 64\n"+
		"Tcp: MaxConn InSegs InErrs\nTcp: -1 18446744073709551615 3\n"+
		"Udp: InDatagrams NoPorts\nUdp: 5\n"+ // fewer values than names
		"UdpLite: InErrors\nUdpLite: 1 2\n"+ // more
		"Icmp: InMsgs\nIcmpMsg: 1\n"+ // of another
		"Bad: X_InErrors\nBad: y\n")
	tr.write("proc/net/snmp6", "Ip6InOctets 7\nIp6InReceives 8\nUdp6NoPorts -1\nnothing 3\nIcmp6InMsgs\n\n")
	p := tr.open("netstat")
	base := map[string]float64{"node_netstat_Ip_Forwarding": 1,
		"node_netstat_Tcp_InSegs": 18446744073709551615, "node_netstat_Tcp_InErrs": 3}
	six := map[string]float64{"node_netstat_Ip6_InOctets": 7}
	for name, v := range six {
		base[name] = v
	}
	want(t, p.read(), "", base)
	p.wantStats(6, 0, 0)

	slots := p.schema.Len()
	// Columns move, one is new, IPv6 goes and a file comes.
	tr.write("proc/net/snmp", "Tcp: InErrs New MaxConn InSegs\nTcp: 4 1 -1 9\n")
	if err := os.Remove(tr.dir + "/proc/net/snmp6"); err != nil {
		t.Fatal(err)
	}
	tr.write("proc/net/netstat", "TcpExt: ListenDrops TCPTimeouts\nTcpExt: 1 2\n")
	want(t, p.read(), "", map[string]float64{"node_netstat_Tcp_InSegs": 9, "node_netstat_Tcp_InErrs": 4,
		"node_netstat_TcpExt_ListenDrops": 1, "node_netstat_TcpExt_TCPTimeouts": 2})
	if n := p.schema.Len(); n != slots+2 {
		t.Errorf("got %d slots, want %d and the two of a new file", n, slots)
	}
}

func TestSockstat(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/net/sockstat", "sockets: used 9\nTCP: inuse 1 orphan 2 tw 3 alloc 4 mem -5 new 6\nUDP: inuse 7 mem x\nrubbish\n")
	tr.write("proc/net/sockstat6", "TCP6: inuse 8\n")
	page := float64(os.Getpagesize())
	p := tr.open("sockstat")
	want(t, p.read(), "", map[string]float64{"node_sockstat_sockets_used": 9, "node_sockstat_TCP_inuse": 1,
		"node_sockstat_TCP_orphan": 2, "node_sockstat_TCP_tw": 3, "node_sockstat_TCP_alloc": 4, "node_sockstat_TCP_mem": -5,
		"node_sockstat_TCP_mem_bytes": -5 * page, "node_sockstat_UDP_inuse": 7, "node_sockstat_TCP6_inuse": 8})
	p.wantStats(2, 0, 0)
	tr.write("proc/net/sockstat", "TCP: inuse 3\n")
	want(t, p.read(), "", map[string]float64{"node_sockstat_TCP_inuse": 3, "node_sockstat_TCP6_inuse": 8})
}

func TestConntrack(t *testing.T) {
	tr := newTree(t)
	if _, err := newConntrack(tr.env()); err == nil {
		t.Error("no module and no error")
	}
	tr.write("proc/sys/net/netfilter/nf_conntrack_count", "12\n")
	tr.write("proc/sys/net/netfilter/nf_conntrack_max", "65536\n")
	p := tr.open("conntrack")
	base := map[string]float64{"node_nf_conntrack_entries": 12, "node_nf_conntrack_entries_limit": 65536}
	want(t, p.read(), "", base)
	// Fewer columns than there are names, as kernels before 2.6.35 have, and a bad row.
	tr.write("proc/net/stat/nf_conntrack", "entries  clashres found new invalid ignore insert drop search_restart\n"+
		"0000000c 0 0000000a 1 00000002 3 0000000f 4 1\n0000000c 0 0000000b 1 00000002 3 0000000f 4\nx\n")
	base["node_nf_conntrack_stat_found"] = 21
	base["node_nf_conntrack_stat_invalid"] = 4
	base["node_nf_conntrack_stat_ignore"] = 6
	base["node_nf_conntrack_stat_insert"] = 30
	base["node_nf_conntrack_stat_drop"] = 8
	base["node_nf_conntrack_stat_search_restart"] = 1
	want(t, p.read(), "", base)
	p.wantStats(1, 0, 0)
}

// Rows are those of the CPUs that the machine could have, here without 1; columns that
// kernels print as zero for ever are left out until they move.
func TestConntrackCPU(t *testing.T) {
	tr := newTree(t)
	tr.write("sys/devices/system/cpu/possible", "0,2\n")
	head := "entries  clashres found new invalid drop chainlength\n"
	tr.write("proc/net/stat/nf_conntrack", head+"0000000c 00000001 0000000a 0 00000002 ffffffff 1\n0000000c 0 b 0 00000003\n")
	p := tr.open("conntrack_cpu")
	c := func(name, cpu string) string { return "node_nf_conntrack_cpu_" + name + `_total{cpu="` + cpu + `"}` }
	all := map[string]float64{c("clash_resolve", "0"): 1, c("found", "0"): 10, c("invalid", "0"): 2, c("drop", "0"): 1<<32 - 1,
		c("chain_too_long", "0"): 1, c("clash_resolve", "2"): 0, c("found", "2"): 11, c("invalid", "2"): 3}
	want(t, p.read(), "", all)
	// A row that cannot be read is left out, the other is not.
	tr.write("proc/net/stat/nf_conntrack", head+"0000000c 1 x 0 2 3\n0000000c 0 c 5 3 0 0\n")
	want(t, p.read(), "", map[string]float64{c("clash_resolve", "2"): 0, c("found", "2"): 12, c("new", "2"): 5, c("invalid", "2"): 3,
		c("drop", "2"): 0, c("chain_too_long", "2"): 0})
	p.wantStats(1, 0, 0)
	// Which CPU a row is of cannot be told.
	tr.write("proc/net/stat/nf_conntrack", head+"0000000c 1 1 0 2 3\n")
	if err := p.src.Read(p.out); !errors.Is(err, errConntrackCPUs) {
		t.Errorf("one row for two CPUs: %v", err)
	}
}

func TestSchedstat(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/schedstat", "version 17\ntimestamp 1\ncpu0 0 0 0 0 0 0 1500000000 2500000000 7\n"+
		"domain0 MC 3 1 2\ncpu2 0 0 0 0 0 0 1000000000 0 1 99\ncpu3 1 2 3\ncpuX 0 0 0 0 0 0 1 1 1\n")
	p := tr.open("schedstat")
	want(t, p.read(), "", map[string]float64{
		`node_schedstat_running_seconds_total{cpu="0"}`: 1.5, `node_schedstat_running_seconds_total{cpu="2"}`: 1,
		`node_schedstat_waiting_seconds_total{cpu="0"}`: 2.5, `node_schedstat_waiting_seconds_total{cpu="2"}`: 0,
		`node_schedstat_timeslices_total{cpu="0"}`: 7, `node_schedstat_timeslices_total{cpu="2"}`: 1})
	p.wantStats(2, 0, 0)
}

func TestARP(t *testing.T) {
	tr := newTree(t)
	head := "IP address       HW type     Flags       HW address            Mask     Device\n"
	row := func(device string) string { return "192.0.2.1 0x1 0x2 02:00:00:00:00:01 * " + device + "\n" }
	tr.write("proc/net/arp", head+row("lan")+row("wan")+row("lan")+"short\n")
	p := tr.open("arp")
	want(t, p.read(), "", map[string]float64{`node_arp_entries{device="lan"}`: 2, `node_arp_entries{device="wan"}`: 1})
	p.wantStats(1, 0, 0)
	tr.write("proc/net/arp", head+row("lan"))
	want(t, p.read(), "", map[string]float64{`node_arp_entries{device="lan"}`: 1})
}

func TestUDPQueues(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/net/udp", "sl local rem st tx_queue rx_queue\n"+
		"  1: 0100007F:0035 00000000:0000 07 00000010:00000020 00:00000000 00000000 0 0 1 2 0 0\n"+
		"  2: 0100007F:0036 00000000:0000 07 00000001:00000002 00:00000000 00000000 0 0 1 2 0 0\nshort\n")
	p := tr.open("udp_queues")
	want(t, p.read(), "", map[string]float64{`node_udp_queues{ip="v4",queue="tx"}`: 17, `node_udp_queues{ip="v4",queue="rx"}`: 34})
	p.wantStats(1, 0, 0)
}

func TestSmallFiles(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/sys/fs/file-nr", "1024\t0\t9223372036854775807\n")
	tr.write("proc/sys/kernel/random/entropy_avail", "256\n")
	tr.write("proc/sys/kernel/random/poolsize", "4096\n")
	tr.write("proc/sys/kernel/hung_task_detect_count", "3\n")
	want(t, tr.open("filefd").read(), "", map[string]float64{
		"node_filefd_allocated": 1024, "node_filefd_maximum": 9223372036854775807})
	want(t, tr.open("kernel_hung").read(), "", map[string]float64{"node_kernel_hung_tasks_total": 3})
	p := tr.open("entropy")
	want(t, p.read(), "", map[string]float64{"node_entropy_available_bits": 256, "node_entropy_pool_size_bits": 4096})
	for _, text := range []string{"", "x", "1 2", "9223372036854775808", "-", "- 1"} {
		tr.write("proc/sys/kernel/random/poolsize", text)
		if err := p.src.Read(p.out); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestTimex(t *testing.T) {
	p := newProbe(t, &timex{})
	p.src.(*timex).set(p.out, &unix.Timex{Offset: 1500, Freq: 65536, Status: staNano, Tick: 10000, Tai: 37}, timeError)
	got := p.present()
	for name, v := range map[string]float64{"sync_status": 0, "offset_seconds": 1.5e-6, "tick_seconds": 0.01,
		"frequency_adjustment_ratio": 1.000001, "tai_offset_seconds": 37} {
		if got["node_timex_"+name] != v {
			t.Errorf("%s: got %v, want %v", name, got["node_timex_"+name], v)
		}
	}
	p.src.(*timex).set(p.out, &unix.Timex{Offset: -1500}, 0)
	if got := p.present(); got["node_timex_offset_seconds"] != -0.0015 || got["node_timex_sync_status"] != 1 {
		t.Errorf("got %v", got)
	}
}
