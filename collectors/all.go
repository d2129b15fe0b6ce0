package collectors

import "time"

const (
	everyTick = 0 // the cadence of what a tick is for

	// deadline is how long a file of the kernel's own may take. They take
	// microseconds to milliseconds; a second is a fault.
	deadline = time.Second
)

// All returns every source there is, in reading order: those that are read at every
// tick first, so that their times are closest to the tick's.
func All() []Spec {
	return []Spec{
		{Name: "stat", Enabled: true, Cadence: everyTick, Deadline: deadline, New: newStat,
			Reason: "bursts of CPU use last less than a second",
			Files:  []string{"proc/stat"}},
		{Name: "softnet", Enabled: true, Cadence: everyTick, Deadline: deadline, New: newSoftnet,
			Reason: "a full backlog drops packets within milliseconds",
			Files:  []string{"proc/net/softnet_stat", "sys/devices/system/cpu/online"}},
		{Name: "softirqs", Enabled: true, Cadence: everyTick, Deadline: deadline, New: newSoftirqs,
			Reason: "softirqs carry a router's traffic",
			Files:  []string{"proc/softirqs"}},
		{Name: "interrupts", Enabled: true, Cadence: everyTick, Deadline: deadline, New: newInterrupts,
			Reason: "interrupt storms come in bursts",
			Files:  []string{"proc/interrupts"}},
		{Name: "netdev", Enabled: true, Cadence: everyTick, Deadline: deadline, New: newNetdev,
			Reason: "microbursts last less than a second",
			Files:  []string{"proc/net/dev", "proc/1/net/dev"}},
		{Name: "vmstat", Enabled: true, Cadence: everyTick, Deadline: deadline, New: newVmstat,
			Reason: "faults and swapping come in bursts",
			Files:  []string{"proc/vmstat"}},
		{Name: "diskstats", Enabled: true, Cadence: everyTick, Deadline: deadline, New: newDiskstats,
			Reason: "flushes come in bursts",
			Files:  []string{"proc/diskstats", "sys/block/*/queue/rotational", "run/udev/data/*"}},
		{Name: "pressure", Enabled: true, Cadence: everyTick, Deadline: deadline, New: newPressure,
			Reason: "the totals count stalls in microseconds",
			Files:  []string{"proc/pressure/cpu", "proc/pressure/io", "proc/pressure/memory", "proc/pressure/irq"}},
		{Name: "netstat", Enabled: true, Cadence: everyTick, Deadline: deadline, New: newNetstat,
			Reason: "retransmissions and dropped connections come in bursts",
			Files:  []string{"proc/net/snmp", "proc/net/netstat", "proc/net/snmp6"}},
		{Name: "schedstat", Enabled: true, Cadence: everyTick, Deadline: deadline, New: newSchedstat,
			Reason: "the kernel counts waiting in nanoseconds",
			Files:  []string{"proc/schedstat"}},
		{Name: "conntrack", Enabled: true, Cadence: everyTick, Deadline: deadline, New: newConntrack,
			Reason: "a table fills within seconds of an attack",
			Files: []string{"proc/sys/net/netfilter/nf_conntrack_count", "proc/sys/net/netfilter/nf_conntrack_max",
				"proc/net/stat/nf_conntrack"}},
		{Name: "meminfo", Enabled: true, Cadence: time.Second, Deadline: deadline, New: newMeminfo,
			Reason: "the kernel adds up its counters for it; memory fills in seconds",
			Files:  []string{"proc/meminfo"}},
		{Name: "loadavg", Enabled: true, Cadence: time.Second, Deadline: deadline, New: newLoadavg,
			Reason: "the kernel computes it every 5 seconds",
			Files:  []string{"proc/loadavg"}},
		{Name: "sockstat", Enabled: true, Cadence: time.Second, Deadline: deadline, New: newSockstat,
			Reason: "sockets open and close in seconds",
			Files:  []string{"proc/net/sockstat", "proc/net/sockstat6"}},
		{Name: "udp_queues", Enabled: true, Cadence: time.Second, Deadline: deadline, New: newUDPQueues,
			Reason: "the kernel walks every UDP socket for it",
			Files:  []string{"proc/net/udp", "proc/net/udp6"}},
		{Name: "arp", Enabled: true, Cadence: 5 * time.Second, Deadline: deadline, New: newArp,
			Reason: "the kernel walks the neighbour table for it; entries live for a minute",
			Files:  []string{"proc/net/arp"}},
		{Name: "filefd", Enabled: true, Cadence: time.Second, Deadline: deadline, New: newFilefd,
			Reason: "leaks take seconds to minutes",
			Files:  []string{"proc/sys/fs/file-nr"}},
		{Name: "entropy", Enabled: true, Cadence: 10 * time.Second, Deadline: deadline, New: newEntropy,
			Reason: "constant on kernels since 5.18",
			Files:  []string{"proc/sys/kernel/random/entropy_avail", "proc/sys/kernel/random/poolsize"}},
		{Name: "kernel_hung", Enabled: true, Cadence: 10 * time.Second, Deadline: deadline, New: newKernelHung,
			Reason: "the kernel looks for hung tasks every two minutes",
			Files:  []string{"proc/sys/kernel/hung_task_detect_count"}},
		{Name: "timex", Enabled: true, Cadence: time.Second, Deadline: deadline, New: newTimex,
			Reason: "clocks are disciplined in seconds"},
		{Name: "uname", Enabled: true, Cadence: time.Second, Deadline: deadline, New: newUname,
			Reason: "only the host name ever changes; one system call notices at once"},
		{Name: "time", Enabled: true, Cadence: time.Second, Deadline: deadline, New: newTime,
			Reason: "clock steps show at a second's resolution; every sample carries the time anyway",
			Files:  []string{"proc/stat", "sys/devices/system/clocksource/clocksource*/*_clocksource"}},
		{Name: "exporter", Enabled: true, Cadence: time.Second, Deadline: deadline, New: newExporter,
			Reason: "the exporter's own figures change slowly",
			Files:  []string{"proc/self/stat", "proc/self/fd"}},
	}
}
