package collectors

import (
	"testing"
)

func TestDiskstats(t *testing.T) {
	tr := newTree(t)
	tr.write("sys/block/sda/queue/rotational", "1\n")
	tr.write("run/udev/data/b8:0", "S:disk/x\nE:ID_MODEL=Disk\nE:ID_SERIAL=long\nE:ID_SERIAL_SHORT=short\nE:ID_ATA=1\n"+
		"E:ID_ATA_ROTATION_RATE_RPM=7200\nE:ID_ATA_WRITE_CACHE=x\nE:ID_FS_TYPE=ext4\nE:ID_FS_UUID=u\nE:DM_NAME=root\nI:1\nE:rubbish\n")
	full := " 1 2 3 4000 5 6 7 8 9 10 11"
	tr.write("proc/diskstats", "8 0 sda"+full+"\n8 1 sda1"+full+"\n7 0 loop0"+full+"\n"+
		"9 0 md0"+full+" 12 13 14 15 16 17 18 19\n"+
		"10 0 old1 1 2 3 4\n10 1 short 1 2 3 4 5\nx 0 y"+full+"\n11 0 bad 1 2 3 4 5 6 7 8 9 x 11\n12 0\n")
	p := tr.open("diskstats")
	got := p.read()
	extra := map[string]float64{`node_disk_filesystem_info{device="sda",type="ext4",uuid="u"}`: 1,
		`node_disk_device_mapper_info{device="sda",name="root"}`: 1, `node_disk_ata_rotation_rate_rpm{device="sda"}`: 7200}
	want(t, got, "filesystem_info", map[string]float64{`node_disk_filesystem_info{device="sda",type="ext4",uuid="u"}`: 1})
	want(t, got, "ata", map[string]float64{`node_disk_ata_rotation_rate_rpm{device="sda"}`: 7200})
	p.out.ClearAll()
	got = p.read()
	for name, v := range extra {
		if got[name] != v {
			t.Errorf("after a failure: %s is %v, want %v", name, got[name], v)
		}
	}
	want(t, got, "disk_info", map[string]float64{
		`node_disk_info{device="sda",major="8",minor="0",model="Disk",rotational="1",serial="short"}`: 1,
		`node_disk_info{device="md0",major="9",minor="0",rotational="0"}`:                             1})
	want(t, got, "read", map[string]float64{
		`node_disk_reads_completed_total{device="sda"}`: 1, `node_disk_reads_merged_total{device="sda"}`: 2,
		`node_disk_read_bytes_total{device="sda"}`: 1536, `node_disk_read_time_seconds_total{device="sda"}`: 4,
		`node_disk_reads_completed_total{device="md0"}`: 1, `node_disk_reads_merged_total{device="md0"}`: 2,
		`node_disk_read_bytes_total{device="md0"}`: 1536, `node_disk_read_time_seconds_total{device="md0"}`: 4})
	want(t, got, "discard", map[string]float64{
		`node_disk_discards_completed_total{device="md0"}`: 12, `node_disk_discards_merged_total{device="md0"}`: 13,
		`node_disk_discarded_sectors_total{device="md0"}`: 14, `node_disk_discard_time_seconds_total{device="md0"}`: 0.015})
	p.wantStats(8, 0, 0)

	// The device becomes another, under the same name.
	tr.write("proc/diskstats", "8 16 sda"+full+"\n")
	want(t, p.read(), "info", map[string]float64{
		`node_disk_info{device="sda",major="8",minor="16",rotational="1"}`: 1})
	// A failed read must not lose what does not change.
	p.out.ClearAll()
	want(t, p.read(), "info", map[string]float64{
		`node_disk_info{device="sda",major="8",minor="16",rotational="1"}`: 1})
	tr.write("proc/diskstats", "")
	want(t, p.read(), "", map[string]float64{})
}

func TestMeminfo(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/meminfo", "MemTotal: 1 kB\nMemFree:2\nActive(anon):   3 kB\nHugePages_Total:  4\n"+
		"KReclaimable: 5 kB\nBuffers: 6 MB\nCached: -1 kB\nDirty: 18446744073709551615 kB\nno colon\nSlab:\n\n")
	p := tr.open("meminfo")
	want(t, p.read(), "", map[string]float64{"node_memory_MemTotal_bytes": 1024, "node_memory_MemFree_bytes": 2,
		"node_memory_Active_anon_bytes": 3072, "node_memory_HugePages_Total": 4})
	p.wantStats(5, 0, 0)
	tr.write("proc/meminfo", "MemFree: 9 kB\n")
	want(t, p.read(), "", map[string]float64{"node_memory_MemFree_bytes": 9216})
	tr.write("proc/meminfo", "rubbish\n")
	if err := p.src.Read(p.out); err == nil {
		t.Error("a file without a row is no error")
	}
}

func TestVmstat(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/vmstat", "nr_free_pages x\npgpgin 1\npgpgout -1\npgfault 2\npgmajfault\noom_kill 3\n"+
		"pg_odd-fault 4\npgsteal 5\n \n\npswpin 6\n")
	p := tr.open("vmstat")
	want(t, p.read(), "", map[string]float64{"node_vmstat_pgpgin": 1, "node_vmstat_pgfault": 2,
		"node_vmstat_oom_kill": 3, "node_vmstat_pg_odd_fault": 4, "node_vmstat_pswpin": 6})
	p.wantStats(2, 0, 0)
}

func TestLoadavg(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/loadavg", "0.07 12.5 1234567.891 1/2 3\n")
	p := tr.open("loadavg")
	want(t, p.read(), "", map[string]float64{"node_load1": 0.07, "node_load5": 12.5, "node_load15": 1234567.89})
	for _, text := range []string{"", "\n", "0.01 0.02", "0.01 x 0.03", "1. 2.0 3.0", "-1.00 0.00 0.00",
		"99999999999999999999.00 0.00 0.00", "1.2.3 0.00 0.00"} {
		tr.write("proc/loadavg", text)
		if err := p.src.Read(p.out); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestPressure(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/pressure/cpu", "some avg10=0.00 total=1500000\nfull avg10=0.00 total=7\n")
	tr.write("proc/pressure/io", "some avg10=0.00 total=x\nfull total=2000000\nnew total=3\n")
	tr.write("proc/pressure/irq", "full avg10=0.00 avg60=0.00 avg300=0.00 total=3000000\n")
	p := tr.open("pressure")
	want(t, p.read(), "", map[string]float64{"node_pressure_cpu_waiting_seconds_total": 1.5,
		"node_pressure_io_stalled_seconds_total": 2, "node_pressure_irq_stalled_seconds_total": 3})
	p.wantStats(1, 0, 0)
	tr.write("proc/pressure/cpu", "")
	want(t, p.read(), "", map[string]float64{
		"node_pressure_io_stalled_seconds_total": 2, "node_pressure_irq_stalled_seconds_total": 3})
	for _, name := range []string{"cpu", "io", "irq"} {
		tr.write("proc/pressure/"+name, "")
	}
	if err := p.src.Read(p.out); err == nil {
		t.Error("no file has content and there is no error")
	}
	if _, err := newPressure(newTree(t).env()); err == nil {
		t.Error("no files and no error")
	}
}
