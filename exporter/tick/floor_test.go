package tick

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ticktier/ticktier/collectors"
)

// floorFiles are what the sources of every tick read.
var floorFiles = []string{"stat", "net/softnet_stat", "softirqs", "interrupts", "net/dev", "vmstat", "diskstats",
	"pressure/cpu", "pressure/io", "pressure/memory", "pressure/irq", "net/snmp", "net/netstat", "net/snmp6", "schedstat",
	"sys/net/netfilter/nf_conntrack_count", "sys/net/netfilter/nf_conntrack_max", "net/stat/nf_conntrack"}

// BenchmarkFloor is the work below which no program can be that reads these files:
// one pread, or as many as the file needs, of each, and nothing else.
func BenchmarkFloor(b *testing.B) {
	var fds []int
	for _, name := range floorFiles {
		if fd, err := unix.Open("/proc/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			fds = append(fds, fd)
			defer unix.Close(fd)
		}
	}
	buf := make([]byte, 64<<10)
	for b.Loop() {
		for _, fd := range fds {
			for off := int64(0); ; {
				n, err := unix.Pread(fd, buf, off)
				if err != nil {
					b.Fatal(err)
				}
				if off += int64(n); n < 2048 {
					break // the last page of a file is hardly ever full
				}
			}
		}
	}
}

// BenchmarkEveryTick is the same files read by the sources that they belong to.
func BenchmarkEveryTick(b *testing.B) {
	var specs []collectors.Spec
	for _, s := range collectors.All() {
		if s.Enabled && s.Cadence == 0 {
			specs = append(specs, s)
		}
	}
	l, err := New(Config{Rate: 10, Specs: specs, Schema: new(collectors.Schema), Sink: &countSink{}, Clock: NewClock(),
		Env: collectors.Env{Procfs: "/proc", Sysfs: "/sys", Rootfs: "/"}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.stop()
	slot := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		l.tick(slot)
		slot++
	}
}
